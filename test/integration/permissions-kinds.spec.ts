import { LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import {
  DOCUMENTED_RULES,
  FAIR_RULES,
  LIST_RULES,
  OBJECT_RULES,
  PERMIT_RULES,
  READ_WRITE_RULES,
  refusedBy,
  userWith,
} from '../support/redis/documented-user.js';
import { useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';

/*
 * The rules that the smallest Redis user needs in addition for other kinds of lock and for objects, as the documents
 * have them. Each rule is taken away once, to show that it is needed.
 */
const SOON_MS = 10_000;
const WAIT_MS = 20_000;

/** With braces and without: what belongs to a key is named in different ways. */
const KEYS = ['order', 'stock:{7}'];
const holdOf = (key: string): string => (key.includes('{') ? `lock:${key}` : `{lock:${key}}`);

const lab = useLab();

/** Waits until a process is subscribed to the channel, does the work, and resolves with what was waited for. */
const woken = async <T>(channel: string, waiting: Promise<T>, work: () => Promise<unknown>): Promise<T> => {
  const done = until(async () => (await lab.channels()).some((name) => name.startsWith(channel)))
    .then(work)
    .then(() => waiting);
  // A user that may not wait fails at once.
  return within(SOON_MS, Promise.race([done, waiting]));
};

/** Takes each key, has two callers wait for it of which one gives up, wakes the other, looks, and forces it open. */
const useFair = async (one: OpenLocks, two: OpenLocks): Promise<void> => {
  const fair = { mode: 'fair' } as const;
  for (const key of KEYS) {
    const lease = await one.locks.acquire(key, fair);
    const abort = new AbortController();
    const first = two.locks.acquire(key, { ...fair, waitMs: WAIT_MS, signal: abort.signal });
    const queued = (count: number): Promise<unknown> =>
      until(async () => (await lab.admin.llen(`redisson_lock_queue:${holdOf(key)}`)) === count);
    await within(SOON_MS, Promise.race([queued(1), first]));
    const waiting = two.locks.acquire(key, { ...fair, waitMs: WAIT_MS });
    await within(SOON_MS, Promise.race([queued(2), waiting]));
    expect(await one.locks.inspect(key)).toMatchObject({
      kind: 'fair',
      waiting: [{}, {}].map(() => expect.any(String)),
    });
    abort.abort();
    await expect(first).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await within(SOON_MS, Promise.race([queued(1), waiting]));
    await lease.release();
    const next = await within(SOON_MS, waiting);
    expect(await one.locks.forceUnlock(key)).toBe(true);
    expect(await next.verify()).toBe(false);
  }
};

/** Takes the only permit of each key, waits for it in another process, is woken, and looks. */
const usePermits = async (one: OpenLocks, two: OpenLocks): Promise<void> => {
  for (const key of KEYS) {
    const lease = await one.locks.permits(key, { permits: 1 }).acquire();
    expect((await two.locks.inspect(key))?.kind).toBe('permit');
    const waiting = two.locks.permits(key, { permits: 1 }).acquire({ waitMs: WAIT_MS });
    const next = await woken(`redisson_sc:${holdOf(key)}`, waiting, () => lease.release());
    await next.extend(60_000);
    expect(await one.locks.forceUnlock(key)).toBe(true);
    expect(await next.verify()).toBe(false);
  }
  // A counter that Java has made has no time to live, and neither has its set.
  await lab.admin.set('lock:java', 1);
  await using _java = await one.locks.permits('java').acquire();
  // Beside one that is held there is one whose time is over: it is cleared away.
  await using _held = await one.locks.permits('mail', { permits: 2 }).acquire();
  const ended = await one.locks.permits('mail', { permits: 2 }).acquire({ leaseMs: 500 });
  await until(async () => (await lab.admin.zcount('{lock:mail}:timeout', '-inf', Date.now())) === 1);
  await two.locks.permits('mail', { permits: 2 }).withPermit(() => undefined);
  expect(await ended.release()).toBe('lost');
};

/** Takes each key to read, waits for it to write in another process, is woken, downgrades, and looks. */
const useReadWrite = async (one: OpenLocks, two: OpenLocks): Promise<void> => {
  for (const key of KEYS) {
    const lease = await one.locks.acquire(key, { mode: 'read' });
    const concurrent = await two.locks.acquire(key, { mode: 'read' });
    expect((await two.locks.inspect(key))?.kind).toBe('read');
    const waiting = two.locks.acquire(key, { mode: 'write', waitMs: WAIT_MS });
    const releases = () => Promise.all([lease.release(), concurrent.release()]);
    const next = await woken(`redisson_rwlock:${holdOf(key)}`, waiting, releases);
    await next.extend(60_000);
    await next.downgrade();
    expect(await one.locks.forceUnlock(key)).toBe(true);
    expect(await next.verify()).toBe(false);
  }
};

/** Uses all there is of semaphores and latches, one process waiting for the other. */
const useObjects = async (one: OpenLocks, two: OpenLocks): Promise<void> => {
  for (const key of KEYS) {
    const [here, there] = [one.locks.semaphore(key), two.locks.semaphore(key)];
    await here.trySetPermits(1);
    await here.acquire();
    await woken('redisson_sc:', there.acquire(1, { waitMs: WAIT_MS }), () => here.release());
    await here.addPermits(2);
    await there.drainPermits();
    await there.availablePermits();
    await there.delete();
    const [counted, waited] = [one.locks.countDownLatch(key), two.locks.countDownLatch(key)];
    await counted.trySetCount(2);
    await counted.countDown();
    const open = waited.wait({ waitMs: WAIT_MS });
    await woken('redisson_countdownlatch__channel__', open, () => counted.countDown());
    await counted.trySetCount(1);
    await counted.delete();
  }
};

/** Lists a lock and values that are none. */
const useList = async (one: OpenLocks, two: OpenLocks): Promise<void> => {
  await lab.admin.set('other:order', 1);
  const leases = await Promise.all(KEYS.map((key) => one.locks.acquire(key)));
  const { locks } = await two.locks.list();
  expect(locks.map(({ key }) => key).sort()).toEqual(KEYS);
  for (const lease of leases) await lease.release();
};

const KINDS = {
  'fair locks': { rules: FAIR_RULES, use: useFair },
  permits: { rules: PERMIT_RULES, use: usePermits },
  'read-write locks': { rules: READ_WRITE_RULES, use: useReadWrite },
  'semaphores and latches': { rules: OBJECT_RULES, use: useObjects },
  lists: { rules: LIST_RULES, use: useList },
};
const EACH = Object.entries(KINDS).map(([kind, { rules, use }]) => ({ kind, rules, use }));
const EACH_RULE = EACH.flatMap(({ kind, rules, use }) => rules.map((rule) => ({ kind, rules, rule, use })));

/** Two processes of a user with these rules in addition to the smallest user's. */
const openFor = async (rules: readonly string[]) => {
  const user = await userWith(lab, [...DOCUMENTED_RULES, ...rules]);
  return [lab.open({}, user), lab.open({}, user)] as const;
};

describe('the smallest user of Redis and', () => {
  it.each(EACH)('$kind: it needs no more than the documents say', async ({ rules, use }) => {
    await use(...(await openFor(rules)));
    expect(await refusedBy(lab)).toEqual([]);
  });

  it.each(EACH_RULE)('$kind: it needs $rule', async ({ rules, rule, use }) => {
    const failure = await use(...(await openFor(rules.filter((one) => one !== rule)))).catch(
      (error: unknown) => error,
    );
    // Without LRANGE a fair lock works, and inspect() shows no waiters of it.
    if (rule !== '+lrange') expect(failure).toBeInstanceOf(LockStoreError);
    const names = await refusedBy(lab);
    expect(names).not.toEqual([]);
    const wanted = rule.slice(1).replace(/\*.*$/, '');
    expect(names.filter((name) => !name.startsWith(wanted))).toEqual([]);
  });

  it('lists: without the rule the error names it', async () => {
    const [one] = await openFor([]);
    await expect(one.locks.list()).rejects.toThrow(/lacks the ACL rule \+scan.*permissions\.md/);
  });

  it('lists: without the rules for permits they have no permits, and values that are no lock break none', async () => {
    const [admin] = [lab.open()];
    await using _permit = await admin.locks.permits('crm', { permits: 1 }).acquire();
    await using _read = await admin.locks.acquire('report', { mode: 'read' });
    await lab.admin.set('lock:text', 'a string');
    await lab.admin.sadd('lock:set', 'a');
    const [one] = await openFor(LIST_RULES);
    expect((await one.locks.list()).locks).toMatchObject([{ key: 'report', kind: 'read' }]);
    const [, two] = await openFor([...LIST_RULES, ...PERMIT_RULES]);
    const { locks } = await two.locks.list();
    expect(locks.map(({ key }) => key).sort()).toEqual(['crm', 'report']);
  });

  it('other kinds: without their rules it still uses plain locks, and hears what is refused', async () => {
    const [one, two] = await openFor([]);
    const refused: readonly Promise<unknown>[] = [
      one.locks.acquire('crm', { mode: 'fair' }),
      one.locks.acquire('crm', { mode: 'read' }),
      one.locks.permits('crm', { permits: 1 }).acquire(),
      one.locks.semaphore('crm').release(),
    ];
    for (const request of refused) await expect(request).rejects.toBeInstanceOf(LockStoreError);
    expect(await lab.admin.keys('lock:crm*')).toEqual([]);
    const lease = await one.locks.acquire('order');
    const holders = [{ owner: lease.owner }];
    expect(await two.locks.inspect('order')).toMatchObject({ kind: 'exclusive', holders });
    expect(await two.locks.inspect('free')).toBeNull();
    expect(await two.locks.forceUnlock('free')).toBe(false);
    expect(await two.locks.forceUnlock('order')).toBe(true);
    expect(await lease.verify()).toBe(false);
    // A hold of another kind is reported as taken, with its kind, and is not released by force.
    await lab.admin.multi().hset('lock:crm', 'mode', 'read', 'java:1', 1).pexpire('lock:crm', 60_000).exec();
    await expect(one.locks.acquire('crm', { waitMs: 0 })).rejects.toMatchObject({ heldAs: 'read' });
    expect(await two.locks.inspect('crm')).toMatchObject({ kind: 'read', holders: [{ owner: 'java:1' }] });
    await expect(two.locks.forceUnlock('crm')).rejects.toBeInstanceOf(LockStoreError);
    expect(await lab.admin.exists('lock:crm')).toBe(1);
  });
});
