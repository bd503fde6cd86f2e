import { createRequire } from 'node:module';
import { afterEach, beforeEach, describe, expect, it, jest } from '@jest/globals';
import { Test } from '@nestjs/testing';
import { LockNotAcquiredError, LockService } from 'nest-redis-lock';
import { StoreFailure } from 'nest-redis-lock/store';
import { bindLocks, createTestingLocks, RedisLockTestingModule } from 'nest-redis-lock/testing';
import { OrderService } from './shared/shop.js';

const compile = () =>
  Test.createTestingModule({
    imports: [RedisLockTestingModule.forRoot()],
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

  it('gives up when the fake clock has passed the wait', async () => {
    const app = await compile();
    const holder = await app.get(LockService).acquire('order:ada');
    const placed = app
      .get(OrderService)
      .place('ada')
      .catch((error: unknown) => error);
    await jest.advanceTimersByTimeAsync(20_000);
    expect(await placed).toBeInstanceOf(LockNotAcquiredError);
    await holder.release();
    await app.close();
  });
});

it('import and require load one core', () => {
  const required = createRequire(import.meta.url)('nest-redis-lock/store') as { StoreFailure: unknown };
  expect(required.StoreFailure).toBe(StoreFailure);
});
