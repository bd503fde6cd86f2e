// The semaphores and latches of the service.
import { expectTypeOf } from 'vitest';
import type { CountDownLatch, LockService, Semaphore, WaitOptions } from 'nest-redis-lock';

declare const locks: LockService;

const semaphore = locks.semaphore('pool');
expectTypeOf(semaphore).toEqualTypeOf<Semaphore>();
expectTypeOf(semaphore.acquire()).toEqualTypeOf<Promise<void>>();
expectTypeOf(semaphore.acquire(2, { waitMs: Infinity, signal: AbortSignal.timeout(5) })).resolves.toBeVoid();
expectTypeOf(semaphore.tryAcquire(undefined, { waitMs: 5 })).resolves.toBeBoolean();
expectTypeOf(semaphore.availablePermits()).resolves.toBeNumber();

const latch = locks.countDownLatch('import');
expectTypeOf(latch).toEqualTypeOf<CountDownLatch>();
expectTypeOf(latch.wait({ waitMs: 5 })).resolves.toBeVoid();
expectTypeOf(latch.tryWait()).resolves.toBeBoolean();
expectTypeOf(latch.getCount()).resolves.toBeNumber();

// @ts-expect-error is not assignable to parameter of type 'string'
locks.semaphore(['a', 'b']);
// @ts-expect-error Expected 1 arguments, but got 0
void semaphore.trySetPermits();
// @ts-expect-error 'leaseMs' does not exist in type 'WaitOptions'
void semaphore.acquire(1, { leaseMs: 5 });
// @ts-expect-error is not assignable to parameter of type 'number'
void semaphore.acquire({ waitMs: 5 });
// @ts-expect-error 'watchdogMs' does not exist in type 'WaitOptions'
void latch.wait({ watchdogMs: 5_000 });

export const options: WaitOptions = { waitMs: 5 };
