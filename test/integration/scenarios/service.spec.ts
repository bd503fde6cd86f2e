import { setTimeout as sleep } from 'node:timers/promises';
import { LockNotAcquiredError } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until, within } from '../../support/async.js';
import { holdName, Lab, newKey, SHORT_WATCHDOG } from './lab.js';

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

describe('inspect and isLocked', () => {
  it('tell of holds of every process, and of nobody when the lock is free', async () => {
    const [holder, looker] = [lab.open(), lab.open()];
    const key = newKey();
    expect([await looker.locks.inspect(key), await looker.locks.isLocked(key)]).toEqual([null, false]);
    await using lease = await holder.locks.acquire(key, { leaseMs: 20_000 });
    const state = (await looker.locks.inspect(key))!;
    expect(state).toMatchObject({ kind: 'exclusive', holders: [{ count: 1 }], waiting: [] });
    const hold = state.holders[0]!;
    expect(hold.owner).toBe((await lab.hold(key))!.owner);
    expect(hold.remainingMs).toBeGreaterThan(10_000);
    expect(hold.remainingMs).toBeLessThanOrEqual(20_000);
    expect(await looker.locks.isLocked(key)).toBe(true);
    await lease.release();
    expect(await looker.locks.isLocked(key)).toBe(false);
  });

  it('show a hold of a Java service as it is, nested and without an end', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await lab.admin.hset(holdName(key), 'a0b1:42', '3');
    expect(await locks.inspect(key)).toEqual({ owner: 'a0b1:42', count: 3, remainingMs: Infinity });
    await expect(locks.acquire(key, { waitMs: 0 })).rejects.toBeInstanceOf(LockNotAcquiredError);
    await lab.admin.del(holdName(key));
    await (await locks.acquire(key, { waitMs: 0 })).release();
  });
});

describe('forceUnlock', () => {
  it('ends a hold of another process, wakes who waits, and its holder hears of it at the next renewal', async () => {
    const [holder, other, waiter] = [lab.open(SHORT_WATCHDOG), lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(lease.key, { waitMs: 20_000 });
    await lab.waiting(lease.key);
    expect(await other.locks.forceUnlock(lease.key)).toBe(true);
    await using next = await within(5_000, waiting);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await until(() => lease.signal.aborted);
    expect(holder.events('lost')).toMatchObject([{ key: lease.key, reason: 'refused' }]);
    expect(await lease.release()).toBe('lost');
    expect(await next.release()).toBe('released');
  });

  it('ends a hold of this process at once, with the reason', async () => {
    const { locks, events } = lab.open();
    const lease = await locks.acquire(newKey());
    const signal = lease.signal;
    expect(await locks.forceUnlock(lease.key)).toBe(true);
    expect(signal.aborted).toBe(true);
    expect(events('lost')).toMatchObject([{ key: lease.key, reason: 'force-unlocked' }]);
    // Its place is free for the next caller, before it has let go of the lease.
    await using _next = await within(5_000, locks.acquire(lease.key));
    expect(await lease.release()).toBe('lost');
    expect(await lab.hold(lease.key)).not.toBeNull();
  });

  it('of a free lock is false', async () => {
    expect(await lab.open().locks.forceUnlock(newKey())).toBe(false);
  });
});

describe('events', () => {
  it('tell the life of a lock: key as the caller wrote it, times in ms, the token', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await one.locks.acquire(key);
    await two.locks.tryAcquire(key, { waitMs: 60 });
    await lease.release();
    const ms = expect.any(Number) as number;
    expect(one.events('acquired')).toEqual([{ key, waitedMs: ms, fencingToken: lease.fencingToken }]);
    expect(one.events('released')).toEqual([{ key, heldMs: ms }]);
    expect(one.events('released')[0]!.heldMs).toBeGreaterThanOrEqual(59);
    expect(two.events('busy')).toEqual([{ key, waitedMs: ms }]);
    expect(two.events('busy')[0]!.waitedMs).toBeGreaterThanOrEqual(59);
    expect([...two.events('acquired'), ...one.events('lost'), ...one.events('store-down')]).toEqual([]);
  });

  it('are for grants in the store: one for each key, none for going in again', async () => {
    const { locks, events } = lab.open();
    const [a, b] = [newKey(), newKey()];
    await locks.withLock([a, b], () => locks.withLock(a, () => undefined));
    expect(events('acquired').map(({ key }) => key)).toEqual([a, b]);
    expect(
      events('released')
        .map(({ key }) => key)
        .sort(),
    ).toEqual([a, b].sort());
  });

  it('on() gives back what takes the listener off, and each registration counts by itself', async () => {
    const { locks } = lab.open();
    const heard: string[] = [];
    const listener = ({ key }: { key: string }) => void heard.push(key);
    const [offOne, offTwo] = [locks.on('acquired', listener), locks.on('acquired', listener)];
    const key = newKey();
    await locks.withLock(key, () => undefined);
    offOne();
    offOne();
    await locks.withLock(key, () => undefined);
    offTwo();
    await locks.withLock(key, () => undefined);
    expect(heard).toEqual([key, key, key]);
  });

  it('a listener that throws harms neither the lock nor its holder', async () => {
    const { locks, log } = lab.open();
    for (const event of ['acquired', 'released'] as const) {
      locks.on(event, () => {
        throw new Error('a broken listener');
      });
    }
    expect(await locks.withLock(newKey(), () => 'done')).toBe('done');
    expect(log.filter((line) => line.includes('a broken listener'))).toHaveLength(2);
  });

  it('one store-down and one store-up for each outage, however many calls meet it', async () => {
    await using own = await Lab.start();
    const { locks, events, log } = own.open({ commandTimeoutMs: 200 });
    for (let outage = 1; outage <= 2; outage += 1) {
      await own.server.kill('SIGKILL');
      await Promise.allSettled(Array.from({ length: 10 }, (_, i) => locks.acquire(`key-${i}`)));
      await Promise.allSettled([locks.ping(), locks.inspect('key-1')]);
      await own.server.restart();
      await until(() => locks.ping().then(() => true));
      expect([events('store-down').length, events('store-up').length]).toEqual([outage, outage]);
    }
    expect(log).toHaveLength(4);
    expect(events('busy')).toEqual([]);
  });
});

describe('ping', () => {
  it('resolves when Redis answers, and needs no lock for it', async () => {
    const { locks } = lab.open();
    expect(await locks.ping()).toBeUndefined();
    expect(await lab.leftovers()).toEqual([]);
  });
});

describe('usage', () => {
  it('is zero again after ten thousand keys that came once', async () => {
    const { locks, store } = lab.open();
    const names = Array.from({ length: 10_000 }, (_, i) => `once-${i}`);
    for (let i = 0; i < names.length; i += 500) {
      await Promise.all(names.slice(i, i + 500).map((key) => locks.withLock(key, () => undefined)));
    }
    expect(locks.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
    expect(store.subscriptions).toBe(0);
    expect(await lab.leftovers()).toEqual([]);
  });

  it('counts what there is meanwhile', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const lease = await locks.acquire(key);
    const waiting = locks.acquire(key);
    await sleep(0);
    expect(locks.usage).toEqual({ leases: 2, keys: 1, holds: 1, undoing: 0 });
    await lease.release();
    await (await waiting).release();
  });
});
