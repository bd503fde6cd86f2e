import { LockConfigurationError, LockLostError, type LockStoreError } from 'nest-redis-lock';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { openLocks, type LocksOptions, type OpenLocks } from '../support/redis/open-locks.js';
import { holdName, newKey } from '../support/redis/lab.js';
import { RedisSentinels } from '../support/servers/redis-sentinels.js';
import type { RedisServer } from '../support/servers/redis-server.js';
import { ManualClock } from '../support/redis/manual-clock.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';
import type { Runtime } from '../../lib/core/util/runtime.js';

failOnUnhandledRejections();

/** Longer than a promotion takes, on a machine that has much else to do. */
const PATIENCE_MS = 60_000;
const TEST_MS = 120_000;

describe('Redis behind Sentinel', { timeout: TEST_MS }, () => {
  let redis: RedisSentinels;
  const opened: OpenLocks[] = [];

  const open = (options: LocksOptions = {}, runtime?: Runtime): OpenLocks => {
    const one = openLocks(redis.options, { watchdogMs: PATIENCE_MS, ...options }, runtime);
    opened.push(one);
    return one;
  };

  /** Asks until there is a master again. */
  const works = ({ locks }: OpenLocks): Promise<unknown> =>
    until(() => locks.ping().then(() => true), {
      timeoutMs: PATIENCE_MS,
      what: 'the locks have a master again',
    });

  /** Locks until a hold is on this server, within 4 s; a promotion by hand leaves the old master a master for about 10 s. */
  const locksOn = ({ locks }: OpenLocks, server: RedisServer): Promise<unknown> =>
    until(
      async () => {
        const lease = await locks.tryAcquire(newKey()).catch(() => null);
        const isThere = lease && (await server.cli('EXISTS', holdName(lease.key))) === 1;
        await lease?.release();
        return isThere;
      },
      { timeoutMs: 4_000, what: 'the service locks on this server' },
    );

  beforeEach(async () => {
    redis = await RedisSentinels.start();
    return () => redis[Symbol.asyncDispose]();
  }, TEST_MS);
  afterEach(async () => {
    for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
  });

  it('takes locks on the master, and one of two services waits for the other', async () => {
    const [a, b] = [open(), open()];
    const key = newKey();
    const lease = await a.locks.acquire(key);
    expect(await b.locks.tryAcquire(key)).toBeNull();
    const waiting = b.locks.acquire(key, { waitMs: PATIENCE_MS });
    expect(await (await redis.master()).cli('EXISTS', holdName(key))).toBe(1);
    await lease.release();
    await (await waiting).release();
  });

  it('keeps a lock through a promotion, when the replica had it', async () => {
    const a = open();
    const lease = await a.locks.acquire(newKey());
    await redis.inStep();
    await locksOn(a, await redis.promote());
    expect(await lease.verify()).toBe(true);
    expect(a.events('lost')).toEqual([]);
    expect(await open().locks.tryAcquire(lease.key)).toBeNull();
    expect(await lease.release()).toBe('released');
  });

  it('waits for a string of another library through a promotion, with foreignHold', async () => {
    const a = open({ foreignHold: 'taken' });
    const key = newKey();
    await (await redis.master()).cli('SET', holdName(key), 'x', 'PX', String(2 * PATIENCE_MS));
    const waiting = a.locks.acquire(key, { waitMs: PATIENCE_MS });
    await until(() => a.store.subscriptions > 0);
    await redis.inStep();
    const promoted = await redis.promote();
    await locksOn(a, promoted);
    expect(await a.locks.tryAcquire(key)).toBeNull();
    expect(await promoted.cli('DEL', holdName(key))).toBe(1);
    expect(await (await waiting).release()).toBe('released');
  });

  it('tells a holder at once when the promoted replica has not its hold', async () => {
    // No timer of the service ever fires: what it notices, it notices because of the new connection.
    const a = open({}, new ManualClock().runtime('timeless'));
    const lease = await a.locks.acquire(newKey());
    await redis.inStep();
    const [, replica] = redis.servers;
    await replica!.cli('CONFIG', 'SET', 'replica-read-only', 'no');
    expect(await replica!.cli('DEL', holdName(lease.key))).toBe(1);
    await redis.promote();
    await until(() => lease.signal.aborted, { timeoutMs: PATIENCE_MS, what: 'the holder was told' });
    expect(lease.loss).toBeInstanceOf(LockLostError);
    expect(a.events('lost')).toMatchObject([{ key: lease.key, reason: 'refused' }]);
    expect(await lease.release()).toBe('lost');
  });

  it('serves who waits when the lock is released on the new master', async () => {
    const [a, b] = [open(), open()];
    const lease = await a.locks.acquire(newKey());
    const waiting = b.locks.acquire(lease.key, { waitMs: PATIENCE_MS });
    const done = waiting.then(
      (next) => next.release(),
      (failure: unknown) => failure,
    );
    await until(async () => (await a.locks.inspect(lease.key))?.waiting.length === 1);
    await redis.inStep();
    await locksOn(a, await redis.promote());
    expect(await lease.release()).toBe('released');
    // A new caller fails while there is no master. This one keeps waiting with its queue entry on the replica.
    expect(await done).toBe('released');
  });

  it('works again after the master has died', async () => {
    const a = open({ commandTimeoutMs: 1_000 });
    const before = await redis.master();
    await (await a.locks.acquire(newKey())).release();
    await before.kill('SIGKILL');
    await redis.promoted(before);
    await works(a);
    const lease = await a.locks.acquire(newKey());
    expect(await lease.release()).toBe('released');
    expect(a.events('store-up').length).toBe(a.events('store-down').length);
  });

  it('uses the new master at once after a planned failover, also for the notifications', async () => {
    const [a, b] = [open(), open()];
    const lease = await a.locks.acquire(newKey());
    const waiting = b.locks.acquire(lease.key, { waitMs: PATIENCE_MS });
    await until(async () => (await a.locks.inspect(lease.key))?.waiting.length === 1);
    await redis.inStep();
    const master = await redis.promote();
    await Promise.all([locksOn(a, master), locksOn(b, master)]);
    expect(await lease.verify()).toBe(true);
    expect(await lease.release()).toBe('released');
    await (await waiting).release();
  });

  it('hears of a planned failover after all sentinels were restarted', async () => {
    const a = open();
    await (await a.locks.acquire(newKey())).release();
    for (const sentinel of redis.sentinels) await sentinel.kill('SIGKILL');
    for (const sentinel of redis.sentinels) await sentinel.restart();
    for (const sentinel of redis.sentinels) {
      await until(async () => (await sentinel.text('CLIENT', 'LIST')).includes('cmd=subscribe'), {
        what: 'the service listens to the sentinel again',
      });
    }
    await locksOn(a, await redis.promote());
  });

  it('starts and recovers although the first sentinel hangs', async () => {
    const before = open();
    await (await before.locks.acquire(newKey())).release();
    await redis.sentinels[0]!.kill('SIGSTOP');
    try {
      for (let i = 0; i < redis.sentinels.length; i++) {
        await redis.servers[0]!.cli('CLIENT', 'KILL', 'TYPE', 'normal', 'SKIPME', 'yes');
        await locksOn(before, redis.servers[0]!);
      }
      await (await open().locks.acquire(newKey())).release();
    } finally {
      await redis.sentinels[0]!.kill('SIGCONT');
    }
  });

  it('as a single address keeps an app from starting, also in a quorum, and the error says what to give', async () => {
    const [{ url, port }] = redis.sentinels as [RedisServer];
    const others = redis.servers.map((server) => server.url);
    for (const source of [url, [url, ...others]]) {
      const one = openLocks(source);
      opened.push(one);
      const starting = one.store.diagnose();
      await expect(starting).rejects.toBeInstanceOf(LockConfigurationError);
      await expect(starting).rejects.toThrow(/is a Sentinel.* redis: \{ sentinels: /);
      if (source !== url) await expect(starting).rejects.toThrow(`127.0.0.1:${port}: `);
    }
  });

  it('names the sentinels that did not reply in the error', async () => {
    const [first, second, third] = redis.sentinels;
    await first!.kill('SIGKILL');
    await second!.kill('SIGKILL');
    await third!.kill('SIGSTOP');
    try {
      const { message } = await open()
        .locks.tryAcquire(newKey())
        .then(
          () => new Error('no error'),
          (error: LockStoreError) => error,
        );
      expect(message).toContain('sentinels that did not name the master');
      for (const { port } of redis.sentinels) expect(message).toContain(`127.0.0.1:${port}`);
    } finally {
      await third!.kill('SIGCONT');
    }
  });
});
