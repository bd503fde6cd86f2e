import { LockAbortedError, LockNotAcquiredError, LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { newKey, useLab } from '../support/redis/lab.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

/** Long beside what a wake-up takes. */
const SOON_MS = 8_000;
const MAX = 2 ** 31 - 1;

failOnUnhandledRejections();
const lab = useLab();

const nameOf = (key: string): string => `lock:${key}`;
const listening = (key: string): Promise<unknown> =>
  until(async () => (await lab.channels()).includes(`redisson_sc:{${nameOf(key)}}`), {
    what: `somebody listens for permits of ${key}`,
  });

describe('a semaphore', () => {
  it('is a number in Redis as Redisson has it, under the prefix of the module', async () => {
    const semaphore = lab.open().locks.semaphore('mail');
    expect(semaphore.key).toBe('mail');
    expect(await semaphore.trySetPermits(3)).toBe(true);
    await semaphore.acquire(2);
    expect(await lab.admin.get('lock:mail')).toBe('1');
    expect(await lab.admin.pttl('lock:mail')).toBe(-1);
    await lab.admin.set('lock:mail', 7);
    expect(await semaphore.availablePermits()).toBe(7);
  });

  it('admits as many callers as it has permits, across processes, and leaves nothing behind', async () => {
    const services = [lab.open(), lab.open()];
    const key = newKey();
    await services[0]!.locks.semaphore(key).trySetPermits(3);
    let [inside, max] = [0, 0];
    const work = async (semaphore: ReturnType<(typeof services)[0]['locks']['semaphore']>) => {
      await semaphore.acquire();
      max = Math.max(max, (inside += 1));
      await lab.admin.ping();
      inside -= 1;
      await semaphore.release();
    };
    await Promise.all(Array.from({ length: 60 }, (_, i) => work(services[i % 2]!.locks.semaphore(key))));
    expect(max).toBe(3);
    expect(await services[0]!.locks.semaphore(key).availablePermits()).toBe(3);
    expect(await services[1]!.locks.semaphore(key).delete()).toBe(true);
    await lab.nothingLeft(...services);
  });

  it('wakes a waiter by the release, and not by a time-out', async () => {
    const [holder, waiter] = [lab.open(), lab.openTimeless()];
    const key = newKey();
    await holder.locks.semaphore(key).trySetPermits(1);
    await holder.locks.semaphore(key).acquire();
    const waiting = waiter.locks.semaphore(key).acquire(1, { waitMs: Infinity });
    await listening(key);
    await holder.locks.semaphore(key).release();
    await within(SOON_MS, waiting);
    expect(await holder.locks.semaphore(key).availablePermits()).toBe(0);
  });

  it.each([
    ['set', (name: string) => lab.open().locks.semaphore(name).trySetPermits(2)],
    ['made greater', (name: string) => lab.open().locks.semaphore(name).addPermits(2)],
  ])('wakes a waiter when its number is %s', async (_how, change) => {
    const key = newKey();
    const waiting = lab.openTimeless().locks.semaphore(key).acquire(2, { waitMs: Infinity });
    await listening(key);
    await change(key);
    await within(SOON_MS, waiting);
  });

  it('serves the callers of one process in order, with one subscription, and asks for the first alone', async () => {
    const [holder, waiter] = [lab.open(), lab.openTimeless()];
    const key = newKey();
    const semaphore = waiter.locks.semaphore(key);
    const served: number[] = [];
    const waiting = [0, 1, 2, 3].map((i) =>
      semaphore.acquire(i === 0 ? 2 : 1, { waitMs: Infinity }).then(() => served.push(i)),
    );
    await listening(key);
    expect(waiter.store.subscriptions).toBe(1);
    // The first waiter wants two: the waiters behind it do not overtake.
    await holder.locks.semaphore(key).release();
    await waiter.locks.ping();
    expect(served).toEqual([]);
    await holder.locks.semaphore(key).release(4);
    await within(SOON_MS, Promise.all(waiting));
    expect(served).toEqual([0, 1, 2, 3]);
    expect(waiter.locks.usage).toMatchObject({ leases: 0, keys: 0 });
    expect(waiter.store.subscriptions).toBe(0);
  });

  it('refuses when the wait is over, and takes nothing then', async () => {
    const { locks } = lab.open();
    const semaphore = locks.semaphore(newKey());
    await semaphore.trySetPermits(1);
    const error = await semaphore.acquire(2, { waitMs: 30 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(error).toMatchObject({ code: 'LOCK_TAKEN', key: semaphore.key });
    expect(await semaphore.tryAcquire(2)).toBe(false);
    expect(await semaphore.tryAcquire(2, { waitMs: 30 })).toBe(false);
    expect(await semaphore.availablePermits()).toBe(1);
    expect(locks.usage).toMatchObject({ leases: 0, keys: 0 });
  });

  it('rejects a waiter whose signal aborts, and the waiters behind it continue', async () => {
    const { locks } = lab.open();
    const semaphore = locks.semaphore(newKey());
    const abort = new AbortController();
    const given = semaphore.acquire(3, { waitMs: Infinity, signal: abort.signal });
    const behind = semaphore.acquire(1, { waitMs: Infinity });
    await listening(semaphore.key);
    await semaphore.release();
    abort.abort(new Error('client has left'));
    await expect(given).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await within(SOON_MS, behind);
    await expect(semaphore.acquire(1, { signal: abort.signal })).rejects.toBeInstanceOf(LockAbortedError);
  });

  it('rejects waiters when the app stops, and later callers', async () => {
    const opened = lab.open();
    const semaphore = opened.locks.semaphore(newKey());
    const waiting = [1, 2].map(() => semaphore.acquire(1, { waitMs: Infinity }));
    const refused = Promise.allSettled(waiting);
    await listening(semaphore.key);
    await opened.close();
    for (const outcome of await refused) expect(outcome).toMatchObject({ reason: { code: 'LOCK_SHUTDOWN' } });
    await expect(semaphore.acquire()).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    const late = {
      code: 'LOCK_SHUTDOWN',
      message: expect.stringContaining('releasing permits of') as string,
    };
    await expect(semaphore.release()).rejects.toMatchObject(late);
    await until(async () => (await lab.channels()).length === 0);
  });

  it('refuses more callers of a process than may wait', async () => {
    const semaphore = lab.open({ maxWaiters: 2 }).locks.semaphore(newKey());
    const waiting = [1, 2].map(() => semaphore.acquire(1, { waitMs: Infinity }));
    await listening(semaphore.key);
    await expect(semaphore.acquire(1, { waitMs: 20_000 })).rejects.toMatchObject({ code: 'LOCK_QUEUE_FULL' });
    await semaphore.release(2);
    await within(SOON_MS, Promise.all(waiting));
  });

  it('is found by who could not hear of it while the subscriber was cut', async () => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.openTimeless(proxy.url)];
    const key = newKey();
    const waiting = waiter.locks.semaphore(key).acquire(1, { waitMs: Infinity });
    await listening(key);
    proxy.refuse();
    for (const connection of proxy.find('subscribe')) connection.cut();
    await until(async () => (await lab.channels()).length === 0);
    await holder.locks.semaphore(key).release();
    await proxy.restore();
    await within(SOON_MS, waiting);
  });

  it('is looked at every second or so where the subscriber cannot come back at all', async () => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.open({ waitMs: 60_000 }, proxy.url)];
    const key = newKey();
    const waiting = waiter.locks.semaphore(key).acquire();
    await listening(key);
    await waiter.locks.ping();
    proxy.refuse();
    for (const connection of proxy.find('subscribe')) connection.cut();
    await until(async () => (await lab.channels()).length === 0);
    await holder.locks.semaphore(key).release();
    await within(SOON_MS, waiting);
  });

  it('says "unknown" when no answer came, and neither gives anything back nor asks again', async () => {
    const proxy = await lab.proxy();
    const { locks } = lab.open({ commandTimeoutMs: 300 }, proxy.url);
    const semaphore = locks.semaphore(newKey());
    await semaphore.trySetPermits(1);
    for (const connection of proxy.connections) connection.swallowReplies();
    const error = await semaphore.acquire().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ outcome: 'unknown' });
    expect((error as Error).message).toMatch(/nobody can tell, so nothing more is given back/);
    // Redis had executed it.
    expect(await lab.admin.get(nameOf(semaphore.key))).toBe('0');
    expect(await semaphore.availablePermits()).toBe(0);
    expect(locks.usage).toMatchObject({ leases: 0, keys: 0, undoing: 0 });
  });

  it('says "not executed" to all whose wait ends while there is no Redis', async () => {
    const proxy = await lab.proxy();
    const opened = lab.open({ commandTimeoutMs: 300 }, proxy.url);
    const semaphore = opened.locks.semaphore(newKey());
    const waiting = Promise.allSettled([1, 2, 3].map(() => semaphore.acquire(1, { waitMs: 2_000 })));
    await listening(semaphore.key);
    await opened.locks.ping();
    proxy.refuse();
    for (const connection of proxy.connections) connection.cut();
    for (const outcome of await within(SOON_MS, waiting)) {
      expect(outcome).toMatchObject({ reason: { code: 'LOCK_STORE_FAILED', outcome: 'not-executed' } });
    }
    expect(opened.events('store-down')).toHaveLength(1);
  });

  it('works on with a full memory where something is given back', async () => {
    const semaphore = lab.open().locks.semaphore(newKey());
    await semaphore.trySetPermits(2);
    await semaphore.acquire(2);
    await lab.admin.config('SET', 'maxmemory', '1');
    try {
      await semaphore.release();
      await expect(semaphore.acquire()).rejects.toBeInstanceOf(LockStoreError);
    } finally {
      await lab.admin.config('SET', 'maxmemory', '0');
    }
    expect(await semaphore.availablePermits()).toBe(1);
  });

  it('keeps a time to live that Java has given it', async () => {
    const semaphore = lab.open().locks.semaphore(newKey());
    await lab.admin.set(nameOf(semaphore.key), 2, 'PX', 60_000);
    await semaphore.acquire();
    await semaphore.release();
    await semaphore.addPermits(1);
    await semaphore.drainPermits();
    const leftMs = await lab.admin.pttl(nameOf(semaphore.key));
    expect(leftMs).toBeGreaterThan(30_000);
    expect(leftMs).toBeLessThanOrEqual(60_000);
  });

  it.each([
    ['a lock', (name: string) => lab.admin.hset(name, 'somebody:1', 1)],
    ['a text', (name: string) => lab.admin.set(name, 'hello')],
    ['a fraction', (name: string) => lab.admin.set(name, '1.5')],
    ['a number that is none for Java', (name: string) => lab.admin.set(name, '+1')],
    ['a set', (name: string) => lab.admin.sadd(name, 'a')],
  ])('refuses a key that has %s, and leaves that as it is', async (_what, put) => {
    const semaphore = lab.open().locks.semaphore(newKey());
    const name = nameOf(semaphore.key);
    await put(name);
    const before = await lab.admin.dump(name);
    for (const request of [
      () => semaphore.acquire(),
      () => semaphore.tryAcquire(),
      () => semaphore.release(),
      () => semaphore.trySetPermits(1),
      () => semaphore.addPermits(1),
      () => semaphore.availablePermits(),
      () => semaphore.drainPermits(),
      () => semaphore.delete(),
    ]) {
      const error = await request().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ outcome: 'not-executed', key: semaphore.key });
      expect((error as Error).message).toContain('WRONGTYPE');
    }
    expect(await lab.admin.dump(name)).toBe(before);
  });

  it('refuses more permits than Java can count, and changes nothing', async () => {
    const semaphore = lab.open().locks.semaphore(newKey());
    await semaphore.trySetPermits(MAX);
    const error = await semaphore.release().catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'not-executed' });
    expect((error as Error).message).toContain(`it would have ${MAX + 1} permits`);
    expect(await semaphore.availablePermits()).toBe(MAX);
  });
});
