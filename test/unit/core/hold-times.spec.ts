import { describe, expect, it } from 'vitest';
import { HoldTimes } from '../../../lib/core/report/hold-times.js';
import { LockNotAcquiredError, withLabel, type LockErrorCode } from '../../../lib/core/errors/lock.errors.js';

const refused = (waitersAhead?: number, code: LockErrorCode = 'LOCK_TAKEN', label = 'a') =>
  withLabel(new LockNotAcquiredError(code, 'taken', { waitersAhead }), label);

const of = (...times: number[]): HoldTimes => {
  const holds = new HoldTimes(50);
  for (const ms of times) holds.add('a', ms);
  return holds;
};

describe('the time until a caller may try again', () => {
  it('is unknown before a hold with its label has ended', () => {
    expect(new HoldTimes(50).retryAfterMs(refused(3))).toBeUndefined();
    expect(of(100).retryAfterMs(refused(3, 'LOCK_TAKEN', 'b'))).toBeUndefined();
  });

  it('is the median hold time, which a single long hold does not move', () => {
    expect(of(100, 60_000, 90, 110, 95).retryAfterMs(refused())).toBe(100);
  });

  it('grows with the callers before, of which the holder is one', () => {
    expect([0, 1, 9].map((ahead) => of(100).retryAfterMs(refused(ahead)))).toEqual([100, 200, 1_000]);
  });

  it('is shorter where several hold at once', () => {
    expect([0, 2, 3].map((ahead) => of(100).retryAfterMs(refused(ahead), 3))).toEqual([100, 100, 200]);
  });

  it('takes a full queue for maxWaiters callers', () => {
    expect(of(100).retryAfterMs(refused(undefined, 'LOCK_QUEUE_FULL'))).toBe(5_100);
  });

  it('follows the last 15 holds', () => {
    const holds = of(...Array<number>(100).fill(1_000));
    for (let i = 0; i < 7; i++) holds.add('a', 10);
    expect(holds.retryAfterMs(refused())).toBe(1_000);
    holds.add('a', 10);
    expect(holds.retryAfterMs(refused())).toBe(10);
  });

  it('is unknown for calls by hand without a label', () => {
    const holds = new HoldTimes(50);
    for (const label of ['withLock', 'permits().tryAcquire']) {
      holds.add(label, 100);
      expect(holds.retryAfterMs(refused(0, 'LOCK_TAKEN', label))).toBeUndefined();
    }
  });

  it('is kept for 100 labels, the latest ones', () => {
    const holds = new HoldTimes(50);
    for (let i = 0; i <= 100; i++) holds.add(`label ${i}`, 100);
    const known = [0, 1, 100].map((i) => holds.retryAfterMs(refused(0, 'LOCK_TAKEN', `label ${i}`)));
    expect(known).toEqual([undefined, 100, 100]);
  });
});
