import { createTestingLocks } from 'nest-redis-lock/testing';
import { describe, expect, it, onTestFinished, vi } from 'vitest';
import { withLocks, type LockNotAcquiredError } from 'nest-redis-lock';

const MAX = 20;
/** Longer than the time-out of a test. */
const LONG = 600_000;

const capped = (waitMs: number | 'Infinity'): RegExp =>
  new RegExp(
    `The wait was capped: maxWaitMs of the testing module is ${MAX}, and the call has waitMs: ${waitMs}\\.`,
  );

const setup = async () => {
  const locks = createTestingLocks('memory', { maxWaitMs: MAX, waitMs: LONG });
  await locks.testing.hold('a', { mode: 'write' });
  return locks;
};

describe('maxWaitMs of the testing module', () => {
  it.each([Infinity, LONG])(
    'caps the wait of a call with waitMs: %s, and the error says so',
    async (waitMs) => {
      const locks = await setup();
      const error = await locks.acquire('a', { waitMs }).catch((failure: unknown) => failure);
      expect(error).toMatchObject({ code: 'LOCK_TAKEN', key: 'a' });
      expect((error as LockNotAcquiredError).message).toMatch(
        capped(waitMs === Infinity ? 'Infinity' : LONG),
      );
    },
  );

  it('caps the default of the module, also for modes, several keys and nested calls', async () => {
    const locks = await setup();
    for (const mode of ['exclusive', 'fair', 'read', 'write'] as const)
      await expect(locks.withLock('a', { mode }, () => 1)).rejects.toThrow(capped(LONG));
    await expect(locks.acquire(['0', 'a'])).rejects.toThrow(capped(LONG));
    await expect(locks.withLock('0', () => locks.acquire('a'))).rejects.toThrow(capped(LONG));
    await expect(withLocks([{ service: locks, key: 'a' }], () => 1)).rejects.toThrow(capped(LONG));
  });

  it('caps the wait in the queue of the process, behind a holder of the app', async () => {
    const locks = createTestingLocks('memory', { maxWaitMs: MAX, waitMs: LONG });
    await using _lease = await locks.acquire('a');
    await expect(locks.acquire('a')).rejects.toThrow(capped(LONG));
  });

  it('caps the waits for permits, semaphores and latches', async () => {
    const locks = await setup();
    const permits = locks.permits('p', { permits: 1 });
    await using _one = await permits.acquire();
    await expect(permits.withPermit({ waitMs: Infinity }, () => 1)).rejects.toThrow(capped('Infinity'));
    await locks.semaphore('s').trySetPermits(1);
    await locks.semaphore('s').acquire();
    await expect(locks.semaphore('s').acquire(1, { waitMs: Infinity })).rejects.toThrow(capped('Infinity'));
    const latch = locks.countDownLatch('l');
    await latch.trySetCount(1);
    await expect(latch.wait()).rejects.toThrow(capped(LONG));
    await expect(latch.tryWait({ waitMs: LONG })).resolves.toBe(false);
  });

  it('leaves shorter waits, and the results of tryAcquire, as they are', async () => {
    const locks = await setup();
    await expect(locks.tryAcquire('a')).resolves.toBeNull();
    await expect(locks.acquire('a', { waitMs: 5 })).rejects.not.toThrow('capped');
    await expect(locks.acquire('a', { waitMs: 0 })).rejects.not.toThrow('capped');
  });

  it('still refuses a wait without limit inside a section that holds the key', async () => {
    const locks = createTestingLocks('memory', { maxWaitMs: MAX });
    const forItself = locks.withLock('a', () => locks.acquire('a', { waitMs: Infinity }));
    await expect(forItself).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT' });
  });

  it.each([
    [undefined, /maxWaitMs of the testing module is 1000, and the call has waitMs: 5000/],
    [Infinity, /still taken after 5000 ms .* or lock a narrower key\.$/],
  ])('of %s caps a wait of 5 s with "%s"', async (maxWaitMs, message) => {
    vi.useFakeTimers();
    onTestFinished(() => void vi.useRealTimers());
    const locks = createTestingLocks('memory', { maxWaitMs });
    await using _outside = await locks.testing.hold('a');
    const waiting = expect(locks.acquire('a', { waitMs: 5_000 })).rejects.toThrow(message);
    await vi.advanceTimersByTimeAsync(5_000);
    await waiting;
  });
});
