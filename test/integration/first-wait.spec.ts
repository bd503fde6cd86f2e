import type { Lease } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';
import { ManualClock } from '../support/redis/manual-clock.js';

/*
 * What a process does when a caller of it waits for the first time: it opens the connection that listens, and its place
 * in line is deaf until that hears.
 */

/** Far below every lease and wait here. */
const SOON_MS = 5_000;

const lab = useLab();

const connections = async (): Promise<number> => {
  const clients = (await lab.admin.client('LIST')) as string;
  // One of them is this test's own.
  return clients.trim().split('\n').length - 1;
};

/** The only place in the line for a key: whether it is deaf. */
const isNotSubscribed = async (key: string): Promise<boolean | undefined> => {
  const entry = await lab.admin.hget(`nest_redis_lock:queue:{${holdName(key)}}`, '1');
  return entry === null ? undefined : entry.split(' ')[5] === '1';
};

/** How often Redis was asked with a script, on any connection. */
const requestCount = async (): Promise<number> => {
  const { evalsha = 0, eval: inFull = 0 } = await lab.calls();
  return evalsha + inFull;
};

describe('the connection that listens', () => {
  it('is not opened by locks that are free, nor by callers that do not wait', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const lease = await one.locks.acquire('order');
    await two.locks.withLock('stock', () => undefined);
    expect(await two.locks.tryAcquire('order')).toBeNull();
    await two.locks.inspect('order');
    await two.locks.ping();
    await lease.release();
    expect(await connections()).toBe(2);
    expect(await lab.grantChannels()).toEqual([]);
  });

  it('is opened by the first who waits, and stays', async () => {
    const [one, two] = [lab.open(), lab.open()];
    for (let round = 0; round < 2; round += 1) {
      // A line that is remembered could have the first of them wait, too.
      const key = newKey();
      const lease = await one.locks.acquire(key);
      const waiting = two.locks.acquire(key, { waitMs: 60_000 });
      await lab.waiting(key);
      expect(await connections()).toBe(3);
      await lease.release();
      await (await within(SOON_MS, waiting)).release();
    }
    await lab.nothingLeft(one, two);
    expect(await connections()).toBe(3);
    expect(await lab.grantChannels()).toHaveLength(1);
  });

  it('is waited for by a deaf place, which is granted without a message and finds it', async () => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.open({}, proxy.url)];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    await waiter.locks.ping();
    // From now on it gets no further connection.
    proxy.refuse();
    const waiting = waiter.locks.acquire(key, { waitMs: 60_000 });
    await until(async () => (await isNotSubscribed(key)) === true, { what: 'a deaf place' });
    await lease.release();
    const granted = await until(async () => (await lab.hold(key))?.owner);
    expect(granted).not.toBe(lease.owner);
    const own = await within(SOON_MS, waiting);
    expect(own.owner).toBe(granted);
    expect(await lab.grantChannels()).toEqual([]);
    await own.release();
    await proxy.restore();
  });

  it('finds a grant that came before its subscription: that owner keeps it, and it is not released', async () => {
    const holder = lab.open();
    for (let round = 0; round < 10; round += 1) {
      const key = newKey();
      // No time passes between its question and the answer, which must not make the grant look fresh.
      const waiter = lab.openTimeless();
      const lease = await holder.locks.acquire(key);
      const waiting = waiter.locks.acquire(key, { waitMs: 60_000 });
      await lab.waiting(key);
      await lease.release();
      const own = await within(SOON_MS, waiting);
      expect(own.owner).toMatch(/:1$/);
      expect(await own.release()).toBe('released');
    }
  });

  it('makes the place hear as soon as it is open', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const waiting = waiter.locks.acquire(key, { waitMs: 60_000 });
    await until(async () => (await isNotSubscribed(key)) === false, { what: 'a place that hears' });
    await lease.release();
    await (await within(SOON_MS, waiting)).release();
  });
});

describe('what a wait costs', () => {
  it.each([
    ['the first, which opens the connection that listens', 0],
    ['a later one', 1],
  ])('%s: one question to stand in line, and one when it can be heard', async (_which, before) => {
    // Its place is not kept a second time: that would take a second.
    const clock = new ManualClock();
    let now = 0;
    const [holder, waiter] = [lab.open(), lab.open({}, undefined, clock.runtime('waiter'))];
    await Promise.all([holder.locks.ping(), waiter.locks.ping()]);
    const served = async (waiting: Promise<Lease>): Promise<void> => {
      let lease: Lease | undefined;
      void waiting.then((own) => (lease = own));
      await until(() => (clock.moveTo((now += 10)), lease !== undefined));
      await lease!.release();
    };
    for (let i = 0; i < before; i += 1) {
      const lease = await holder.locks.acquire('before');
      const waiting = waiter.locks.acquire('before', { waitMs: 60_000 });
      await until(async () => (await isNotSubscribed('before')) === false);
      await lease.release();
      await served(waiting);
    }
    const key = newKey();
    const lease = await holder.locks.acquire(key, { leaseMs: 600_000 });
    const counted = await requestCount();
    const waiting = waiter.locks.acquire(key, { waitMs: 60_000 });
    await lab.waiting(key);
    await until(async () => (await isNotSubscribed(key)) === false && (await requestCount()) >= counted + 2);
    await waiter.locks.ping();
    expect(await requestCount()).toBe(counted + 2);
    await lease.release();
    await served(waiting);
  });
});
