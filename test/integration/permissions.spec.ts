import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { RedisOptions } from 'ioredis';
import { LockConfigurationError, LockService, LockStoreError, RedisLockModule } from 'nest-redis-lock';
import { RedisStore } from 'nest-redis-lock/redis';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { freePort } from '../support/loopback.js';
import {
  documentedLogin,
  DOCUMENTED_RULES,
  FAIR_RULES,
  LIST_RULES,
  OBJECT_RULES,
  PERMIT_RULES,
  QUEUE_RULES,
  READ_WRITE_RULES,
  refusedBy,
  userWith,
} from '../support/redis/documented-user.js';
import { Lab, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { storeFailure } from '../support/redis/store-failures.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

/*
 * The smallest Redis user, as the documents have it, and the rules that other kinds of lock and objects need in addition.
 * Each rule is taken away once, to show that it is needed, and for what. Rules that are removed while an app runs are in
 * permissions-taken-away.spec.ts.
 */
const SOON_MS = 10_000;
const WAIT_MS = 20_000;

/** Asked for only where CLIENT INFO is not known: before Redis 6.2. */
const NEEDED_BY_OLD_SERVERS = '+client|id';

/** With braces and without: what belongs to a key is named in different ways. */
const KEYS = ['order', 'stock:{7}'];
const holdOf = (key: string): string => (key.includes('{') ? `lock:${key}` : `{lock:${key}}`);

const lab = useLab();

const refusals = (): Promise<string[]> => refusedBy(lab.server);
const without = (...rules: readonly string[]) =>
  userWith(
    lab,
    DOCUMENTED_RULES.filter((rule) => !rules.includes(rule)),
  );

/** Waits until a process is subscribed to the channel, does the work, and resolves with what was waited for. */
const woken = async <T>(
  channel: string,
  waiting: Promise<T>,
  place: Lab,
  work: () => Promise<unknown>,
): Promise<T> => {
  const done = until(async () => (await place.channels()).some((name) => name.startsWith(channel)))
    .then(work)
    .then(() => waiting);
  // A user that may not wait fails at once.
  return within(SOON_MS, Promise.race([done, waiting]));
};

/** Takes each key, waits for it in another process, extends, looks, is woken, and ends a lock by force. */
const usePlain = async (user: RedisOptions, place = lab): Promise<void> => {
  const [one, two] = [place.open(SHORT_WATCHDOG, user), place.open({}, user)];
  for (const key of KEYS) {
    const lease = await one.locks.acquire(key);
    const waiting = two.locks.acquire(key, { waitMs: WAIT_MS });
    const next = await woken(`redisson_lock__channel:${holdOf(key)}`, waiting, place, async () => {
      await lease.extend(2_000);
      expect(await two.locks.inspect(key)).toMatchObject({ holders: [{ count: 1 }] });
      expect(await lease.release()).toBe('released');
    });
    await next.release();
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
    const next = await woken(`redisson_sc:${holdOf(key)}`, waiting, lab, () => lease.release());
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
    const next = await woken(`redisson_rwlock:${holdOf(key)}`, waiting, lab, releases);
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
    await woken('redisson_sc:', there.acquire(1, { waitMs: WAIT_MS }), lab, () => here.release());
    await here.addPermits(2);
    await there.drainPermits();
    await there.availablePermits();
    await there.delete();
    const [counted, waited] = [one.locks.countDownLatch(key), two.locks.countDownLatch(key)];
    await counted.trySetCount(2);
    await counted.countDown();
    const open = waited.wait({ waitMs: WAIT_MS });
    await woken('redisson_countdownlatch__channel__', open, lab, () => counted.countDown());
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

interface Kind {
  readonly rules: readonly string[];
  readonly use: (user: RedisOptions) => Promise<void>;
}

const twoProcesses = (user: RedisOptions) => [lab.open({}, user), lab.open({}, user)] as const;
const kind = (rules: readonly string[], use: (one: OpenLocks, two: OpenLocks) => Promise<void>): Kind => ({
  rules,
  use: (user) => use(...twoProcesses(user)),
});

const [PLAIN, OBJECTS] = ['plain locks', 'semaphores and latches'];
const KINDS: Readonly<Record<string, Kind>> = {
  [PLAIN]: { rules: [], use: usePlain },
  'fair locks': kind(FAIR_RULES, useFair),
  permits: kind(PERMIT_RULES, usePermits),
  'read-write locks': kind(READ_WRITE_RULES, useReadWrite),
  [OBJECTS]: kind(OBJECT_RULES, useObjects),
  lists: kind(LIST_RULES, useList),
};

/** The smallest user with these rules in addition. */
const userAlsoWith = (rules: readonly string[]) => userWith(lab, [...DOCUMENTED_RULES, ...rules]);

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
  it.each(Object.entries(KINDS))(
    'may send every command that is needed for %s',
    async (_, { rules, use }) => {
      await use(await userAlsoWith(rules));
      expect(await refusals()).toEqual([]);
    },
  );

  it('may send every command over TLS too; needs its password, and the certificate has to be trusted', async () => {
    await using place = await Lab.start({ tls: true });
    const user = await userWith(place, DOCUMENTED_RULES);
    await usePlain(user, place);
    expect(await refusedBy(place.server)).toEqual([]);
    const open = (redis: RedisOptions) => place.open({ commandTimeoutMs: 400 }, redis).locks;
    await storeFailure(open({ ...user, tls: {} }).acquire('order'), /self-signed/);
    await storeFailure(open({ ...user, password: 'wrong' }).acquire('order'), /WRONGPASS/);
  });

  it('may keep an acquire that is late from arriving: its old connection is ended', async () => {
    const { opened, grants, arrive } = await loseTheWay(await without());
    await lab.nothingLeft(opened);
    arrive();
    expect(await opened.locks.withLock('another', () => 'ran')).toBe('ran');
    expect(await grants()).toBe(1);
    expect(await refusals()).toEqual([]);
  });

  it('has no locks with another prefix', async () => {
    const { locks } = lab.open({ keyPrefix: 'other:' }, await without());
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
    await without();
    for (const name of names) {
      const args = command === 'publish' ? [name, '0'] : [name];
      const reply = await lab.admin.call('ACL', 'DRYRUN', documentedLogin.username, command, ...args);
      expect(reply, name).not.toBe('OK');
    }
  });
});

describe('the smallest user of Redis without', () => {
  const lateAcquireIsUndone = async (user: RedisOptions) => {
    const { opened, grants, arrive } = await loseTheWay(user);
    expect(opened.locks.usage.undoing).toBe(1);
    arrive();
    await until(async () => (await grants()) === 1, { what: 'the late acquire has arrived' });
    await lab.nothingLeft(opened);
    expect(await opened.locks.withLock('order', () => 'ran')).toBe('ran');
  };

  const allWorks =
    (...refused: readonly string[]) =>
    async (user: RedisOptions): Promise<void> => {
      await usePlain(user);
      expect((await refusals()).filter((name) => !refused.includes(name))).toEqual([]);
      expect(await refusals()).not.toEqual([]);
    };

  /** What becomes of a user without a command, where that is not simply a failure of what needs it. */
  const SPECIAL: Readonly<
    Record<string, readonly [what: string, show: (user: RedisOptions) => Promise<void>]>
  > = {
    '+script|exists': ['all works, each connection loads all scripts', allWorks('script|exists')],
    '+script|load': ['all works, scripts are sent in full once', allWorks('script|load')],
    '+client|info +client|kill': ['all works', allWorks('client|info', 'client|kill')],
    '+eval': [
      'all works while SCRIPT LOAD is there, until somebody flushes the scripts',
      async (user) => {
        const { locks } = lab.open({}, user);
        expect(await locks.withLock('order', () => 'ran')).toBe('ran');
        expect(await refusals()).toEqual([]);
        await lab.admin.script('FLUSH');
        await storeFailure(locks.acquire('order'), /eval/);
      },
    ],
    '+info': [
      'all works, and the start has no warning of eviction',
      async (user) => {
        await usePlain(user);
        expect(await refusals()).toEqual([]);
        await lab.admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
        expect(await lab.open({}, user).store.diagnose()).toEqual([]);
        await lab.admin.config('SET', 'maxmemory-policy', 'noeviction');
        expect(new Set(await refusals())).toEqual(new Set(['info']));
      },
    ],
    '+ping': [
      'locks work, ping() says that the permission is missing',
      async (user) => {
        const { locks } = lab.open({}, user);
        expect(await locks.withLock('order', () => 'ran')).toBe('ran');
        await storeFailure(locks.ping(), /ping/);
      },
    ],
    '+select': [
      'locks in database 0 work, in another one nothing does',
      async (user) => {
        expect(await lab.open({}, user).locks.withLock('order', () => 'ran')).toBe('ran');
        await storeFailure(lab.open({}, { ...user, db: 1 }).locks.acquire('order'), /SELECT/);
      },
    ],
    '+client|kill': ['an acquire that is late arrives, and is found and undone', lateAcquireIsUndone],
    '+client|info': ['an acquire that is late arrives, and is found and undone', lateAcquireIsUndone],
    '+subscribe': [
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
    '+unsubscribe': [
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
    '+publish': [
      'the release fails before it has changed anything, and says so',
      async (user) => {
        const lease = await lab.open({}, user).locks.acquire('order');
        await storeFailure(lease.release(), /can't run this command/);
        expect(await refusals()).toContain('publish');
        expect(await lab.hold('order')).not.toBeNull();
      },
    ],
  };

  it.each(Object.entries(SPECIAL).map(([rules, [what, show]]) => [rules, what, show] as const))(
    '%s: %s',
    async (rules, _what, show) => {
      expect(DOCUMENTED_RULES).toEqual(expect.arrayContaining(rules.split(' ')));
      await show(await without(...rules.split(' ')));
    },
  );

  const plainRules = DOCUMENTED_RULES.filter(
    (rule) =>
      /^[~&+]/.test(rule) && !(rule in SPECIAL) && ![...QUEUE_RULES, NEEDED_BY_OLD_SERVERS].includes(rule),
  );
  const EACH_RULE = Object.entries(KINDS).flatMap(([name, { rules, use }]) =>
    (name === PLAIN ? plainRules : rules).map((rule) => ({ name, rules, rule, use })),
  );

  it.each(EACH_RULE)('$rule: $name fail by its name, and nothing else was refused', async (row) => {
    const { name, rules, rule, use } = row;
    const user = await userWith(
      lab,
      [...DOCUMENTED_RULES, ...rules].filter((one) => one !== rule),
    );
    const failure = await use(user).catch((error: unknown) => error);
    // Without LRANGE a fair lock works, and inspect() shows no waiters of it.
    if (rule !== '+lrange') expect(failure).toBeInstanceOf(LockStoreError);
    if (name === PLAIN && rule.startsWith('+'))
      expect(String(failure)).toMatch(/can't run this command|no permissions to run/);
    const names = await refusals();
    expect(names).not.toEqual([]);
    const wanted = rule.slice(1).replace(/\*.*$/, '');
    expect(names.filter((name) => !name.startsWith(wanted))).toEqual([]);
    // No hold of a lock stays without an end. A semaphore has none.
    if (name !== OBJECTS) for (const key of KEYS) expect(await lab.admin.pttl(`lock:${key}`)).not.toBe(-1);
  });

  it('the rule for lists: the error names it', async () => {
    const [one] = twoProcesses(await without());
    await expect(one.locks.list()).rejects.toThrow(/lacks the ACL rule \+scan.*permissions\.md/);
  });

  it('the rules for permits: lists have no permits, and values that are no lock break none', async () => {
    const [admin] = [lab.open()];
    await using _permit = await admin.locks.permits('crm', { permits: 1 }).acquire();
    await using _read = await admin.locks.acquire('report', { mode: 'read' });
    await lab.admin.set('lock:text', 'a string');
    await lab.admin.sadd('lock:set', 'a');
    const [one] = twoProcesses(await userAlsoWith(LIST_RULES));
    expect((await one.locks.list()).locks).toMatchObject([{ key: 'report', kind: 'read' }]);
    const [, two] = twoProcesses(await userAlsoWith([...LIST_RULES, ...PERMIT_RULES]));
    const { locks } = await two.locks.list();
    expect(locks.map(({ key }) => key).sort()).toEqual(['crm', 'report']);
  });

  it('the rules of other kinds: it still uses plain locks, and hears what is refused', async () => {
    const [one, two] = twoProcesses(await without());
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

/** Returns what keeps an app of this Redis user from starting; undefined when it starts. */
const startFailure = async (redis: object, commandTimeoutMs = 2_000): Promise<unknown> => {
  const store = new RedisStore({ redis, commandTimeoutMs });
  @Module({ imports: [RedisLockModule.forRoot({ store })] })
  class AppModule {}
  try {
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
    await app.close();
    return undefined;
  } catch (error) {
    return error;
  }
};

describe('an app whose Redis user lacks a right for the wait queue', () => {
  it.each([...QUEUE_RULES, '+publish', '~nest_redis_lock:*'])(
    '%s: does not start, and is told which',
    async (rule) => {
      const user = await without(rule);
      const failure = await startFailure(user);
      expect(failure).toBeInstanceOf(LockConfigurationError);
      expect((failure as Error).message).toContain(`lacks these ACL rules: ${rule}. `);
      await lab.nothingLeft();
    },
  );

  it('all: is told all of them at once', async () => {
    const failure = (await startFailure(await without(...QUEUE_RULES))) as Error;
    const named = /lacks these ACL rules: (.*?)\. /.exec(failure.message)?.[1]?.split(' ');
    expect(new Set(named)).toEqual(new Set(QUEUE_RULES));
  });

  it('none: starts, and leaves no key of the check', async () => {
    expect(await startFailure(await without())).toBeUndefined();
    expect(await lab.admin.keys('*')).toEqual([]);
  });

  it('and whose Redis is full: is not told of rights', async () => {
    const user = await without();
    await lab.admin.config('SET', 'maxmemory', 1);
    try {
      expect(await startFailure(user)).toBeUndefined();
    } finally {
      await lab.admin.config('SET', 'maxmemory', 0);
    }
  });
});

describe('an app whose Redis cannot be reached', () => {
  it('starts without a wait for the command time-out', async () => {
    const startedAt = performance.now();
    const redis = { port: await freePort() };
    expect(await startFailure(redis, 2 * SOON_MS)).toBeUndefined();
    expect(performance.now() - startedAt).toBeLessThan(SOON_MS);
  });
});

it('a service in the app hears nothing of rights that it has', async () => {
  @Module({ imports: [RedisLockModule.forRoot({ redis: await without() })] })
  class AppModule {}
  const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
  try {
    expect(await app.get(LockService).withLock('order', () => 'ran')).toBe('ran');
  } finally {
    await app.close();
  }
});
