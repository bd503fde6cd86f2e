import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LockNotAcquiredError, LockService } from 'nest-redis-lock';
import {
  bindLocks,
  createTestingLocks,
  RedisLockTestingModule,
  type RedisLockTestingOptions,
} from 'nest-redis-lock/testing';
import { OrderService } from './shared/shop.js';

const compile = (options: RedisLockTestingOptions = {}) =>
  Test.createTestingModule({
    imports: [RedisLockTestingModule.forRoot(options)],
    providers: [OrderService],
  }).compile();

describe('OrderService in a test module, without Redis', () => {
  it('places the orders of one user one after the other', async () => {
    const app = await compile();
    const orders = app.get(OrderService);
    const placed = await Promise.all([orders.place('ada'), orders.place('ada'), orders.place('ada')]);
    expect(orders.mostInside).toBe(1);
    expect(new Set(placed.map(({ token }) => token)).size).toBe(3);
    await app.close();
  });

  it('works when made by hand and bound', async () => {
    const locks = createTestingLocks();
    const orders = bindLocks(new OrderService(locks), locks);
    await expect(orders.place('ada')).resolves.toMatchObject({ userId: 'ada' });
  });
});

describe('OrderService under fake timers', () => {
  beforeEach(() => void jest.useFakeTimers());
  afterEach(() => void jest.useRealTimers());

  it('takes a free lock without any timer moving', async () => {
    const app = await compile();
    await expect(app.get(OrderService).place('ada')).resolves.toMatchObject({ userId: 'ada' });
    await app.close();
  });

  it('gives up when the fake clock has passed the wait, and not before', async () => {
    const app = await compile({ maxWaitMs: Infinity });
    const holder = await app.get(LockService).acquire('order:ada');
    let outcome: unknown = 'waiting';
    const placed = app
      .get(OrderService)
      .place('ada')
      .catch((error: unknown) => error)
      .then((value) => (outcome = value));
    await jest.advanceTimersByTimeAsync(19_999);
    expect(outcome).toBe('waiting');
    await jest.advanceTimersByTimeAsync(1);
    await placed;
    expect(outcome).toBeInstanceOf(LockNotAcquiredError);
    await holder.release();
    await app.close();
  });

  it('keeps a lock for as long as its holder works, however far the clock goes', async () => {
    const app = await compile();
    const locks = app.get(LockService);
    const lease = await locks.acquire('order:ada');
    await jest.advanceTimersByTimeAsync(10 * 60_000);
    expect(lease.lost).toBe(false);
    await expect(locks.tryAcquire('order:ada')).resolves.toBeNull();
    await expect(lease.release()).resolves.toBe('released');
    await app.close();
  });

  it('loses a fixed lease when the clock has passed its end', async () => {
    const app = await compile();
    const lease = await app.get(LockService).acquire('order:ada', { leaseMs: 500 });
    await jest.advanceTimersByTimeAsync(500);
    expect(lease.lost).toBe(true);
    await expect(lease.release()).resolves.toBe('lost');
    await app.close();
  });
});
