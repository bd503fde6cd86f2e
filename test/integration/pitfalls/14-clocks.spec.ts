import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { SuspendAwareClock, systemRuntime } from '../../../lib/core/runtime.js';
import { LockLostError } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { holdName, Lab, newKey } from '../../support/redis/lab.js';
import { openLocks } from '../../support/redis/open-locks.js';

let lab: Lab;

beforeAll(async () => {
  lab = await Lab.start();
});

afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

describe('pitfall 14: a process that stands still past its lease', () => {
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

  it('the very first look says so, before any timer or answer has had its turn', async () => {
    const worker = await lab.worker({ options: { watchdogMs: 1_000 } });
    worker.send({ type: 'acquire', id: 'a', keys: newKey() });
    await worker.next('acquired');
    worker.send({ type: 'block', ms: 1_300 });
    const { remainingMs } = await worker.next('unblocked');
    expect(remainingMs).toEqual({ a: 0 });
  });
});

describe('pitfall 14: a machine that sleeps', () => {
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

describe("pitfall 14: the process's wall clock", () => {
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
