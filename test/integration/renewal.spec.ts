import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockConfigurationError, Locked, LockLostError, RedisLockModule } from 'nest-redis-lock';
import { RedisStore } from 'nest-redis-lock/redis';
import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { holdName, Lab, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import { ManualClock } from '../support/redis/manual-clock.js';

/** Renewals after which the first lease of the short watchdog would have been over. */
const PAST_THE_LEASE = 4;

/** Requests are counted here, so the process writes no record of itself. */
const NO_RECORDS = { holderInfo: false };

const lab = useLab();

/** How often a request to renew was sent, or another script. */
const requests = async (): Promise<number> => (await lab.calls())['evalsha'] ?? 0;

describe('the watchdog', () => {
  it('sets a lease of 30 s, renews it every 10 s, and ends with the release', async () => {
    const clock = new ManualClock();
    const opened = lab.open(NO_RECORDS, undefined, clock.runtime('watched'));
    const lease = await opened.locks.acquire(newKey());
    expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(25_000);
    for (const second of [10, 20, 30, 40]) {
      // As if the time had gone by in Redis as well.
      await lab.admin.pexpire(holdName(lease.key), 20_000);
      const before = await requests();
      clock.moveTo(second * 1_000 - 1);
      await opened.locks.ping();
      expect(await requests()).toBe(before);
      clock.moveTo(second * 1_000);
      await until(() => lease.remainingMs() > 29_000, { what: 'a renewal' });
      expect(await requests()).toBe(before + 1);
      expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(25_000);
    }
    expect(await lease.release()).toBe('released');
    const before = await requests();
    clock.moveTo(200_000);
    await opened.locks.ping();
    expect(await requests()).toBe(before);
  });

  it('does not renew a fixed lease', async () => {
    const clock = new ManualClock();
    const opened = lab.open(NO_RECORDS, undefined, clock.runtime('fixed'));
    const lease = await opened.locks.acquire(newKey(), { leaseMs: 60_000 });
    const before = await requests();
    clock.moveTo(50_000);
    await opened.locks.ping();
    expect(await requests()).toBe(before);
    expect(lease.remainingMs()).toBe(10_000);
    clock.moveTo(60_000);
    expect(lease.signal.aborted).toBe(true);
    expect(await lease.release()).toBe('lost');
  });

  it('renews fifty locks in one request, three times in a lease and no more', async () => {
    const clock = new ManualClock();
    const opened = lab.open({ ...SHORT_WATCHDOG, ...NO_RECORDS }, undefined, clock.runtime('fifty'));
    const leases = await Promise.all(Array.from({ length: 50 }, () => opened.locks.acquire(newKey())));
    const before = await requests();
    for (let period = 1; period <= PAST_THE_LEASE; period += 1) {
      clock.moveTo(Math.ceil((period * SHORT_WATCHDOG.watchdogMs) / 3));
      await until(() => leases.every((lease) => lease.remainingMs() > 900), { what: 'all are renewed' });
      expect(await requests()).toBe(before + period);
    }
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it('keeps a decorated method locked for as long as it runs: two bodies never overlap', async () => {
    let inside = 0;
    @Injectable()
    class Import {
      @Locked('import')
      async run(): Promise<number> {
        inside += 1;
        // A few of what is counted are questions of the other one.
        await lab.renewals(PAST_THE_LEASE + 3);
        const together = inside;
        inside -= 1;
        return together;
      }
    }
    const { watchdogMs, commandTimeoutMs } = SHORT_WATCHDOG;
    const start = async () => {
      const store = new RedisStore({ redis: lab.server.url, commandTimeoutMs });
      @Module({
        imports: [RedisLockModule.forRoot({ store, watchdogMs, waitMs: 20_000 })],
        providers: [Import],
      })
      class App {}
      const app = await NestFactory.createApplicationContext(App, { logger: false });
      lab.track({ [Symbol.asyncDispose]: () => app.close() });
      return app.get(Import);
    };
    const [one, two] = [await start(), await start()];
    expect(await Promise.all([one.run(), two.run()])).toEqual([1, 1]);
  });
});

describe('the watchdog knows the holder', () => {
  it('of a lock that was acquired and released twice by nested calls: the next hold is renewed', async () => {
    const { locks } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    await locks.withLock(key, (inside) => locks.withLock(key, { inside }, () => undefined));
    await using lease = await locks.acquire(key);
    await lab.renewals(PAST_THE_LEASE);
    expect(lease.remainingMs()).toBeGreaterThan(0);
    expect(await lease.release()).toBe('released');
  });

  it('while sixteen callers acquire and release thousands of times, and renews the last hold', async () => {
    const { locks } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    let granted = 0;
    const caller = async () => {
      for (let round = 0; granted < 1_000; round += 1) {
        const lease = await locks.tryAcquire(key, { waitMs: round % 5 });
        if (!lease) continue;
        granted += 1;
        expect(locks.held().map((held) => held.key)).toContain(key);
        expect(await lease.release()).toBe('released');
      }
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    expect(locks.held().map((held) => held.key)).not.toContain(key);

    await using _last = await locks.acquire(key);
    await lab.renewals(PAST_THE_LEASE);
  });

  it('after Redis lost its data: the release reports the loss, and the next lock of that name is renewed', async () => {
    await using own = await Lab.start();
    const { locks, events, log } = own.open(SHORT_WATCHDOG);
    const lease = await locks.acquire('order');
    await own.server.restart({ keepData: false });
    expect(await lease.release()).toBe('lost');
    expect(events('lost')).toEqual([expect.objectContaining({ key: 'order' })]);
    expect(log).toContainEqual(expect.stringMatching(/"order" was lost/));

    await using next = await locks.acquire('order');
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await own.renewals(PAST_THE_LEASE);
    expect(await next.release()).toBe('released');
  });
});

describe('a renewal', () => {
  it('never shortens: after extend(60 s) the watchdog leaves 60 s, on both sides', async () => {
    const { locks } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    const lease = await locks.acquire(key);
    await lease.extend(60_000);
    await lab.renewals(3);
    expect(await lab.admin.pttl(holdName(key))).toBeGreaterThan(50_000);
    expect(lease.remainingMs()).toBeGreaterThan(50_000);
  });

  it('never brings back a hold that is gone', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    const lease = await locks.acquire(key);
    await lab.admin.del(holdName(key));
    await until(() => events('lost').length > 0);
    expect(lease.lost).toBe(true);
    expect(await lab.admin.exists(holdName(key))).toBe(0);
    expect(await lease.release()).toBe('lost');
  });

  it('of one bad key does not cost its neighbours their leases: 99 outlive a WRONGTYPE in the middle', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    const keys = Array.from({ length: 100 }, () => newKey());
    const leases = await Promise.all(keys.map((key) => locks.acquire(key)));
    const bad = 37;
    await lab.admin.set(holdName(keys[bad]!), 'a foreign value');
    await until(() => events('lost').length > 0, { timeoutMs: 10_000, what: 'the bad one is lost' });
    // Long after every lease would have ended without renewal.
    await lab.renewals(PAST_THE_LEASE * 99);
    expect(events('lost').map(({ key, reason }) => [key, reason])).toEqual([[keys[bad], 'refused']]);
    expect(leases.map(({ lost }) => lost)).toEqual(keys.map((_, i) => i === bad));
    expect(events('store-down'), 'one bad key is no outage').toEqual([]);
    const endings = await Promise.all(leases.map((lease) => lease.release()));
    expect(endings.filter((ending) => ending === 'released')).toHaveLength(99);
    expect(await lab.admin.get(holdName(keys[bad]!)), 'what is not ours is left alone').toBe(
      'a foreign value',
    );
  });

  it('that failed once, and the next succeeds: nothing is lost', async () => {
    const proxy = await lab.proxy();
    const opened = lab.open({ watchdogMs: 3_000, commandTimeoutMs: 300 }, proxy.url);
    const lease = await opened.locks.acquire('order');
    let renewals = 0;
    proxy.onData((connection, direction, chunk) => {
      if (direction !== 'toServer' || !chunk.includes('evalsha')) return;
      renewals += 1;
      if (renewals === 1) connection.cut();
    });
    // The one that failed, and as many after it as take longer than the lease would have lasted.
    await until(() => renewals > PAST_THE_LEASE, { what: 'renewals past the end of the lease' });
    expect((await lab.hold('order'))!.leftMs).toBeGreaterThan(0);
    expect([opened.events('lost'), lease.signal.aborted]).toEqual([[], false]);
    expect(await lease.release()).toBe('released');
  });

  it('that fails until the lease is over: that is the loss, at that time and not later', async () => {
    const own = lab.track(await Lab.start());
    const opened = own.open({ watchdogMs: 1_000, commandTimeoutMs: 300 });
    const lease = await opened.locks.acquire('order');
    const sentBefore = performance.now();
    await own.server.kill('SIGSTOP');
    await until(() => lease.signal.aborted);
    expect(performance.now() - sentBefore).toBeLessThan(1_000 + 500);
    expect(opened.events('lost')).toMatchObject([{ key: 'order', reason: 'expired' }]);
    await own.server.kill('SIGCONT');
    await until(async () => !(await own.hold('order')));
    expect(await lease.release()).toBe('lost');
  });

  it('that failed does not end renewal for that name: the next lock of it is renewed', async () => {
    const proxy = await lab.proxy();
    const opened = lab.open({ watchdogMs: 1_000, commandTimeoutMs: 300 }, proxy.url);
    const lease = await opened.locks.acquire(newKey());
    proxy.swallowReplies();
    await until(() => lease.signal.aborted);
    await proxy.restore();
    expect(await lease.release()).toBe('lost');
    const next = await until(() => opened.locks.acquire(lease.key, { waitMs: 5_000 }));
    await lab.renewals(PAST_THE_LEASE);
    expect(await next.release()).toBe('released');
  });
});

describe('extend', () => {
  it.each([
    ['fixed', 5_000],
    ['on the watchdog', undefined],
  ])('lengthens a lease from now, and never shortens one (%s)', async (_which, leaseMs) => {
    const { locks } = lab.open();
    await using lease = await locks.acquire(newKey(), { leaseMs });
    await lease.extend(60_000);
    expect(lease.remainingMs()).toBeGreaterThan(50_000);
    await lease.extend(1_000);
    expect(lease.remainingMs()).toBeGreaterThan(50_000);
    expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(50_000);
  });

  it('never makes its holder believe in more than Redis has, also cut off right after it', async () => {
    const proxy = await lab.proxy();
    const { locks } = lab.open({ watchdogMs: 1_500, commandTimeoutMs: 300 }, proxy.url);
    const key = newKey();
    const lease = await locks.acquire(key);
    await lease.extend(3_000);
    proxy.blackhole();
    for (;;) {
      // Redis is asked first: time that passes in between makes the belief shorter, never longer.
      const left = await lab.admin.pttl(holdName(key));
      const believed = lease.remainingMs();
      if (lease.lost) break;
      expect(believed).toBeLessThanOrEqual(Math.max(left, 0) + 1);
    }
    expect(lease.remainingMs()).toBe(0);
  });

  it('of a lost lease is LockLostError, and takes nothing back', async () => {
    const { locks } = lab.open();
    const lease = await locks.acquire(newKey());
    await lab.admin.del(holdName(lease.key));
    await expect(lease.extend(60_000)).rejects.toBeInstanceOf(LockLostError);
    expect(await lab.hold(lease.key)).toBeNull();
    expect(lease.signal.aborted).toBe(true);
    expect(await lease.release()).toBe('lost');
  });

  it('after the release changes nothing in Redis and says that it is over', async () => {
    const { locks } = lab.open();
    const lease = await locks.acquire(newKey());
    await lease.release();
    await using next = await locks.acquire(lease.key, { leaseMs: 5_000 });
    await expect(lease.extend(60_000)).rejects.toBeInstanceOf(LockConfigurationError);
    expect((await lab.hold(lease.key))!.leftMs).toBeLessThanOrEqual(5_000);
    expect(next.remainingMs()).toBeLessThanOrEqual(5_000);
  });
});
