// A team's unit tests of a class with locked methods, as docs/guide/testing.md shows them.
import 'reflect-metadata';
import { Injectable } from '@nestjs/common';
import { Test, type TestingModule } from '@nestjs/testing';
import { bindLocks, createTestingLocks, RedisLockTestingModule } from 'nest-redis-lock/testing';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { LockNotAcquiredError, LockService, Locked, currentLease } from 'nest-redis-lock';
import { deferred } from '../support/async.js';

/** Before it is faked. */
const turn = setImmediate;

@Injectable()
class Payments {
  async charge(_user: string): Promise<string> {
    return 'charged';
  }
}

@Injectable()
class OrderService {
  constructor(private readonly payments: Payments) {}

  @Locked('order:<<user>>')
  async place(user: string): Promise<{ result: string; fence: number }> {
    return { result: await this.payments.charge(user), fence: currentLease().fencingToken };
  }
}

describe('in a testing module', () => {
  let module: TestingModule;
  const charge = vi.fn<(user: string) => Promise<string>>();

  beforeEach(async () => {
    charge.mockReset().mockResolvedValue('charged');
    module = await Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot()],
      providers: [OrderService, { provide: Payments, useValue: { charge } }],
    }).compile();
  });
  afterEach(() => module.close());

  it('the method works, with a lease', async () => {
    const { result, fence } = await module.get(OrderService).place('alice');
    expect(result).toBe('charged');
    expect(fence).toBeGreaterThan(0);
    expect(charge).toHaveBeenCalledExactlyOnceWith('alice');
  });

  it('callers for one key come one after the other', async () => {
    const first = deferred<string>();
    charge.mockReturnValueOnce(first.promise);
    const orders = module.get(OrderService);
    const both = [orders.place('alice'), orders.place('alice')];
    await vi.waitFor(() => expect(charge).toHaveBeenCalledTimes(1));
    await orders.place('bob');
    first.resolve('charged first');
    await Promise.all(both);
    expect(charge.mock.calls.flat()).toEqual(['alice', 'bob', 'alice']);
  });

  it('a taken lock is refused, as a test of the refusal needs it', async () => {
    const impatient = await Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot({ waitMs: 0 })],
      providers: [OrderService, { provide: Payments, useValue: { charge } }],
    }).compile();
    const other = await impatient.get(LockService).acquire('order:alice');
    await expect(impatient.get(OrderService).place('alice')).rejects.toThrow(LockNotAcquiredError);
    expect(charge).not.toHaveBeenCalled();
    // Closing waits for holds.
    await other.release();
    await impatient.close();
  });

  it('useMocker for everything else leaves the locks alone', async () => {
    const mocked = await Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot()],
      providers: [OrderService],
    })
      .useMocker(() => ({ charge: async () => 'mocked' }))
      .compile();
    await expect(mocked.get(OrderService).place('alice')).resolves.toMatchObject({ result: 'mocked' });
    await mocked.close();
  });
});

describe('without Nest', () => {
  it('bindLocks gives an object made by hand its locks', async () => {
    // Nothing closes it: the timer of its record would go on in the next test, with the clock of that.
    const locks = createTestingLocks('memory', { waitMs: 0, holderInfo: false });
    const orders = bindLocks(new OrderService(new Payments()), locks);
    await expect(orders.place('alice')).resolves.toMatchObject({ result: 'charged' });
    await using _other = await locks.acquire('order:alice');
    await expect(orders.place('alice')).rejects.toThrow(LockNotAcquiredError);
  });
});

describe('with fake timers', () => {
  beforeEach(() => {
    vi.useFakeTimers();
  });
  afterEach(() => {
    vi.useRealTimers();
  });

  it('a wait is over when the clock says so', async () => {
    const locks = createTestingLocks();
    const orders = bindLocks(new OrderService(new Payments()), locks);
    const lease = await locks.acquire('order:alice');
    const refused = expect(orders.place('alice')).rejects.toThrow(/still taken after 1000 ms/);
    await vi.advanceTimersByTimeAsync(1_000);
    await refused;
    await lease.release();
    await vi.advanceTimersByTimeAsync(30_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('hundreds of waits are over when the clock says so, also where microtasks and turns are faked', async () => {
    vi.useFakeTimers({
      toFake: ['setTimeout', 'clearTimeout', 'setImmediate', 'queueMicrotask', 'performance'],
    });
    const locks = createTestingLocks('memory', { holderInfo: false, maxWaitMs: Infinity, waitMs: 1_000 });
    const outside = await locks.testing.hold('seat:0');
    const refused = Promise.allSettled(Array.from({ length: 600 }, () => locks.acquire('seat:0')));
    // The first of them has asked the store.
    await new Promise((done) => turn(done));
    vi.advanceTimersByTime(1_000);
    const reasons = (await refused).map((one) => one.status === 'rejected' && (one.reason as Error).message);
    expect(reasons.filter((text) => /still taken after 1000 ms/.test(String(text)))).toHaveLength(600);
    await outside.release();
  });

  it('a watchdog keeps a lock for hours, and a fixed lease ends', async () => {
    const locks = createTestingLocks();
    const kept = await locks.acquire('kept');
    const fixed = await locks.acquire('fixed', { leaseMs: 1_000 });
    await vi.advanceTimersByTimeAsync(999);
    expect([kept.lost, fixed.lost]).toEqual([false, false]);
    await vi.advanceTimersByTimeAsync(2);
    expect([kept.lost, fixed.lost]).toEqual([false, true]);
    await vi.advanceTimersByTimeAsync(3_600_000);
    expect(kept.lost).toBe(false);
    await expect(kept.release()).resolves.toBe('released');
    await expect(fixed.release()).resolves.toBe('lost');
    await vi.advanceTimersByTimeAsync(30_000);
    expect(vi.getTimerCount()).toBe(0);
  });

  it('holdAtLeastMs keeps a second run away until the clock says so', async () => {
    class Jobs {
      runs = 0;

      @Locked('nightly-report', { onBusy: 'skip', holdAtLeastMs: 30_000 })
      async run(): Promise<void> {
        this.runs++;
      }
    }
    const jobs = bindLocks(new Jobs(), createTestingLocks());
    await jobs.run();
    await jobs.run();
    expect(jobs.runs).toBe(1);
    await vi.advanceTimersByTimeAsync(30_001);
    await jobs.run();
    expect(jobs.runs).toBe(2);
  });

  it('works with locks that were made before the timers were faked', async () => {
    vi.useRealTimers();
    const locks = createTestingLocks();
    const orders = bindLocks(new OrderService(new Payments()), locks);
    vi.useFakeTimers();
    await expect(orders.place('alice')).resolves.toMatchObject({ result: 'charged' });
    await expect(orders.place('alice')).resolves.toMatchObject({ result: 'charged' });
  });
});
