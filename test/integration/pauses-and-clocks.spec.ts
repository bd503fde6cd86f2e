import { describe, expect, it } from 'vitest';
import { SuspendAwareClock, systemRuntime } from '../../lib/core/util/runtime.js';
import { LockLostError } from 'nest-redis-lock';
import { until } from '../support/async.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import { openLocks } from '../support/redis/open-locks.js';
import { COMMAND_TIMEOUT_MS } from '../support/redis/store-failures.js';

const lab = useLab();

describe('a process that stands still past its lease', () => {
  it('knows of the loss before it does anything else, and others had the lock meanwhile', async () => {
    const worker = await lab.worker({ options: { watchdogMs: 1_000, waitMs: 10_000 } });
    const { locks } = lab.open({ waitMs: 10_000 });
    const key = newKey();
    worker.send({ type: 'acquire', id: 'a', keys: key });
    const { token } = await worker.next('acquired');
    await worker.kill('SIGSTOP');
    const lease = await locks.acquire(key);
    expect(lease.fencingToken, 'a writer that slept is told apart by its token').toBeGreaterThan(token);
    await worker.kill('SIGCONT');
    const lost = await worker.next('lost');
    expect(lost).toMatchObject({ id: 'a', code: 'LOCK_LOST', remainingMs: 0 });
    worker.send({ type: 'release', id: 'a' });
    expect((await worker.next('released')).outcome).toBe('lost');
    // Neither its renewals nor its release have touched the new holder.
    expect(lease.lost).toBe(false);
    expect((await lab.hold(key))?.leftMs).toBeGreaterThan(20_000);
    expect(await lease.release()).toBe('released');
  });

  it('with its event loop blocked learns at once, does not take the lock again, and does not disturb the next one', async () => {
    const holder = await lab.worker({ options: SHORT_WATCHDOG });
    const { locks } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    holder.send({ type: 'acquire', id: 'one', keys: key });
    const { token } = await holder.next('acquired');
    const next = locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);

    holder.send({ type: 'block', ms: 2 * SHORT_WATCHDOG.watchdogMs });
    await using lease = await next;
    expect(lease.fencingToken).toBeGreaterThan(token);
    // Not even code that runs before the first timer believes in the lease any more.
    expect((await holder.next('unblocked')).remainingMs).toEqual({ one: 0 });
    expect(await holder.next('lost')).toMatchObject({ id: 'one', code: 'LOCK_LOST', remainingMs: 0 });

    const { owner } = (await lab.hold(key))!;
    // As long as the renewals of the first one would have taken to come.
    await lab.renewals(2);
    holder.send({ type: 'release', id: 'one' });
    expect((await holder.next('released')).outcome).toBe('lost');
    expect(await lab.hold(key)).toMatchObject({ owner });
    holder.send({ type: 'look' });
    expect(await holder.next('seen')).toMatchObject({ usage: { holds: 0, leases: 0 }, unhandled: [] });
  });
});

/** Keeps the event loop busy. */
const block = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

describe('an event loop that is blocked for longer than the command time-out', () => {
  it.each([
    ['in the same tick', () => Promise.resolve()],
    ['after the command was sent', () => new Promise((resolve) => setImmediate(resolve))],
  ])('is no failure of the store: blocked %s', async (_when, before) => {
    const { locks, events, log } = lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS });
    await locks.ping();
    const attempts = Array.from({ length: 5 }, () => locks.acquire(newKey()));
    await before();
    block(COMMAND_TIMEOUT_MS * 2.5);
    const leases = await Promise.all(attempts);
    expect(leases.every((lease) => !lease.lost)).toBe(true);
    expect(events('store-down')).toEqual([]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(leases.map(() => 'released'));
    expect(log).toEqual([]);
  });

  it('costs no connection: the store does not reconnect', async () => {
    // A second after its first lock, a service connects to be asked about its holds.
    const { locks } = lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS, holderInfo: false });
    await locks.ping();
    const connected = async () => /total_connections_received:(\d+)/.exec(await lab.admin.info('stats'))![1];
    const before = await connected();
    for (let i = 0; i < 3; i += 1) {
      const lease = locks.acquire(newKey());
      block(COMMAND_TIMEOUT_MS * 1.5);
      await (await lease).release();
    }
    expect(await connected()).toBe(before);
  });
});

describe('a machine that sleeps', () => {
  /** A service on a machine whose sleep is in the hands of the test. */
  const onLaptop = () => {
    let asleepMs = 0;
    const clock = new SuspendAwareClock(
      () => performance.now(),
      () => 1_000_000 + performance.now() + asleepMs,
    );
    const opened = openLocks(lab.server.url, { watchdogMs: 30_000 }, systemRuntime(clock));
    return { ...opened, sleep: (ms: number) => (asleepMs += ms) };
  };

  it('wakes up without the leases that ran out meanwhile, though the monotonic clock has not moved', async () => {
    const laptop = onLaptop();
    const key = newKey();
    const lease = await laptop.locks.acquire(key);
    laptop.sleep(60_000);
    // The server went on counting.
    await lab.admin.pexpire(holdName(key), 1);
    await until(() => lease.lost, { timeoutMs: 3_000, what: 'the loss is noticed within about a second' });
    expect(lease.remainingMs()).toBe(0);
    await expect(lease.extend(1_000)).rejects.toBeInstanceOf(LockLostError);
    expect(await lease.release()).toBe('lost');
    await laptop.close();
  });

  it('keeps a lease that outlasted the sleep, with what is left of it', async () => {
    const laptop = onLaptop();
    const lease = await laptop.locks.acquire(newKey(), { leaseMs: 300_000 });
    laptop.sleep(100_000);
    await until(() => lease.remainingMs() < 210_000, { timeoutMs: 3_000 });
    expect(lease.remainingMs()).toBeGreaterThan(190_000);
    expect(await lease.release()).toBe('released');
    await laptop.close();
  });
});

describe("the process's wall clock", () => {
  it('may jump as it likes: leases count on another one', async () => {
    const { locks } = lab.open();
    const lease = await locks.acquire(newKey(), { leaseMs: 20_000 });
    const { now } = Date;
    try {
      for (const jump of [3_600_000, -86_400_000, 31_536_000_000]) {
        Date.now = () => now() + jump;
        expect(lease.lost).toBe(false);
        expect(lease.remainingMs()).toBeGreaterThan(10_000);
        await locks.withLock(newKey(), { waitMs: 2_000 }, () => undefined);
      }
    } finally {
      Date.now = now;
    }
    expect(await lease.release()).toBe('released');
  });
});
