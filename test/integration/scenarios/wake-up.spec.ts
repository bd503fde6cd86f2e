import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until, within } from '../../support/async.js';
import { channelOf, holdName, Lab, newKey } from '../../support/redis/lab.js';

/** Far below every lease and wait here: whoever needed longer was not woken. */
const AT_ONCE_MS = 5_000;

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

describe('13. thousands of locks over five keys', () => {
  it('share one subscriber, fail never, and leave no channel behind', async () => {
    const services = [lab.open(), lab.open()];
    const keys = Array.from({ length: 5 }, () => newKey());
    const turns = 250;
    let runs = 0;
    const caller = async ({ locks }: (typeof services)[number], key: string) => {
      for (let turn = 0; turn < turns; turn += 1) {
        await locks.withLock(key, { waitMs: 30_000 }, () => void (runs += 1));
      }
    };
    // Two callers of each of two services for each key: 5,000 in all.
    const callers = keys.flatMap((key) => [...services, ...services].map((service) => caller(service, key)));
    await Promise.all(callers);
    expect(runs).toBe(keys.length * 4 * turns);
    const clients = (await lab.admin.client('LIST')) as string;
    // For each service a connection for commands and one for wake-ups; the last one is this test's own.
    expect(clients.trim().split('\n')).toHaveLength(2 * services.length + 1);
    await lab.nothingLeft(...services);
  });
});

describe('14. a release between the question and the subscription', () => {
  it('is not missed: the waiter gets the lock at once, and not at the end of the lease', async () => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.openTimeless(proxy.url)];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    let subscribing = false;
    proxy.onData((connection, direction, chunk) => {
      if (direction !== 'toServer' || subscribing || !/\r\nsubscribe\r\n/i.test(chunk.toString())) return;
      subscribing = true;
      connection.blackhole(['toServer']);
    });
    const waiting = waiter.locks.acquire(key, { waitMs: 25_000 });
    await until(() => subscribing, { what: 'the waiter was told "taken" and is about to subscribe' });
    expect(await lease.release()).toBe('released');
    await proxy.restore();
    await (await within(AT_ONCE_MS, waiting)).release();
  });

  it('nor is one whose message overtakes the answer "taken"', async () => {
    const proxy = await lab.proxy();
    const waiter = lab.openTimeless(proxy.url);
    const key = newKey();
    const takeByHand = (owner: string) =>
      lab.admin.multi().del(holdName(key)).hset(holdName(key), owner, '1').pexpire(holdName(key), 30_000);
    await takeByHand('foreign:1').exec();
    const waiting = waiter.locks.acquire(key, { waitMs: 25_000 });
    await lab.waiting(key);
    // Answers are late from now on; messages, on the other connection, are not.
    for (const connection of proxy.find('evalsha')) connection.delay(300, ['toClient']);
    let freed: Promise<unknown> | undefined;
    proxy.onData((connection, direction) => {
      if (direction === 'toServer' || !connection.carried('evalsha')) return;
      // Redis has just answered "taken"; that is on its way when the lock is released.
      freed ??= lab.admin.multi().del(holdName(key)).publish(channelOf(key), '0').exec();
    });
    await takeByHand('foreign:2').publish(channelOf(key), '0').exec();
    await (await within(AT_ONCE_MS, waiting)).release();
    expect(await freed).toEqual([
      [null, 1],
      [null, 1],
    ]);
  });
});

describe('15. two processes waiting for one release', () => {
  it('one of them gets the lock, the other goes on waiting and gets it next', async () => {
    const [holder, ...waiters] = [lab.open(), lab.openTimeless(), lab.openTimeless()];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const waits = waiters.map(({ locks }) => locks.acquire(key, { waitMs: 25_000 }));
    await lab.waiting(key, 2);
    await lease.release();
    const winner = await within(AT_ONCE_MS, Promise.race(waits));
    await lab.waiting(key, 1);
    expect(waiters.flatMap(({ events }) => events('busy'))).toEqual([]);
    await winner.release();
    const [one, two] = await within(AT_ONCE_MS, Promise.all(waits));
    await Promise.all([one!.release(), two!.release()]);
    await lab.nothingLeft();
  });
});

describe('16. a short and a long wait on one channel', () => {
  it.each([
    ['the short one came first', [100, 25_000]],
    ['the long one came first', [25_000, 100]],
  ] as const)('the end of the short one does not deafen the long one (%s)', async (_name, waits) => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const [first, second] = waits.map((waitMs) => waiter.locks.tryAcquire(key, { waitMs }));
    const [short, long] = waits[0] === 100 ? [first!, second!] : [second!, first!];
    expect(await short).toBeNull();
    await lab.waiting(key);
    await lease.release();
    const granted = await within(AT_ONCE_MS, long);
    expect(await granted!.release()).toBe('released');
    await lab.nothingLeft(holder, waiter);
  });
});

describe('17. a holder that dies without a word', () => {
  it('its waiter wakes at the end of the lease, within its own wait', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await lab.admin.multi().hset(holdName(key), 'a-dead-process:1', '1').pexpire(holdName(key), 600).exec();
    const startedAt = performance.now();
    await using lease = await locks.acquire(key, { waitMs: 20_000 });
    expect(performance.now() - startedAt).toBeGreaterThan(500);
    expect(performance.now() - startedAt).toBeLessThan(600 + 1_000);
    expect(lease.remainingMs()).toBeGreaterThan(0);
  });
});

describe('18. the subscriber connection alone is lost', () => {
  it('while somebody waits: it is made again, and the next release wakes', async () => {
    const [holder, waiter] = [lab.open(), lab.openTimeless()];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const waiting = waiter.locks.acquire(key, { waitMs: 25_000 });
    await lab.waiting(key);
    expect(await lab.admin.call('CLIENT', 'KILL', 'TYPE', 'pubsub')).toBeGreaterThan(0);
    await lab.waiting(key);
    await lease.release();
    await (await within(AT_ONCE_MS, waiting)).release();
  });

  it('a release that nobody could hear of meanwhile is found as soon as it is back', async () => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.openTimeless(proxy.url)];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const waiting = waiter.locks.acquire(key, { waitMs: 25_000 });
    await lab.waiting(key);
    proxy.refuse();
    for (const connection of proxy.find('subscribe')) connection.cut();
    await until(async () => ((await lab.admin.pubsub('CHANNELS')) as string[]).length === 0);
    await lease.release();
    await proxy.restore();
    await (await within(AT_ONCE_MS, waiting)).release();
  });

  it('half open, so that neither side hears of it, it is found out by its ping', async () => {
    const proxy = await lab.proxy();
    const [holder, waiter] = [lab.open(), lab.openTimeless(proxy.url, { commandTimeoutMs: 300 })];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const waiting = waiter.locks.acquire(key, { waitMs: 25_000 });
    await lab.waiting(key);
    for (const connection of proxy.find('subscribe')) connection.blackhole();
    await lease.release();
    await (await within(AT_ONCE_MS, waiting)).release();
  });
});
