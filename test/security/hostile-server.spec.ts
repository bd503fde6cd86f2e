import { LockError, LockStoreError, type Lease, type LockService } from 'nest-redis-lock';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { collectUnhandledRejections, until, type RejectionCollector } from '../support/async.js';
import { openLocks, type LocksOptions, type OpenLocks } from '../support/redis/open-locks.js';
import { inTime } from './support/replies.js';
import { FakeRedis } from './support/fake-redis.js';
import { ERRORS, GARBAGE, NONSENSE, NOTHING, UNFINISHED } from './support/hostile-replies.js';

/*
 * A server that replies as no Redis does: another program on its port, a broken proxy, or an attacker in its place. A
 * server in place of Redis may grant locks as it likes, but no reply of it may be taken for another one.
 */
const COMMAND_TIMEOUT_MS = 400;
const WAIT_MS = 100;

let rejections: RejectionCollector;
beforeEach(() => {
  rejections = collectUnhandledRejections();
});
afterEach(async () => {
  expect(await rejections.finish()).toEqual([]);
});

/** Lets `test` run with each of the answers at the same time, with a server of its own. All end before one fails. */
const withEach = async (
  replies: Readonly<Record<string, string | Buffer>>,
  test: (fake: FakeRedis, reply: string | Buffer, what: string) => Promise<void>,
): Promise<void> => {
  const ends = await Promise.allSettled(
    Object.entries(replies).map(async ([what, reply]) => {
      await using fake = await FakeRedis.start();
      await test(fake, reply, what);
    }),
  );
  for (const end of ends) if (end.status === 'rejected') throw end.reason;
};

const open = (fake: FakeRedis, options: LocksOptions = {}) =>
  openLocks(fake.url, { commandTimeoutMs: COMMAND_TIMEOUT_MS, ...options });

/**
 * The same with locks that are connected. They connect one after the other, and before the first test runs: on a busy
 * machine all of them together take longer than a command may.
 */
const withEachConnected = async (
  replies: Readonly<Record<string, string | Buffer>>,
  test: (opened: OpenLocks, fake: FakeRedis, reply: string | Buffer, what: string) => Promise<void>,
  options: LocksOptions = {},
): Promise<void> => {
  const all: [FakeRedis, OpenLocks, reply: string | Buffer, what: string][] = [];
  try {
    for (const [what, reply] of Object.entries(replies)) {
      const fake = await FakeRedis.start();
      const opened = open(fake, options);
      all.push([fake, opened, reply, what]);
      await opened.locks.ping();
    }
    const ends = await Promise.allSettled(
      all.map(([fake, opened, reply, what]) => test(opened, fake, reply, what)),
    );
    for (const end of ends) if (end.status === 'rejected') throw end.reason;
  } finally {
    for (const [fake, opened] of all) {
      await opened[Symbol.asyncDispose]();
      await fake[Symbol.asyncDispose]();
    }
  }
};

/** What asks a script, by its name. The lease was granted before, on another key. */
const REQUESTS: Readonly<Record<string, (locks: LockService, lease: Lease) => Promise<unknown>>> = {
  acquire: (locks) => locks.acquire('order', { waitMs: WAIT_MS }),
  extend: (_locks, lease) => lease.extend(50_000),
  release: (_locks, lease) => lease.release(),
  inspect: (locks) => locks.inspect('order'),
  forceUnlock: (locks) => locks.forceUnlock('order'),
};

describe.each(Object.entries(REQUESTS))('an answer to %s', (name, request) => {
  /** Expects each of the answers to end the request as a failure of the store, with a cause. */
  const expectFailure = (replies: Readonly<Record<string, string | Buffer>>, outcome: string) =>
    withEachConnected(replies, async ({ locks }, fake, reply, what) => {
      const lease = await locks.acquire('granted before');
      const before = fake.requestCount(name);
      fake.reply(name, reply);
      const requested = inTime(request(locks, lease), WAIT_MS, COMMAND_TIMEOUT_MS);
      const error: unknown = await requested.catch((thrown: unknown) => thrown);
      expect(fake.requestCount(name) - before, `${what}: it is not asked again and again`).toBeLessThan(5);
      fake.reply(name, undefined);
      expect(error, what).toBeInstanceOf(LockStoreError);
      expect(error, what).toMatchObject({ outcome, cause: expect.any(Error) as Error });
      expect(lease.remainingMs(), what).toBeLessThanOrEqual(30_000);
      // Unknown outcomes are settled in the background, now that the server replies properly.
      await until(() => locks.usage.undoing === 0, { what: `${what}: all is settled` });
    });

  it('that no script gives: the outcome is unknown', () =>
    expectFailure({ ...NONSENSE, ...(name !== 'inspect' && NOTHING) }, 'unknown'));

  it('that is an error: nothing happened', () => expectFailure(ERRORS, 'not-executed'));

  it('that is not even RESP: the outcome is unknown', () => expectFailure(GARBAGE, 'unknown'));

  it('that never ends: the outcome is unknown', () => expectFailure(UNFINISHED, 'unknown'));
});

describe('an answer to a batch', () => {
  const CALLERS = 5;
  const OF_ONE = {
    'one answer too few': `*${CALLERS - 1}\r\n${':1\r\n'.repeat(CALLERS - 1)}`,
    'one answer too many': `*${CALLERS + 1}\r\n${':1\r\n'.repeat(CALLERS + 1)}`,
    'nonsense for one of them': `*${CALLERS}\r\n$16\r\n1700000000000000\r\n:-7\r\n${':9\r\n'.repeat(CALLERS - 2)}`,
    'two errors for one of them': `*${CALLERS}\r\n*2\r\n+a\r\n+b\r\n${':9\r\n'.repeat(CALLERS - 1)}`,
  };

  /** The first caller is alone and gets its lock; what the others are told at once. */
  const failuresOf = async (
    { locks }: OpenLocks,
    fake: FakeRedis,
    reply: string | Buffer,
    what: string,
  ): Promise<unknown[]> => {
    fake.reply('batch', reply);
    const keys = Array.from({ length: CALLERS + 1 }, (_, i) => `key-${i}`);
    const requested = keys.map((key) => locks.acquire(key, { waitMs: 0 }));
    const [first, ...others] = await inTime(Promise.allSettled(requested), WAIT_MS, COMMAND_TIMEOUT_MS);
    expect([first!.status, fake.requestCount('batch')], what).toEqual(['fulfilled', 1]);
    fake.reply('batch', undefined);
    await until(() => locks.usage.undoing === 0, { what: `${what}: all is settled` });
    return others.map((end) => (end.status === 'rejected' ? end.reason : end.value) as unknown);
  };

  it('that no script gives, in whole or in part: the outcome is unknown', () =>
    withEachConnected(
      { ...NONSENSE, ...NOTHING, ...GARBAGE, ...UNFINISHED, ...OF_ONE },
      async (opened, fake, reply, what) => {
        const failures = await failuresOf(opened, fake, reply, what);
        expect(failures, what).toHaveLength(CALLERS);
        for (const failure of failures) {
          expect(failure, what).toBeInstanceOf(LockStoreError);
          expect(failure, what).toMatchObject({ outcome: 'unknown', cause: expect.any(Error) as Error });
        }
      },
    ));

  it('that is an error: each is asked for by itself', () =>
    withEachConnected(ERRORS, async (opened, fake, reply, what) => {
      const leases = await failuresOf(opened, fake, reply, what);
      expect(
        leases.map((lease) => lease instanceof Error),
        what,
      ).toEqual(leases.map(() => false));
      expect(fake.requestCount('acquire'), what).toBe(CALLERS + 1);
    }));
});

describe('a renewal that is answered with nonsense', () => {
  const PER_LEASE = { 'a list of one nothing': '*1\r\n$-1\r\n', 'a list of one -2': '*1\r\n:-2\r\n' };

  it('does not keep a lease alive: it is lost when it is over', () =>
    withEachConnected(
      { ...NONSENSE, ...NOTHING, ...PER_LEASE },
      async (opened, fake, reply, what) => {
        const lease = await opened.locks.acquire('order');
        fake.reply('extend', reply);
        await until(() => lease.signal.aborted, { what: `the lease is lost: ${what}` });
        expect(fake.requestCount('extend'), what).toBeGreaterThan(0);
        expect(opened.events('lost')).toMatchObject([{ key: 'order', reason: 'expired' }]);
      },
      { watchdogMs: 1_000 },
    ));
});

describe.each(['ping', 'client', 'script'])('a greeting (%s)', (name) => {
  it('that makes no sense harms nothing, if the connection can be used', () =>
    withEach({ ...NONSENSE, ...NOTHING }, async (fake, reply, what) => {
      fake.reply(name, reply);
      await using opened = open(fake, { commandTimeoutMs: 5_000 });
      expect(await opened.locks.withLock('order', { waitMs: 0 }, () => 'ran'), what).toBe('ran');
    }));

  it('that is no RESP, or never ends, is a failure of the store, and is not tried again without a pause', () =>
    withEach({ ...GARBAGE, ...UNFINISHED }, async (fake, reply, what) => {
      fake.reply(name, reply);
      await using opened = open(fake);
      const requested = inTime(opened.locks.acquire('order'), 0, COMMAND_TIMEOUT_MS);
      const error: unknown = await requested.catch((thrown: unknown) => thrown);
      expect(error, what).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'not-executed' });
      // Two connections a try, and ever longer between tries.
      expect(fake.connections, what).toBeLessThan(20);
    }));
});

describe('a server that has stopped to reply', () => {
  it.each([
    ['ping', (opened: OpenLocks) => opened.locks.ping()],
    ['scan', (opened: OpenLocks) => opened.locks.list()],
  ] as const)('is not sent each of 1,000 requests at once (%s)', async (name, ask) => {
    await using fake = await FakeRedis.start();
    await using opened = open(fake);
    await opened.locks.ping();
    fake.reply(name, '');
    const before = fake.requestCount(name);
    const ends = await Promise.allSettled(Array.from({ length: 1_000 }, () => ask(opened)));
    expect(new Set(ends.map(({ status }) => status))).toEqual(new Set(['rejected']));
    // As many as the window of a new connection has places. Their time ends on the second one.
    expect(fake.requestCount(name) - before).toBeLessThanOrEqual(2 * 64);
  });
});

describe('unrequested data', () => {
  const UNSOLICITED: Readonly<Record<string, string>> = {
    'ten thousand errors': '-ERR no\r\n'.repeat(10_000),
    'ten thousand numbers': ':7\r\n'.repeat(10_000),
    'grants for everybody': '$16\r\n1700000000000000\r\n'.repeat(100),
    'messages of channels nobody listens to': '*3\r\n$7\r\nmessage\r\n$1\r\nx\r\n$1\r\n0\r\n'.repeat(1_000),
    'ten thousand pushes': '>2\r\n+news\r\n:1\r\n'.repeat(10_000),
  };

  /** What becomes of an inspect() whose answer stands behind all that. */
  const INSPECTED: Readonly<Record<string, string>> = {
    'ten thousand errors': 'not-executed',
    'ten thousand numbers': 'unknown',
    'grants for everybody': 'unknown',
    'messages of channels nobody listens to': 'unknown',
    // In RESP3 a push answers nothing.
    'ten thousand pushes': 'answered',
  };

  it('ends in errors of the library at most, and all works on a new connection', () =>
    withEachConnected(
      UNSOLICITED,
      async ({ locks }, fake, bytes, what) => {
        fake.say(bytes);
        const requested = [
          locks.tryAcquire('a').then((lease) => lease?.key ?? 'a'),
          locks.inspect('a').then((state) => state?.holders[0]?.owner),
          locks.withLock('b', () => 'ran'),
          locks.ping().then(() => 'PONG'),
        ];
        const ends = await inTime(Promise.allSettled(requested), 5_000, COMMAND_TIMEOUT_MS);
        const replies = ends.map((end) => (end.status === 'rejected' ? (end.reason as unknown) : end.value));
        const orError = (reply: string) =>
          expect.toSatisfy((one) => one === reply || one instanceof LockError) as unknown;
        expect(replies, what).toEqual(['a', 'somebody:1', 'ran', 'PONG'].map(orError));
        const [, inspected] = replies;
        expect(inspected instanceof LockStoreError ? inspected.outcome : 'answered', what).toBe(
          INSPECTED[what],
        );
        fake.hangUp();
        await until(() => locks.withLock('order', { waitMs: 0 }, () => true), { what: 'locks work again' });
      },
      { watchdogMs: 1_500 },
    ));
});
