import { LockLostError } from 'nest-redis-lock';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { openLocks, type LocksOptions, type OpenLocks } from '../support/redis/open-locks.js';
import { holdName, newKey } from '../support/redis/lab.js';
import { RedisSentinels } from '../support/redis/redis-sentinels.js';
import { ToldClock } from '../support/redis/told-clock.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';
import type { Runtime } from '../../lib/core/runtime.js';

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
    await redis.promote();
    await works(a);
    expect(await lease.verify()).toBe(true);
    expect(a.events('lost')).toEqual([]);
    expect(await open().locks.tryAcquire(lease.key)).toBeNull();
    expect(await lease.release()).toBe('released');
  });

  it('tells a holder at once when the promoted replica has not its hold', async () => {
    // No timer of the service ever fires: what it notices, it notices because of the new connection.
    const a = open({}, new ToldClock().runtime('timeless'));
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
    await redis.promote();
    await works(a);
    expect(await lease.release()).toBe('released');
    // Who asks while there is no master is told so; with its place on the replica it waits on.
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
});
