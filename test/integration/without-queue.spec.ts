import { Logger, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { until, within } from '../support/async.js';
import {
  documentedLogin,
  DOCUMENTED_RULES,
  QUEUE_RULES,
  RULES_WITHOUT_QUEUE,
} from '../support/redis/documented-user.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';

/*
 * A Redis user who has not every right for a line of those who wait. Locks work as before there were lines.
 */

/** A wait that took longer ended with a lease, and not with the release. */
const SOON_MS = 8_000;

/** Without this permission foreign waiters are not seen. No command fails: the next connection notices it. */
const COUNTING = '+pubsub|numsub';
const NOTICED_AT_ONCE = QUEUE_RULES.filter((rule) => rule !== COUNTING);

const lab = useLab();
afterEach(() => vi.restoreAllMocks());

const setRules = (...rules: readonly string[]): Promise<unknown> =>
  lab.admin.call('ACL', 'SETUSER', documentedLogin.username, ...rules);

const userWith = async (rules: readonly string[]) => {
  await setRules('reset', ...rules);
  await lab.admin.call('ACL', 'LOG', 'RESET');
  return { ...lab.server.clientOptions(), ...documentedLogin };
};

/** The names of keys, channels and commands that the server has refused. */
const refused = async (): Promise<Set<string>> => {
  const entries = (await lab.admin.call('ACL', 'LOG')) as unknown[][];
  return new Set(entries.map((entry) => String(entry[7])));
};

/** How the log of refusals names what a rule allows. */
const nameOf = (rule: string): string => (rule.startsWith('&') ? `${rule.slice(1, -1)}probe` : rule.slice(1));

const queueOf = (key: string): string => `nest_redis_lock:queue:{${holdName(key)}}`;
const queues = async (): Promise<string[]> => lab.admin.keys('nest_redis_lock:queue:*');

const warnings = ({ log }: OpenLocks): string[] => log.filter((entry) => entry.includes('use a wait queue'));

/** The rules that a warning names. */
const rulesIn = (warning = ''): string[] => [
  ...(/it lacks (.*?)\. Locks/.exec(warning)?.[1]?.split(' ') ?? []),
];

/** Takes the key, lets the other service wait for it until it is given back, and says who had it. */
const passOver = async (one: OpenLocks, two: OpenLocks, key = newKey()): Promise<void> => {
  const lease = await one.locks.acquire(key);
  const waiting = two.locks.acquire(key, { waitMs: 60_000 });
  await lab.waiting(key);
  expect(await two.locks.tryAcquire(key)).toBeNull();
  expect(await lease.release()).toBe('released');
  expect(await (await within(SOON_MS, waiting)).release()).toBe('released');
};

const useEverything = async (one: OpenLocks, two: OpenLocks): Promise<void> => {
  await passOver(one, two);
  await passOver(two, one);
  // Several keys, and a turn in which one hold goes from caller to caller.
  await two.locks.withLock(['a', 'b'], () => undefined);
  const key = newKey();
  const order: number[] = [];
  await Promise.all([1, 2, 3].map((n) => one.locks.withLock(key, () => void order.push(n))));
  expect(order).toEqual([1, 2, 3]);
  // Inspected and released by force while a caller waits.
  const forced = await one.locks.acquire(key);
  const next = two.locks.acquire(key, { waitMs: 60_000 });
  await lab.waiting(key);
  expect(await one.locks.inspect(key)).toMatchObject({ holders: [{ owner: forced.owner }], waiting: [] });
  expect(await one.locks.forceUnlock(key)).toBe(true);
  const lease = await within(SOON_MS, next);
  expect(await forced.release()).toBe('lost');
  // Given up by its caller, and out of time.
  const abort = new AbortController();
  const aborted = one.locks.acquire(key, { waitMs: 60_000, signal: abort.signal });
  await lab.waiting(key);
  abort.abort();
  await expect(aborted).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
  await expect(one.locks.acquire(key, { waitMs: 20 })).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
  await lease.release();
  // Its minimum time is the store's.
  const kept = await one.locks.acquire(key, { leaseMs: 60_000, holdAtLeastMs: 300 });
  const after = two.locks.acquire(key, { waitMs: 60_000 });
  await lab.waiting(key);
  await kept.release();
  await (await within(SOON_MS, after)).release();
};

describe('a Redis user with the rights of before there were lines', () => {
  it('may use every lock, and leaves nothing of a line', async () => {
    const user = await userWith(RULES_WITHOUT_QUEUE);
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    await useEverything(one, two);
    expect(await queues()).toEqual([]);
    expect(await lab.grantChannels()).toEqual([]);
    expect([...(await refused())].sort()).toEqual(QUEUE_RULES.map(nameOf).sort());
    await lab.nothingLeft(one, two);
    // What waits when the app stops hears of it.
    const lease = await one.locks.acquire('order');
    const waiting = two.locks.acquire('order', { waitMs: 60_000 });
    await lab.waiting('order');
    const stopped = expect(waiting).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    await two.close();
    await stopped;
    await lease.release();
    expect(await queues()).toEqual([]);
  });

  it('gives way to other processes, however many callers it has', async () => {
    const user = await userWith(RULES_WITHOUT_QUEUE);
    const services = [lab.open({}, user), lab.open({}, user)];
    const runs = [0, 0];
    const endAt = performance.now() + 1_500;
    const caller = async (i: number) => {
      while (performance.now() < endAt) {
        await services[i]!.locks.withLock('order', { waitMs: 30_000 }, async () => {
          runs[i]! += 1;
          await lab.admin.ping();
        });
      }
    };
    await Promise.all([0, 1].flatMap((i) => Array.from({ length: 6 }, () => caller(i))));
    for (const some of runs) expect(some, String(runs)).toBeGreaterThan((runs[0]! + runs[1]!) / 10);
  });

  it('loses no renewal while others wait', async () => {
    const user = await userWith(RULES_WITHOUT_QUEUE);
    const [holder, waiter] = [lab.open(SHORT_WATCHDOG, user), lab.open({}, user)];
    const lease = await holder.locks.acquire('order');
    const waiting = waiter.locks.acquire('order', { waitMs: 60_000 });
    await lab.waiting('order');
    await lab.renewals(6);
    expect(lease.signal.aborted).toBe(false);
    expect((await lab.hold('order'))?.owner).toBe(lease.owner);
    await lease.release();
    await (await within(SOON_MS, waiting)).release();
  });

  it('is told once what is missing, what that costs, and what to do', async () => {
    const user = await userWith(RULES_WITHOUT_QUEUE);
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    await passOver(one, two);
    await lab.admin.call('CLIENT', 'KILL', 'USER', documentedLogin.username);
    await until(() => two.locks.withLock('order', { waitMs: 2_000 }, () => true));
    await passOver(two, one);
    for (const opened of [one, two]) {
      expect(warnings(opened)).toHaveLength(1);
      expect(new Set(rulesIn(warnings(opened)[0]))).toEqual(new Set(QUEUE_RULES));
      expect(warnings(opened)[0]).toMatch(/in no order, and later.*next connection/);
    }
  });

  it.each([
    ['before the app starts', RULES_WITHOUT_QUEUE, []],
    ['while it runs', DOCUMENTED_RULES, QUEUE_RULES.map((rule) => rule.replace('+', '-'))],
  ])(
    'reads one warning in the log of the app, also after that (taken away %s)',
    async (_when, rules, taken) => {
      const said: string[] = [];
      vi.spyOn(Logger.prototype, 'warn').mockImplementation((message: string) => void said.push(message));
      const redis = await userWith(rules);

      @Module({ imports: [RedisLockModule.forRoot({ redis })] })
      class AppModule {}

      const module = await Test.createTestingModule({ imports: [AppModule] }).compile();
      const app = await module.createNestApplication().init();
      const locks = app.get(LockService);
      const other = lab.open({}, redis);
      try {
        const queueWarnings = () => said.filter((warning) => warning.includes('use a wait queue'));
        if (taken.length === 0) await until(() => queueWarnings().length > 0);
        else {
          await locks.withLock('order', () => undefined);
          await setRules(
            'resetchannels',
            '&redisson_lock__channel:*',
            ...taken.filter((rule) => rule[0] !== '&'),
          );
        }
        const lease = await other.locks.acquire('order');
        const waiting = locks.acquire('order', { waitMs: 60_000 });
        await lab.waiting('order');
        await lease.release();
        await (await within(SOON_MS, waiting)).release();
        await until(() => queueWarnings().length > 0);
        await locks.withLock('order', () => undefined);
        expect(queueWarnings()).toHaveLength(1);
      } finally {
        await app.close();
      }
    },
  );
});

describe('a Redis user with every right but one', () => {
  it.each(QUEUE_RULES)('%s: locks work without a line, and the warning names it', async (rule) => {
    const user = await userWith(DOCUMENTED_RULES.filter((one) => one !== rule));
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    await useEverything(one, two);
    for (const opened of [one, two]) expect(warnings(opened).map(rulesIn)).toEqual([[rule]]);
    expect([...(await refused())]).toEqual([nameOf(rule)]);
    expect(await queues()).toEqual([]);
    expect(await lab.grantChannels()).toEqual([]);
  });

  it('not even that: it stands in line, and nothing is said', async () => {
    const user = await userWith(DOCUMENTED_RULES);
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    const lease = await one.locks.acquire('order');
    const waiting = two.locks.acquire('order', { waitMs: 60_000 });
    await until(() => lab.admin.exists(queueOf('order')));
    expect((await one.locks.inspect('order'))?.waiting).toHaveLength(1);
    await lease.release();
    await (await within(SOON_MS, waiting)).release();
    expect([...warnings(one), ...warnings(two)]).toEqual([]);
    expect([...(await refused())]).toEqual([]);
  });

  /** As an operator would take it away. */
  const taking = (rule: string): string[] =>
    rule.startsWith('&') ? ['resetchannels', '&redisson_lock__channel:*'] : [rule.replace('+', '-')];

  it.each(NOTICED_AT_ONCE)(
    '%s, taken away while the app runs: all who wait are served, and one warning says so',
    async (rule) => {
      const user = await userWith(DOCUMENTED_RULES);
      const [one, two, three] = [lab.open({}, user), lab.open({}, user), lab.open({}, user)];
      const key = newKey();
      const lease = await one.locks.acquire(key);
      let inside = 0;
      const waits = [two, three].map((opened) =>
        opened.locks.withLock(key, { waitMs: 60_000 }, async () => {
          expect((inside += 1)).toBe(1);
          await opened.locks.ping();
          inside -= 1;
        }),
      );
      await until(async () => (await lab.admin.hget(queueOf(key), 'last')) === '2');
      await lab.waiting(key, 2);
      await setRules(...taking(rule));
      await lease.release();
      await within(SOON_MS, Promise.all(waits));
      // Whatever was tried with the rights of before: it works without them from now on.
      await passOver(two, three);
      await passOver(three, two);
      await until(() => warnings(two).length > 0 && warnings(three).length > 0);
      for (const opened of [two, three]) expect(warnings(opened).map(rulesIn)).toEqual([[rule]]);
      for (const queue of await queues()) expect(await lab.admin.pttl(queue)).not.toBe(-1);
      await lab.nothingLeft(one, two, three);
    },
  );

  it(`${COUNTING}, taken away while the app runs: all who wait are served, in line until the next connection`, async () => {
    const user = await userWith(DOCUMENTED_RULES);
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    await passOver(one, two);
    await setRules(...taking(COUNTING));
    await passOver(two, one);
    await passOver(one, two);
    await lab.admin.call('CLIENT', 'KILL', 'USER', documentedLogin.username);
    await until(() => two.locks.withLock('order', { waitMs: 2_000 }, () => true));
    expect(warnings(two).map(rulesIn)).toEqual([[COUNTING]]);
    await passOver(two, one);
  });

  it.each(QUEUE_RULES)('%s, given back: its next connection stands in line again', async (rule) => {
    const user = await userWith(DOCUMENTED_RULES.filter((one) => one !== rule));
    const [one, two] = [lab.open({}, user), lab.open({}, user)];
    await passOver(one, two);
    await setRules(rule);
    await lab.admin.call('CLIENT', 'KILL', 'USER', documentedLogin.username);
    const works = ({ locks }: OpenLocks) =>
      until(() => locks.withLock('free', { waitMs: 2_000 }, () => true));
    await works(one);
    await works(two);
    const lease = await one.locks.acquire('order');
    const waiting = two.locks.acquire('order', { waitMs: 60_000 });
    await until(() => lab.admin.exists(queueOf('order')));
    await until(async () => (await lab.grantChannels()).length === 1);
    await lease.release();
    await (await within(SOON_MS, waiting)).release();
  });
});

describe('a process without the rights for a line, beside others that have them', () => {
  it('excludes them and is excluded, and all are served', async () => {
    const withQueue = await userWith(DOCUMENTED_RULES);
    await lab.admin.call('ACL', 'SETUSER', 'before', 'reset', ...RULES_WITHOUT_QUEUE);
    const before = { ...withQueue, username: 'before' };
    const services = [lab.open({}, before), lab.open({}, withQueue), lab.open({}, withQueue)];
    const key = newKey();
    let inside = 0;
    const endAt = performance.now() + 3_000;
    const tokens: number[] = [];
    const runsOfEach = await Promise.all(
      services.map(async ({ locks }) => {
        let runs = 0;
        for (; performance.now() < endAt; runs += 1) {
          await locks.withLock(key, { waitMs: 30_000 }, async (lease) => {
            expect((inside += 1)).toBe(1);
            tokens.push(lease.fencingToken);
            await lab.admin.ping();
            inside -= 1;
          });
        }
        return runs;
      }),
    );
    expect(tokens).toEqual([...tokens].sort((a, b) => a - b));
    // Between them there is no order: each is served again and again.
    for (const runs of runsOfEach) expect(runs, String(runsOfEach)).toBeGreaterThan(10);
    expect(services.map((opened) => warnings(opened).length)).toEqual([1, 0, 0]);
    await lab.nothingLeft(...services);
  });

  it('is told of their releases, and they of its own', async () => {
    const withQueue = await userWith(DOCUMENTED_RULES);
    await lab.admin.call('ACL', 'SETUSER', 'before', 'reset', ...RULES_WITHOUT_QUEUE);
    const [before, queueing] = [lab.open({}, { ...withQueue, username: 'before' }), lab.open({}, withQueue)];
    for (let round = 0; round < 5; round += 1) {
      await passOver(before, queueing);
      await passOver(queueing, before);
    }
    const forced = await queueing.locks.acquire('forced');
    const waiting = before.locks.acquire('forced', { waitMs: 60_000 });
    await lab.waiting('forced');
    expect(await before.locks.forceUnlock('forced')).toBe(true);
    await (await within(SOON_MS, waiting)).release();
    expect(await forced.release()).toBe('lost');
  });
});
