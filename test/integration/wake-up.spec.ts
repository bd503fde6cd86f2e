import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { channelOf, holdName, useLab, newKey } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { ManualClock } from '../support/redis/manual-clock.js';

/** Far below every lease and wait here: a waiter that needed longer was not woken. */
const AT_ONCE_MS = 5_000;

const lab = useLab();

describe('thousands of locks over five keys', () => {
  it('share one subscriber, never fail, and leave no channel behind', async () => {
    const services = [lab.open(), lab.open()];
    const keys = Array.from({ length: 5 }, () => newKey());
    const rounds = 250;
    let runs = 0;
    const caller = async ({ locks }: (typeof services)[number], key: string) => {
      for (let round = 0; round < rounds; round += 1) {
        await locks.withLock(key, { waitMs: 30_000 }, () => void (runs += 1));
      }
    };
    // Two callers of each of two services for each key: 5,000 in all.
    const callers = keys.flatMap((key) => [...services, ...services].map((service) => caller(service, key)));
    await Promise.all(callers);
    expect(runs).toBe(keys.length * 4 * rounds);
    const clients = (await lab.admin.client('LIST')) as string;
    // For each service a connection for commands and one for wake-ups; the last one is this test's own.
    expect(clients.trim().split('\n')).toHaveLength(2 * services.length + 1);
    await lab.nothingLeft(...services);
  });
});

describe('a release is not missed', () => {
  it('between the request and the subscription: the waiter gets the lock at once, and not at the end of the lease', async () => {
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

  it('when its message overtakes the answer "taken"', async () => {
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

  it('when it is sent at the same moment as the question, a hundred times', async () => {
    const [one, two] = [lab.open({ waitMs: 20_000 }), lab.open({ waitMs: 20_000 })];
    const key = newKey();
    for (let round = 0; round < 100; round += 1) {
      const lease = await one.locks.acquire(key);
      const [own] = await within(
        5_000,
        Promise.all([two.locks.acquire(key), lease.release()]),
        `round ${round}: the waiter`,
      );
      await own.release();
    }
  });
});

describe('two processes waiting for one release', () => {
  it('one of them gets the lock, the other keeps waiting and gets it next', async () => {
    const clock = new ManualClock();
    const timed = (name: string): OpenLocks => lab.open({}, undefined, clock.runtime(name));
    const [holder, ...waiters] = [lab.open(), timed('one'), timed('two')];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const waits = waiters.map(({ locks }) => locks.acquire(key, { waitMs: 25_000 }));
    await lab.waiting(key, 2);
    // The second in line lets the first one ask first. No other timer comes to its end.
    let [ms, bothSubscribed] = [0, false];
    const subscribing = lab.subscribed(key, 2).then(() => (bothSubscribed = true));
    await until(() => {
      clock.moveTo(Math.min((ms += 1), 900));
      return bothSubscribed;
    });
    await subscribing;
    await lease.release();
    const winner = await within(AT_ONCE_MS, Promise.race(waits));
    expect(waiters.flatMap(({ events }) => events('busy'))).toEqual([]);
    await winner.release();
    const [one, two] = await within(AT_ONCE_MS, Promise.all(waits));
    await Promise.all([one!.release(), two!.release()]);
    await lab.nothingLeft();
  });
});

describe('two processes that want a lock over and over', () => {
  it('listen once each, however often one of them has to wait', async () => {
    const services = [lab.open({ waitMs: 20_000 }), lab.open({ waitMs: 20_000 })];
    const key = newKey();
    const { subscribe: before = 0 } = await lab.calls();
    const order: number[] = [];
    // From the first round on each waits for the other.
    const lease = await lab.open().locks.acquire(key);
    const rounds = services.map(async ({ locks }, service) => {
      for (let round = 0; round < 20; round++) {
        await locks.withLock(key, () => new Promise((resolve) => setImmediate(resolve)));
        order.push(service);
      }
    });
    await lab.subscribed(key, services.length);
    await lease.release();
    await Promise.all(rounds);
    expect(order.filter((service, i) => service !== order[i - 1]).length).toBeGreaterThan(10);
    // One for its turns, and one for the announcements of this lock.
    expect((await lab.calls())['subscribe']).toBeLessThanOrEqual(before + 2 * services.length);
    await lab.nothingLeft(...services);
  });
});

describe('a short and a long wait on one channel', () => {
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
