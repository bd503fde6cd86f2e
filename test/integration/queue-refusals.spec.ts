import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';
import { storeFailure } from '../support/redis/store-failures.js';

/*
 * Commands that Redis may refuse while callers are queued, and foreign data in place of a wait queue. Locks continue.
 */

/** Far below every lease and wait here. */
const SOON_MS = 8_000;

const lab = useLab();

/** Fields of a line that are no places. */
const HEADER = 5;

const queueOf = (key: string): string => `nest_redis_lock:queue:{${holdName(key)}}`;

/** A holder and two waiters of three processes; both waiters stand in line. */
const threeFor = async (key: string) => {
  const [one, two, three] = [lab.open(), lab.open(), lab.open()];
  const lease = await one.locks.acquire(key);
  const waits = [two, three].map(({ locks }) =>
    locks.withLock(key, { waitMs: 60_000 }, ({ fencingToken }) => fencingToken),
  );
  for (const wait of waits) wait.catch(() => undefined);
  await until(async () => (await lab.admin.hlen(queueOf(key))) === HEADER + 4, { what: 'two places' });
  await lab.waiting(key, 2);
  return { lease, waits, services: [one, two, three] };
};

describe('a memory that is full', () => {
  it('blocks no caller: the lock is released, and all queued waiters are served', async () => {
    const key = newKey();
    const { lease, waits, services } = await threeFor(key);
    await lab.admin.config('SET', 'maxmemory', 1);
    try {
      expect(await lease.release()).toBe('released');
      await within(SOON_MS, Promise.all(waits));
    } finally {
      await lab.admin.config('SET', 'maxmemory', 0);
    }
    await lab.nothingLeft(...services);
  });

  it('says nothing of permissions: a process that connects meanwhile enqueues afterwards', async () => {
    const [one, two] = [lab.open(), lab.open()];
    await lab.admin.config('SET', 'maxmemory', 1);
    try {
      await Promise.all([one.locks.ping(), two.locks.ping()]);
      await storeFailure(one.locks.acquire('order'), /OOM/);
    } finally {
      await lab.admin.config('SET', 'maxmemory', 0);
    }
    const lease = await one.locks.acquire('order');
    const waiting = two.locks.acquire('order', { waitMs: 60_000 });
    await until(() => lab.admin.exists(queueOf('order')));
    await lease.release();
    await (await within(SOON_MS, waiting)).release();
    expect([...one.log, ...two.log].filter((entry) => entry.includes('lacks'))).toEqual([]);
  });
});

describe('something else in the place of a line', () => {
  it('from the start: locks work as they do without a line, and it stays as it is', async () => {
    const key = newKey();
    const [one, two] = [lab.open(), lab.open()];
    await lab.admin.set(queueOf(key), 'something else');
    for (let round = 0; round < 3; round += 1) {
      const lease = await one.locks.acquire(key);
      const waiting = two.locks.acquire(key, { waitMs: 60_000 });
      await lab.waiting(key);
      expect(await two.locks.tryAcquire(key)).toBeNull();
      expect(await one.locks.inspect(key)).toMatchObject({ holders: [{ owner: lease.owner }], waiting: [] });
      expect(await lease.release()).toBe('released');
      await (await within(SOON_MS, waiting)).release();
    }
    const forced = await one.locks.acquire(key);
    expect(await two.locks.forceUnlock(key)).toBe(true);
    expect(await forced.release()).toBe('lost');
    expect(await lab.admin.get(queueOf(key))).toBe('something else');
    expect([...one.log, ...two.log].filter((entry) => entry.includes('lacks'))).toEqual([]);
    await lab.admin.del(queueOf(key));
    await lab.nothingLeft(one, two);
  });

  it('while others are queued: they are served, and no waiter waits for the end of a lease', async () => {
    const key = newKey();
    const { lease, waits, services } = await threeFor(key);
    await lab.admin.set(queueOf(key), 'something else');
    expect(await lease.release()).toBe('released');
    await within(SOON_MS, Promise.all(waits));
    await lab.admin.del(queueOf(key));
    await lab.nothingLeft(...services);
  });
});

describe('a fence that gives no token', () => {
  it('while others are queued: the release works, they are notified, and a waiter without a token gets the lock', async () => {
    const key = newKey();
    const { lease, waits, services } = await threeFor(key);
    const unfenced = lab.open({ fencing: false });
    const without = unfenced.locks.withLock(key, { waitMs: 60_000 }, () => 'ran');
    await until(async () => (await lab.admin.hlen(queueOf(key))) === HEADER + 6, { what: 'three places' });
    const [fence] = await lab.admin.keys('nest_redis_lock:fence:{*');
    await lab.admin.set(fence!, 'no number');
    expect(await lease.release()).toBe('released');
    expect(await within(SOON_MS, without)).toBe('ran');
    for (const wait of waits) {
      await expect(within(SOON_MS, wait)).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED', key });
    }
    await lab.nothingLeft(...services, unfenced);
  });
});
