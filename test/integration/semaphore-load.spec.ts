import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { Lab, newKey, useLab } from '../support/redis/lab.js';

/** Long beside what a wake-up takes. */
const SOON_MS = 8_000;
const MAX = 2 ** 31 - 1;

const lab = useLab();

const listening = (key: string): Promise<unknown> =>
  until(async () => (await lab.channels()).includes(`redisson_sc:{lock:${key}}`), {
    what: `somebody listens for permits of ${key}`,
  });

describe('a semaphore under load', () => {
  it('runs no other caller while one caller holds all permits', async () => {
    const services = [lab.open({ waitMs: 30_000 }), lab.open({ waitMs: 30_000 })];
    const key = newKey();
    await services[0]!.locks.semaphore(key).trySetPermits(MAX);
    let [readers, writers, served] = [0, 0, 0];
    const work = async (i: number): Promise<void> => {
      const semaphore = services[i % 2]!.locks.semaphore(key);
      const isAll = i % 5 === 0;
      const permits = isAll ? MAX : 1;
      await semaphore.acquire(permits);
      if (isAll) writers += 1;
      else readers += 1;
      expect([0, 1]).toContain(writers);
      expect(writers === 0 || readers === 0).toBe(true);
      await lab.admin.ping();
      if (isAll) writers -= 1;
      else readers -= 1;
      served += 1;
      await semaphore.release(permits);
    };
    await Promise.all(Array.from({ length: 60 }, (_, i) => work(i)));
    expect(served).toBe(60);
    expect(await services[0]!.locks.semaphore(key).availablePermits()).toBe(MAX);
  });

  it('never grants more permits than it has to callers with different amounts, and gets all back', async () => {
    const services = Array.from({ length: 5 }, () => lab.open({ waitMs: 30_000 }));
    const key = newKey();
    const permits = 40;
    await services[0]!.locks.semaphore(key).trySetPermits(permits);
    let [taken, max] = [0, 0];
    const work = async (i: number): Promise<void> => {
      const semaphore = services[i % 5]!.locks.semaphore(key);
      const amount = 1 + ((i * 7) % permits);
      await semaphore.acquire(amount);
      max = Math.max(max, (taken += amount));
      await lab.admin.ping();
      taken -= amount;
      await semaphore.release(amount);
    };
    await Promise.all(Array.from({ length: 100 }, (_, i) => work(i)));
    expect(max).toBeLessThanOrEqual(permits);
    expect(max).toBeGreaterThan(0);
    expect(await services[1]!.locks.semaphore(key).availablePermits()).toBe(permits);
    for (const { locks } of services) expect(locks.usage).toMatchObject({ leases: 0, keys: 0 });
  });

  it('grants several permits to one waiter when enough were released one by one', async () => {
    const [holder, waiter] = [lab.open(), lab.openTimeless()];
    const key = newKey();
    const semaphore = holder.locks.semaphore(key);
    await semaphore.trySetPermits(4);
    await semaphore.acquire(4);
    let has = false;
    const waiting = waiter.locks
      .semaphore(key)
      .tryAcquire(4, { waitMs: Infinity })
      .then((got) => (has = got));
    await listening(key);
    for (let given = 1; given <= 3; given += 1) {
      await semaphore.release();
      await waiter.locks.ping();
      expect(has).toBe(false);
    }
    await semaphore.release();
    expect(await within(SOON_MS, waiting)).toBe(true);
    expect(await semaphore.availablePermits()).toBe(0);
  });

  it('inside a lock that each caller acquires first loses no update', async () => {
    const services = [lab.open({ waitMs: 30_000 }), lab.open({ waitMs: 30_000 })];
    const [key, pool, counter] = [newKey(), newKey(), newKey('counter')];
    await services[0]!.locks.semaphore(pool).trySetPermits(1);
    const work = async (i: number): Promise<void> => {
      const { locks } = services[i % 2]!;
      await locks.withLock(key, async () => {
        const before = Number(await lab.admin.get(counter));
        await locks.semaphore(pool).acquire();
        await lab.admin.set(counter, before + 1);
        await locks.semaphore(pool).release();
      });
    };
    await Promise.all(Array.from({ length: 80 }, (_, i) => work(i)));
    expect(await lab.admin.get(counter)).toBe('80');
    expect(await services[0]!.locks.semaphore(pool).availablePermits()).toBe(1);
  });

  it('grants its permits to waiters after Redis is lost and comes back', async () => {
    await using own = await Lab.start({ appendFsync: 'always' });
    const patient = { commandTimeoutMs: 10_000 };
    const [holder, waiter] = [own.open(patient), own.open(patient)];
    const semaphore = holder.locks.semaphore('mail');
    await semaphore.trySetPermits(1);
    await semaphore.acquire();
    let done = 0;
    const waiting = Array.from({ length: 10 }, async () => {
      await waiter.locks.semaphore('mail').acquire(1, { waitMs: 25_000 });
      done += 1;
      await waiter.locks.semaphore('mail').release();
    });
    // Each request for permits reads their number once: two of the holder, one of each waiter, and one more of the first
    // waiter when it listens.
    await until(async () => (await own.calls())['get'] === 13, { what: 'the first waiter has asked twice' });
    // The second request has its reply before this ping has. A request under way would fail as unknown.
    await waiter.locks.ping();
    await own.server.restart();
    await until(() => holder.locks.ping().then(() => true));
    await semaphore.release();
    await Promise.all(waiting);
    expect(done).toBe(10);
    expect(await semaphore.availablePermits()).toBe(1);
  }, 40_000);
});
