import { describe, expect, it } from 'vitest';
import { deferred, until, within } from '../support/async.js';
import { TestWorker } from '../support/worker.js';
import type { FromShop, ToShop } from './workers/shop.worker.js';
import { BOOT_MS, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const SHOP = new URL('./workers/shop.worker.ts', import.meta.url);

const lab = useLab();

describe('the end of an app', () => {
  it('by SIGTERM: work under way ends and its lock is released, waiting requests are refused, the process ends', async () => {
    const shop = lab.track(TestWorker.start<ToShop, FromShop>(SHOP, { args: [lab.server.url] }));
    const { url } = await shop.next('listening', { timeoutMs: BOOT_MS });
    await using _elsewhere = await lab.open().locks.acquire('order:8');
    const working = fetch(`${url}/orders/7`);
    expect((await shop.next('working')).id).toBe('7');
    const waiting = fetch(`${url}/orders/8`);
    await lab.waiting('order:8');

    const ending = shop.kill('SIGTERM');
    const refused = await waiting;
    expect([refused.status, await refused.json()]).toEqual([
      503,
      expect.objectContaining({ code: 'LOCK_SHUTDOWN' }),
    ]);
    // The work goes on, under its lock.
    expect(await lab.hold('order:7')).not.toBeNull();
    expect(shop.all('worked')).toEqual([]);

    shop.send({ type: 'finish work' });
    const response = await working;
    expect([response.status, await response.text()]).toEqual([200, 'order 7 placed']);
    expect((await shop.next('worked')).lost).toBe(false);
    await within(10_000, ending);
    expect(await shop.exited).toEqual({ code: null, signal: 'SIGTERM' });
    expect(await lab.leftovers()).toEqual(['lock:order:8']);
    expect(shop.output).not.toMatch(/unhandled|error/i);
  });

  it('work that does not end in time is told, and its lock is left to its lease, not freed under it', async () => {
    const opened = lab.open({ ...SHORT_WATCHDOG, shutdownGraceMs: 100 });
    const end = deferred();
    const key = newKey();
    const working = opened.locks.withLock(key, async ({ signal }) => {
      await end.promise;
      return signal.reason as unknown;
    });
    await until(() => opened.locks.held().length === 1);
    await within(5_000, opened.close());
    expect(opened.events('lost')).toMatchObject([{ key, reason: 'shutdown' }]);
    expect((await lab.hold(key))!.leftMs).toBeGreaterThan(0);
    end.resolve();
    expect(await working).toMatchObject({ code: 'LOCK_LOST', key });
    await until(async () => !(await lab.hold(key)), { what: 'nobody renews it any more' });
  });

  it('waiters in Redis and in the local queue are rejected at once, and so are later callers', async () => {
    const [holder, opened] = [lab.open(), lab.open()];
    await using lease = await holder.locks.acquire(newKey());
    const waits = [1, 2, 3].map(() => opened.locks.acquire(lease.key, { waitMs: Infinity }));
    const outcomes = Promise.allSettled(waits);
    await lab.waiting(lease.key);
    const closing = opened.close();
    for (const outcome of await within(5_000, outcomes)) {
      expect(outcome).toMatchObject({ status: 'rejected', reason: { code: 'LOCK_SHUTDOWN' } });
    }
    await expect(opened.locks.acquire(newKey())).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    await closing;
    // The server hears of a closed connection a moment after the client has let go of it.
    await until(async () => (await lab.listeners(lease.key)) === 0, { what: 'nobody listens' });
  });

  it('work under way may still take what it needs to finish', async () => {
    const opened = lab.open({ shutdownGraceMs: 10_000 });
    const begin = deferred();
    const working = opened.locks.withLock(newKey(), async () => {
      await begin.promise;
      return opened.locks.withLock(newKey(), () => 'finished');
    });
    await until(() => opened.locks.held().length === 1);
    const closing = opened.close();
    await until(
      () =>
        opened.locks.acquire(newKey()).then(
          () => false,
          () => true,
        ),
      { what: 'it refuses new work' },
    );
    begin.resolve();
    expect(await working).toBe('finished');
    await within(5_000, closing);
    expect(await lab.leftovers()).toEqual([]);
  });
});
