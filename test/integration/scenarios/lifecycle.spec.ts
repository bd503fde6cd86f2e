import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { LockKeyError } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { deferred, until, within } from '../../support/async.js';
import { TestWorker } from '../../support/worker.js';
import type { FromShop, ToShop } from '../workers/shop.worker.js';
import { BOOT_MS, Lab, newKey, SHORT_WATCHDOG } from '../../support/redis/lab.js';

const SHOP = new URL('../workers/shop.worker.ts', import.meta.url);

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

describe('34. SCRIPT FLUSH', () => {
  it('between any two steps is not noticed: taking, waiting, renewing, looking, releasing', async () => {
    const [holder, waiter] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const key = newKey();
    const flush = () => lab.admin.script('FLUSH');
    await Promise.all([holder.locks.ping(), waiter.locks.ping()]);
    await flush();
    const lease = await holder.locks.acquire(key);
    await flush();
    const waiting = waiter.locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);
    await flush();
    await lease.extend(2_000);
    const { pexpire = 0 } = await lab.calls();
    await until(async () => (await lab.calls())['pexpire']! > pexpire, { what: 'a renewal' });
    await flush();
    expect(await holder.locks.inspect(key)).not.toBeNull();
    await flush();
    expect(await lease.release()).toBe('released');
    const next = await within(5_000, waiting);
    await flush();
    expect(await next.release()).toBe('released');
    expect([
      ...holder.events('lost'),
      ...holder.events('store-down'),
      ...waiter.events('store-down'),
    ]).toEqual([]);
    await lab.nothingLeft(holder, waiter);
  });
});

describe('35. braces in keys, and prefixes', () => {
  it.each([
    ['order:{42}:items', 'redisson_lock__channel:lock:order:{42}:items'],
    ['{42}', 'redisson_lock__channel:lock:{42}'],
    ['plain', 'redisson_lock__channel:{lock:plain}'],
  ])('%s is taken, waited for, shown and released under its own name', async (key, channel) => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const lease = await holder.locks.acquire(key);
    expect(await lab.hold(key)).not.toBeNull();
    expect(await waiter.locks.isLocked(key)).toBe(true);
    const waiting = waiter.locks.acquire(key, { waitMs: 20_000 });
    await until(async () => ((await lab.admin.pubsub('CHANNELS')) as string[]).includes(channel));
    await lease.release();
    await (await within(5_000, waiting)).release();
    await lab.nothingLeft(holder, waiter);
  });

  it.each(['{', '}', '{}', 'a{}b', 'a}b', 'a{b', '}{'])(
    '%s would land in another slot than its channel in a cluster, and is refused before Redis is asked',
    async (key) => {
      const { locks } = lab.open();
      const error: unknown = await locks.acquire(key).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockKeyError);
      expect((error as Error).message).toContain(`"lock:${key}"`);
      await expect(locks.withLock(['fine', key], () => 'ran')).rejects.toBeInstanceOf(LockKeyError);
      expect(await lab.leftovers()).toEqual([]);
    },
  );

  it('the keyPrefix of the client that was handed over comes first, in holds and in channels alike', async () => {
    const client = new Redis(lab.server.url, { keyPrefix: 'app:', lazyConnect: true });
    const [one, two] = [lab.open({}, client), lab.open({ keyPrefix: 'app:lock:' })];
    const lease = await one.locks.acquire('order');
    expect(await lab.admin.hlen('app:lock:order')).toBe(1);
    // Both names are the same lock, and wake each other.
    const waiting = two.locks.acquire('order', { waitMs: 20_000 });
    await until(async () =>
      ((await lab.admin.pubsub('CHANNELS')) as string[]).includes('redisson_lock__channel:{app:lock:order}'),
    );
    await lease.release();
    const next = await within(5_000, waiting);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    expect(client.status).toBe('wait');
  });

  it('an empty prefix gives the plain name, as Java services have it; other prefixes are other locks', async () => {
    const [plain, prefixed] = [lab.open({ keyPrefix: '' }), lab.open()];
    await using _one = await plain.locks.acquire('order');
    expect(await lab.admin.hlen('order')).toBe(1);
    await using _two = await prefixed.locks.acquire('order', { waitMs: 0 });
    expect(await lab.admin.hlen('lock:order')).toBe(1);
  });
});

describe('36. held()', () => {
  it('shows what this process holds: never more, never less, however many', async () => {
    const [opened, other] = [lab.open(), lab.open()];
    const { locks } = opened;
    await using _foreign = await other.locks.acquire('foreign');
    const leases = await Promise.all(Array.from({ length: 500 }, (_, i) => locks.acquire(`held-${i}`)));
    await locks.tryAcquire('foreign');
    expect(locks.held().map(({ key }) => key)).toEqual(leases.map(({ key }) => key));
    expect(locks.held()[0]).toEqual({
      key: 'held-0',
      fencingToken: leases[0]!.fencingToken,
      heldMs: expect.any(Number) as number,
      remainingMs: expect.any(Number) as number,
    });
    expect(locks.usage).toMatchObject({ leases: 500, holds: 500, keys: 500 });
    for (const lease of leases.splice(250)) await lease.release();
    expect(locks.held()).toHaveLength(250);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(locks.held()).toEqual([]);
  });

  it('does not show a lock that was lost, or whose wait failed', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    await locks.ping();
    const lease = await locks.acquire(newKey(), { leaseMs: 400 });
    expect(locks.held()).toHaveLength(1);
    await until(() => events('lost').length === 1);
    expect(locks.held()).toEqual([]);
    await lease.release();
  });
});

describe('37. SIGTERM', () => {
  it('of a Nest app: work under way ends and its lock is released, waiting requests are refused, the process ends', async () => {
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
    const answer = await working;
    expect([answer.status, await answer.text()]).toEqual([200, 'order 7 placed']);
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

  it('who waits is refused at once, whether in Redis or in the queue of the process; who asks later as well', async () => {
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
    expect(await lab.listeners(lease.key)).toBe(0);
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
    await sleep(50);
    begin.resolve();
    expect(await working).toBe('finished');
    await within(5_000, closing);
    expect(await lab.leftovers()).toEqual([]);
  });
});
