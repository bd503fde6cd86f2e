import { LockStoreError } from 'nest-redis-lock';
import type { RedisOptions } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import {
  documentedLogin,
  DOCUMENTED_RULES,
  QUEUE_RULES,
  userWith,
} from '../support/redis/documented-user.js';
import { holdName, Lab, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import { storeFailure } from '../support/redis/store-failures.js';

/*
 * The smallest Redis user, as the documents have it. Each of its commands and patterns is taken away once, to show that
 * it is needed, and for what. The rules for the wait queue are in permissions-queue.spec.ts.
 */
const COMMANDS = DOCUMENTED_RULES.filter((rule) => rule.startsWith('+') && !QUEUE_RULES.includes(rule)).map(
  (rule) => rule.slice(1),
);
const PATTERNS = DOCUMENTED_RULES.filter((rule) => /^[~&%]/.test(rule) && !QUEUE_RULES.includes(rule));
/** Asked for only where CLIENT INFO is not known: before Redis 6.2. */
const NEEDED_BY_OLD_SERVERS = 'client|id';

const without = (...taken: string[]) => DOCUMENTED_RULES.filter((rule) => !taken.includes(rule.slice(1)));

const lab = useLab();

/** What the server has refused, as its log of refusals has it. */
const refusals = async (place = lab): Promise<string[]> => {
  const entries = (await place.admin.call('ACL', 'LOG')) as unknown[][];
  return entries.map((entry) => `${String(entry[3])} ${String(entry[7])}`);
};

/** With braces and without: their channels are named in different ways. */
const CHANNELS = {
  order: 'redisson_lock__channel:{lock:order}',
  'stock:{7}:size': 'redisson_lock__channel:lock:stock:{7}:size',
};

/** Everything the library does with Redis: taking, waiting, renewing, extending, looking, ending, by force too. */
const useEverything = async (user: RedisOptions, place = lab) => {
  const [one, two] = [place.open(SHORT_WATCHDOG, user), place.open({}, user)];
  for (const [key, channel] of Object.entries(CHANNELS)) {
    const lease = await one.locks.acquire(key);
    const waiting = two.locks.acquire(key, { waitMs: 20_000 });
    const subscribed = until(async () => (await place.channels()).includes(channel));
    // A user that may not subscribe fails without a wait.
    await Promise.race([subscribed, waiting]);
    await lease.extend(2_000);
    expect(await two.locks.inspect(key)).toMatchObject({ holders: [{ count: 1 }] });
    expect(await lease.release()).toBe('released');
    await (await within(5_000, waiting)).release();
  }
  await place.admin.script('FLUSH');
  expect(await one.locks.withLock(['a', 'b'], { leaseMs: 5_000 }, () => 'ran')).toBe('ran');
  const forced = await one.locks.acquire('forced');
  expect(await two.locks.forceUnlock('forced')).toBe(true);
  // By its own renewal, and not by the release below.
  await until(() => forced.signal.aborted);
  expect(await forced.release()).toBe('lost');
  await one.locks.ping();
  const elsewhere = place.open({}, { ...user, db: 1 });
  expect(await elsewhere.locks.withLock('order', () => 'ran')).toBe('ran');
  await place.nothingLeft(one, two, elsewhere);
  expect(one.log.filter((line) => line.includes('does not work'))).toEqual([]);
};

/** An acquire that is still on its way to Redis when its caller has given it up and has a new connection. */
const loseTheWay = async (user: RedisOptions) => {
  const proxy = await lab.proxy();
  const { host, port } = proxy;
  const opened = lab.open({ commandTimeoutMs: 300 }, { ...user, host, port });
  await opened.locks.ping();
  const [way] = proxy.find('ping');
  way!.blackhole(['toServer']);
  expect((await storeFailure(opened.locks.acquire('order'), /did not answer/)).outcome).toBe('unknown');
  // No caller waits here.
  const grants = async () => (await lab.calls())['hset'] ?? 0;
  return { opened, grants, arrive: () => way!.restore() };
};

describe('the smallest user of Redis', () => {
  it.each([{ tls: false }, { tls: true }])(
    'may send every command that the library needs (TLS: $tls)',
    async ({ tls }) => {
      await using place = await Lab.start({ tls });
      await useEverything(await userWith(place, DOCUMENTED_RULES), place);
      expect(await refusals(place)).toEqual([]);
    },
  );

  it('may keep an acquire that is late from arriving: its old connection is ended', async () => {
    const { opened, grants, arrive } = await loseTheWay(await userWith(lab, DOCUMENTED_RULES));
    await lab.nothingLeft(opened);
    arrive();
    expect(await opened.locks.withLock('another', () => 'ran')).toBe('ran');
    expect(await grants()).toBe(1);
    expect(await refusals()).toEqual([]);
  });

  it('needs its password over TLS, and the certificate has to be trusted', async () => {
    await using place = await Lab.start({ tls: true });
    const user = await userWith(place, DOCUMENTED_RULES);
    const open = (redis: RedisOptions) => place.open({ commandTimeoutMs: 400 }, redis).locks;
    await storeFailure(open({ ...user, tls: {} }).acquire('order'), /self-signed/);
    await storeFailure(open({ ...user, password: 'wrong' }).acquire('order'), /WRONGPASS/);
  });

  it('has no locks with another prefix', async () => {
    const { locks } = lab.open({ keyPrefix: 'other:' }, await userWith(lab, DOCUMENTED_RULES));
    await expect(locks.acquire('order')).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
  });

  it.each([
    ['get', ['lock', 'locks:a', 'other:lock:a', 'nest_redis_lock', 'order', 'session:a', '*']],
    ['subscribe', ['redisson_lock__channel', 'redisson_rwlock:{lock:a}', '__keyspace@0__:lock:a', 'news']],
    [
      'publish',
      [
        'redisson_lock__channel:{other:a}',
        'redisson_lock__channel:other:{a}',
        'nest_redis_lock:grant',
        'news',
      ],
    ],
    ['pubsub', ['channels']],
    ['flushall', ['async']],
    ['keys', ['*']],
  ])('can do nothing but lock (%s)', async (command, names) => {
    await userWith(lab, DOCUMENTED_RULES);
    for (const name of names) {
      const args = command === 'publish' ? [name, '0'] : [name];
      const reply = await lab.admin.call('ACL', 'DRYRUN', documentedLogin.username, command, ...args);
      expect(reply, name).not.toBe('OK');
    }
  });
});

describe('the smallest user of Redis without', () => {
  it.each(PATTERNS)('%s: what has such a name fails, and nothing else was refused', async (pattern) => {
    const user = await userWith(
      lab,
      DOCUMENTED_RULES.filter((rule) => rule !== pattern),
    );
    await expect(useEverything(user)).rejects.toBeInstanceOf(LockStoreError);
    const names = (await refusals()).map((refusal) => refusal.replace(/^\w+ /, ''));
    const prefix = pattern.slice(1).replace(/\*$/, '');
    expect(names.length).toBeGreaterThan(0);
    expect(names.filter((name) => !name.startsWith(prefix))).toEqual([]);
  });

  const lateAcquireIsUndone = async (user: RedisOptions) => {
    const { opened, grants, arrive } = await loseTheWay(user);
    expect(opened.locks.usage.undoing).toBe(1);
    arrive();
    await until(async () => (await grants()) === 1, { what: 'the late acquire has arrived' });
    await lab.nothingLeft(opened);
    expect(await opened.locks.withLock('order', () => 'ran')).toBe('ran');
  };

  /** What becomes of a user without one of the commands, where that is not simply a failure of what needs it. */
  const SPECIAL: Readonly<
    Record<string, readonly [what: string, show: (user: RedisOptions) => Promise<void>]>
  > = {
    'script|exists': [
      'all works, each connection loads all scripts',
      async (user) => {
        await useEverything(user);
        expect(new Set(await refusals())).toEqual(new Set(['command script|exists']));
      },
    ],
    'script|load': [
      'all works, scripts are sent in full once',
      async (user) => {
        await useEverything(user);
        expect(new Set(await refusals())).toEqual(new Set(['command script|load']));
      },
    ],
    eval: [
      'all works while SCRIPT LOAD is there, until somebody flushes the scripts',
      async (user) => {
        const { locks } = lab.open({}, user);
        expect(await locks.withLock('order', () => 'ran')).toBe('ran');
        expect(await refusals()).toEqual([]);
        await lab.admin.script('FLUSH');
        await storeFailure(locks.acquire('order'), /eval/);
      },
    ],
    info: [
      'all works, and the start has no warning of eviction',
      async (user) => {
        await useEverything(user);
        expect(await refusals()).toEqual([]);
        await lab.admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
        expect(await lab.open({}, user).store.diagnose()).toEqual([]);
        await lab.admin.config('SET', 'maxmemory-policy', 'noeviction');
        expect(new Set(await refusals())).toEqual(new Set(['command info']));
      },
    ],
    ping: [
      'locks work, ping() says that the permission is missing',
      async (user) => {
        const { locks } = lab.open({}, user);
        expect(await locks.withLock('order', () => 'ran')).toBe('ran');
        await storeFailure(locks.ping(), /ping/);
      },
    ],
    select: [
      'locks in database 0 work, in another one nothing does',
      async (user) => {
        expect(await lab.open({}, user).locks.withLock('order', () => 'ran')).toBe('ran');
        await storeFailure(lab.open({}, { ...user, db: 1 }).locks.acquire('order'), /SELECT/);
      },
    ],
    'client|kill': ['an acquire that is late arrives, and is found and undone', lateAcquireIsUndone],
    'client|info': ['an acquire that is late arrives, and is found and undone', lateAcquireIsUndone],
    subscribe: [
      'free locks work, waiting for a taken one is a failure of the store that says so',
      async (user) => {
        const [one, two] = [lab.open({}, user), lab.open({}, user)];
        const lease = await one.locks.acquire('order');
        await storeFailure(two.locks.acquire('order', { waitMs: 20_000 }), /SUBSCRIBE/);
        expect(await two.locks.tryAcquire('order')).toBeNull();
        await lease.release();
        expect(await two.locks.withLock('order', () => 'ran')).toBe('ran');
      },
    ],
    unsubscribe: [
      'locks work, but the server keeps every subscription until the connection ends',
      async (user) => {
        const [one, two] = [lab.open({}, user), lab.open({}, user)];
        for (const key of ['order', 'stock']) {
          const lease = await one.locks.acquire(key);
          const waiting = two.locks.acquire(key, { waitMs: 20_000 });
          await lab.waiting(key);
          await lease.release();
          await (await within(5_000, waiting)).release();
        }
        expect([await lab.listeners('order'), await lab.listeners('stock')]).toEqual([1, 1]);
        expect(two.locks.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
        await two.close();
        await lab.nothingLeft();
      },
    ],
    publish: [
      'the release fails before it has changed anything, and says so',
      async (user) => {
        const lease = await lab.open({}, user).locks.acquire('order');
        await storeFailure(lease.release(), /can't run this command/);
        expect(await refusals()).toContain('command publish');
        expect(await lab.hold('order')).not.toBeNull();
      },
    ],
  };

  it.each(Object.entries(SPECIAL).map(([command, [what, show]]) => [command, what, show] as const))(
    '%s: %s',
    async (command, _what, show) => {
      expect(COMMANDS).toContain(command);
      await show(await userWith(lab, without(command)));
    },
  );

  it('client|info and client|kill: everything else works', async () => {
    await useEverything(await userWith(lab, without('client|info', 'client|kill')));
    expect((await refusals()).every((one) => one.includes('client'))).toBe(true);
  });

  it.each(COMMANDS.filter((command) => !(command in SPECIAL) && command !== NEEDED_BY_OLD_SERVERS))(
    '%s: what needs it fails as a failure of the store, and leaves no hold without an end',
    async (command) => {
      const { locks } = lab.open({}, await userWith(lab, without(command)));
      const attempt = async () => {
        const lease = await locks.acquire('order');
        await locks.inspect('order');
        await lease.extend(60_000);
        await locks.forceUnlock('order');
        await lease.release();
      };
      await storeFailure(attempt(), /can't run this command|no permissions to run/);
      expect(await refusals()).toContain(`command ${command}`);
      expect(await lab.admin.pttl(holdName('order'))).not.toBe(-1);
    },
  );
});
