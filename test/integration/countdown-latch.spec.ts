import { LockNotAcquiredError, LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { newKey, useLab } from '../support/redis/lab.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

/** Long beside what a wake-up takes. */
const SOON_MS = 8_000;

failOnUnhandledRejections();
const lab = useLab();

const nameOf = (key: string): string => `lock:${key}`;
const listening = (key: string): Promise<unknown> =>
  until(async () => (await lab.channels()).includes(`redisson_countdownlatch__channel__{${nameOf(key)}}`), {
    what: `somebody waits for the latch ${key}`,
  });

describe('a countdown latch', () => {
  it('is a number in Redis as Redisson has it, under the prefix of the module, and gone when it is open', async () => {
    const latch = lab.open().locks.countDownLatch('import');
    expect(latch.key).toBe('import');
    expect(await latch.trySetCount(2)).toBe(true);
    expect(await lab.admin.get('lock:import')).toBe('2');
    expect(await lab.admin.pttl('lock:import')).toBe(-1);
    await latch.countDown();
    expect(await latch.getCount()).toBe(1);
    await latch.countDown();
    expect(await lab.admin.exists('lock:import')).toBe(0);
    await latch.wait({ waitMs: 0 });
  });

  it('wakes all waiters at zero, by a notification and not by a timer', async () => {
    const [counter, waiter] = [lab.open(), lab.openTimeless()];
    const key = newKey();
    await counter.locks.countDownLatch(key).trySetCount(2);
    const latch = waiter.locks.countDownLatch(key);
    let gone = 0;
    const waiting = Array.from({ length: 50 }, () =>
      latch.wait({ waitMs: Infinity }).then(() => (gone += 1)),
    );
    await listening(key);
    expect(waiter.store.subscriptions).toBe(1);
    await counter.locks.countDownLatch(key).countDown();
    await waiter.locks.ping();
    expect(gone).toBe(0);
    await counter.locks.countDownLatch(key).countDown();
    await within(SOON_MS, Promise.all(waiting));
    await lab.nothingLeft(counter, waiter);
  });

  it('costs one request for all waiters of a process after each notification', async () => {
    const [counter, waiter] = [lab.open(), lab.openTimeless()];
    const key = newKey();
    await counter.locks.countDownLatch(key).trySetCount(1);
    const latch = waiter.locks.countDownLatch(key);
    const waiting = Array.from({ length: 50 }, () => latch.wait({ waitMs: Infinity }));
    await listening(key);
    await waiter.locks.ping();
    await lab.admin.config('RESETSTAT');
    await counter.locks.countDownLatch(key).countDown();
    await within(SOON_MS, Promise.all(waiting));
    // The one that counts down, and at most one question more than the one after its message.
    expect((await lab.calls())['get']).toBeLessThanOrEqual(3);
  });

  it('lets its waiters continue when it is deleted', async () => {
    const [counter, waiter] = [lab.open(), lab.openTimeless()];
    const key = newKey();
    await counter.locks.countDownLatch(key).trySetCount(5);
    const waiting = waiter.locks.countDownLatch(key).wait({ waitMs: Infinity });
    await listening(key);
    expect(await counter.locks.countDownLatch(key).delete()).toBe(true);
    await within(SOON_MS, waiting);
    expect(await counter.locks.countDownLatch(key).delete()).toBe(false);
  });

  it('rejects a waiter that times out, that is aborted, or whose app stops', async () => {
    const opened = lab.open();
    const latch = opened.locks.countDownLatch(newKey());
    await latch.trySetCount(1);
    const error = await latch.wait({ waitMs: 30 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(error).toMatchObject({ code: 'LOCK_TAKEN', key: latch.key });
    expect(await latch.tryWait()).toBe(false);
    expect(await latch.tryWait({ waitMs: 30 })).toBe(false);
    const abort = new AbortController();
    const aborted = latch.wait({ waitMs: Infinity, signal: abort.signal });
    const stopped = latch.wait({ waitMs: Infinity });
    const outcomes = Promise.allSettled([aborted, stopped]);
    await listening(latch.key);
    abort.abort();
    await expect(aborted).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await opened.close();
    expect((await outcomes)[1]).toMatchObject({ reason: { code: 'LOCK_SHUTDOWN' } });
    expect(opened.locks.usage).toMatchObject({ leases: 0, keys: 0 });
  });

  it('counted down while the subscriber was cut is found as soon as that is back', async () => {
    const proxy = await lab.proxy();
    const [counter, waiter] = [lab.open(), lab.openTimeless(proxy.url)];
    const key = newKey();
    await counter.locks.countDownLatch(key).trySetCount(1);
    const waiting = waiter.locks.countDownLatch(key).wait({ waitMs: Infinity });
    await listening(key);
    proxy.refuse();
    for (const connection of proxy.find('subscribe')) connection.cut();
    await until(async () => (await lab.channels()).length === 0);
    await counter.locks.countDownLatch(key).countDown();
    await proxy.restore();
    await within(SOON_MS, waiting);
  });

  it('says "unknown" when no answer came, and does not count down again', async () => {
    const proxy = await lab.proxy();
    const { locks } = lab.open({ commandTimeoutMs: 300 }, proxy.url);
    const latch = locks.countDownLatch(newKey());
    await latch.trySetCount(3);
    for (const connection of proxy.connections) connection.swallowReplies();
    const error = await latch.countDown().catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockStoreError);
    expect(error).toMatchObject({ outcome: 'unknown' });
    expect((error as Error).message).toContain('look at getCount() before');
    expect(await latch.getCount()).toBe(2);
  });

  it('keeps a time to live that Java has given it, also in the millisecond in which that ends', async () => {
    const latch = lab.open().locks.countDownLatch(newKey());
    for (let round = 0; round < 5; round++) {
      await lab.admin.set(nameOf(latch.key), 1_000_000, 'PX', 20);
      let leftMs: number;
      do {
        await Promise.all(Array.from({ length: 50 }, () => latch.countDown()));
        leftMs = await lab.admin.pttl(nameOf(latch.key));
      } while (leftMs >= 0);
      expect(leftMs).toBe(-2);
    }
  });

  it('is counted down with a full memory', async () => {
    const latch = lab.open().locks.countDownLatch(newKey());
    await latch.trySetCount(2);
    await lab.admin.config('SET', 'maxmemory', '1');
    try {
      await latch.countDown();
      await latch.countDown();
    } finally {
      await lab.admin.config('SET', 'maxmemory', '0');
    }
    expect(await latch.tryWait()).toBe(true);
  });

  it.each([
    ['a lock', (name: string) => lab.admin.hset(name, 'somebody:1', 1)],
    ['a text', (name: string) => lab.admin.set(name, 'hello')],
  ])('refuses a key that has %s, and leaves that as it is', async (_what, put) => {
    const latch = lab.open().locks.countDownLatch(newKey());
    const name = nameOf(latch.key);
    await put(name);
    const before = await lab.admin.dump(name);
    for (const request of [
      () => latch.wait(),
      () => latch.tryWait(),
      () => latch.trySetCount(1),
      () => latch.countDown(),
      () => latch.getCount(),
      () => latch.delete(),
    ]) {
      const error = await request().catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockStoreError);
      expect(error).toMatchObject({ outcome: 'not-executed', key: latch.key });
    }
    expect(await lab.admin.dump(name)).toBe(before);
  });
});
