import { LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import {
  documentedLogin,
  DOCUMENTED_RULES,
  OBJECT_RULES,
  PERMIT_RULES,
  QUEUE_RULES,
  READ_WRITE_RULES,
  userWith,
} from '../support/redis/documented-user.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

/*
 * Commands that are taken away from the Redis user while the app runs. A script that fails half-way loses no permit,
 * gets none for nothing, and leaves no hold without an end.
 */

/** A wait that took longer ended with a lease, and not with a failure or the release. */
const SOON_MS = 8_000;

/** Without this right, foreign waiters are not counted. No call fails. */
const COUNTING = '+pubsub|numsub';

const ALL = [...DOCUMENTED_RULES, ...PERMIT_RULES, ...READ_WRITE_RULES, ...OBJECT_RULES];
const commandsOf = (rules: readonly string[]): string[] => rules.filter((rule) => rule.startsWith('+'));

const lab = useLab();

const queueOf = (key: string): string => `nest_redis_lock:queue:{${holdName(key)}}`;

const setRules = (...rules: readonly string[]): Promise<unknown> =>
  lab.admin.call('ACL', 'SETUSER', documentedLogin.username, ...rules);
const takeAway = (rule: string): Promise<unknown> =>
  setRules(
    ...(rule.startsWith('&') ? ['resetchannels', '&redisson_lock__channel:*'] : [rule.replace('+', '-')]),
  );

const permits = async (rule: string, one: OpenLocks, two: OpenLocks): Promise<void> => {
  const held = await one.locks.permits('mail', { permits: 3 }).acquire();
  const kept = await one.locks.permits('mail').acquire({ holdAtLeastMs: 30_000 });
  await lab.admin.set('lock:forced', 3);
  await one.locks.permits('forced').acquire();
  const only = await one.locks.permits('only', { permits: 3 }).acquire();
  await one.locks.permits('mail').acquire({ leaseMs: 500 });
  await until(async () => (await lab.admin.zcount('{lock:mail}:timeout', '-inf', Date.now())) === 1);
  await takeAway(rule);
  const outcomes = await Promise.allSettled([
    two.locks.permits('mail').tryAcquire(),
    held.extend(60_000),
    held.release(),
    kept.release(),
    only.release(),
    one.locks.forceUnlock('forced'),
    two.locks.permits('new', { permits: 3 }).tryAcquire(),
  ]);
  expect(outcomes.map(({ status }) => status)).toContain('rejected');
  for (const name of ['lock:mail', 'lock:only', 'lock:forced', 'lock:new']) {
    const set = `{${name}}:timeout`;
    const free = await lab.admin.get(name);
    if (free !== null || name !== 'lock:new') {
      expect(Number(free) + (await lab.admin.zcard(set)), name).toBe(3);
    }
    if (name !== 'lock:forced') {
      expect([await lab.admin.pttl(name), await lab.admin.pttl(set)], name).not.toContain(-1);
    }
  }
};

const readWrite = async (rule: string, one: OpenLocks, two: OpenLocks): Promise<void> => {
  const reader = await one.locks.acquire('mail', { mode: 'read' });
  const kept = await two.locks.acquire('mail', { mode: 'read', holdAtLeastMs: 30_000 });
  const writer = await one.locks.acquire('only', { mode: 'write' });
  const lesser = await one.locks.acquire('less', { mode: 'write' });
  await one.locks.acquire('forced', { mode: 'write' });
  await takeAway(rule);
  const outcomes = await Promise.allSettled([
    two.locks.tryAcquire('mail', { mode: 'read' }),
    reader.extend(60_000),
    lesser.downgrade(),
    reader.release(),
    kept.release(),
    writer.release(),
    one.locks.forceUnlock('forced'),
    two.locks.tryAcquire('new', { mode: 'read' }),
    two.locks.tryAcquire('newer', { mode: 'write' }),
  ]);
  expect(outcomes.map(({ status }) => status)).toContain('rejected');
  for (const name of await lab.admin.keys('*lock:*')) {
    if (name.startsWith('nest_redis_lock:fence:')) continue;
    expect(await lab.admin.pttl(name), name).not.toBe(-1);
  }
};

const objects = async (rule: string, one: OpenLocks): Promise<void> => {
  const semaphore = one.locks.semaphore('pool');
  const latch = one.locks.countDownLatch('import');
  await semaphore.trySetPermits(3);
  await latch.trySetCount(2);
  await takeAway(rule);
  const [released, counted, made] = await Promise.allSettled([
    semaphore.release(),
    latch.countDown(),
    one.locks.semaphore('new').trySetPermits(1),
  ]);
  expect(Number(await lab.admin.get('lock:pool'))).toBe(released.status === 'fulfilled' ? 4 : 3);
  expect(Number(await lab.admin.get('lock:import'))).toBe(counted.status === 'fulfilled' ? 1 : 2);
  expect(await lab.admin.exists('lock:new')).toBe(made.status === 'fulfilled' ? 1 : 0);
};

const SCENARIOS = {
  permits: {
    rules: ['+del', '+get', '+pttl', '+publish', '+set', '+time', ...commandsOf(PERMIT_RULES)],
    show: permits,
  },
  'read-write locks': { rules: ['+del', '+hdel', '+hset', '+pexpire', '+publish', '+set'], show: readWrite },
  'semaphores and latches': {
    rules: ['+get', '+set', '+del', '+publish', '+pttl', ...commandsOf(OBJECT_RULES)],
    show: objects,
  },
};
const EACH = Object.entries(SCENARIOS).flatMap(([kind, { rules, show }]) =>
  rules.map((rule) => ({ kind, rule, show })),
);

describe('a command that the user may not use any more', () => {
  it.each(EACH)('$rule: $kind lose nothing, and gain nothing', async ({ rule, show }) => {
    const user = await userWith(lab, ALL);
    await show(rule, lab.open({}, user), lab.open({}, user));
  });

  it('+pexpire: a reader that cannot enqueue leaves the others in their queue', async () => {
    const user = await userWith(lab, ALL);
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    const holder = await one.locks.acquire('mail', { mode: 'write' });
    const waiting = lab.open().locks.acquire('mail', { mode: 'read', waitMs: 60_000 });
    const queueKey = 'nest_redis_lock:rw_queue:{lock:mail}';
    const queued = await until(async () => {
      const { last, ...entries } = await lab.admin.hgetall(queueKey);
      return last !== undefined && Object.keys(entries);
    });
    await setRules('-pexpire');
    waiting.catch(() => undefined);
    await expect(two.locks.acquire('mail', { mode: 'read' })).rejects.toBeInstanceOf(LockStoreError);
    expect(await lab.admin.hkeys(queueKey)).toEqual(expect.arrayContaining(['last', ...queued]));
    expect(await lab.admin.hlen(queueKey)).toBe(1 + queued.length);
    await setRules('+pexpire');
    await holder.release();
    await (await waiting).release();
  });
});

/** A failure that names the key, and what the server refused. */
const refusalOf = (key: string) => ({
  code: 'LOCK_STORE_FAILED',
  key,
  message: expect.stringMatching(/permission|can't run|can't access/) as string,
});

describe('a right for the wait queue that is removed while the app runs', () => {
  it.each(QUEUE_RULES.filter((rule) => rule !== COUNTING))(
    '%s: each waiter is served or fails by name, and the key works again with the right',
    async (rule) => {
      const user = await userWith(lab, DOCUMENTED_RULES);
      const [one, two, three] = [lab.open({}, user), lab.open({}, user), lab.open({}, user)];
      const key = newKey();
      const lease = await one.locks.acquire(key, { leaseMs: 2_000 });
      let inside = 0;
      const waits = Promise.allSettled(
        [two, three].map((opened) =>
          opened.locks.withLock(key, { waitMs: 60_000 }, async () => {
            expect((inside += 1)).toBe(1);
            await opened.locks.ping();
            inside -= 1;
          }),
        ),
      );
      await until(async () => (await lab.admin.hget(queueOf(key), 'last')) === '2');
      await lab.waiting(key, 2);
      await takeAway(rule);
      await lease.release().catch((error: unknown) => expect(error).toMatchObject({ key }));
      for (const end of await within(SOON_MS, waits)) {
        if (end.status === 'rejected') expect(end.reason).toMatchObject(refusalOf(key));
      }
      // Only to leave the queue takes HDEL.
      const blocker = await lab.open().locks.acquire('other');
      const later = two.locks.acquire('other', { waitMs: 60_000 });
      if (rule !== '+hdel') await expect(within(SOON_MS, later)).rejects.toMatchObject(refusalOf('other'));
      await blocker.release();
      await within(SOON_MS, later).catch((error: unknown) => expect(error).toMatchObject(refusalOf('other')));
      await setRules(rule);
      for (const { locks } of [one, two, three]) {
        await until(() => locks.withLock(key, { waitMs: 2_000 }, () => true));
      }
      for (const name of await lab.admin.keys('*lock:*')) {
        if (!name.includes(':fence:')) expect(await lab.admin.pttl(name), name).not.toBe(-1);
      }
    },
  );

  it(`${COUNTING}: all waiters are served`, async () => {
    const user = await userWith(lab, DOCUMENTED_RULES);
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    await takeAway(COUNTING);
    for (const [holder, waiter] of [[one, two] as const, [two, one] as const]) {
      const lease = await holder.locks.acquire('order');
      const waiting = waiter.locks.acquire('order', { waitMs: 60_000 });
      await lab.waiting('order');
      await lease.release();
      await (await within(SOON_MS, waiting)).release();
    }
  });
});
