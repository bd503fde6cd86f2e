import { LockAbortedError, LockLostError, LockNotAcquiredError, runOrDelay } from 'nest-redis-lock';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';

const NOW = 1_800_000_000_000;

/** A job that notes its delays. */
const newJob = () => {
  const delays: (readonly [number, string | undefined])[] = [];
  const moveToDelayed = async (timestamp: number, token?: string): Promise<void> => {
    delays.push([timestamp, token]);
  };
  return { delays, moveToDelayed };
};

const reject = (error: unknown) => () => Promise.reject(error);

describe('runOrDelay', () => {
  beforeEach(() => void vi.useFakeTimers({ now: NOW }));
  afterEach(() => void vi.useRealTimers());

  it('resolves with the result of the work, and does not delay the job', async () => {
    const job = newJob();
    expect(await runOrDelay(job, 'token', () => 'done')).toBe('done');
    expect(job.delays).toEqual([]);
  });

  it.each([
    ['1 s by default', undefined, 1_000],
    ['by delayMs', { delayMs: 5_000 }, 5_000],
  ])('delays a job whose lock is taken, %s', async (_, options, delayMs) => {
    const job = newJob();
    const taken = new LockNotAcquiredError('LOCK_TAKEN', 'taken');
    await expect(runOrDelay(job, 'token', reject(taken), options)).rejects.toMatchObject({
      ...{ name: 'DelayedError', message: 'DelayedError', cause: taken },
    });
    expect(job.delays).toEqual([[NOW + delayMs, 'token']]);
  });

  it.each([
    ['of the work', new Error('no paper')],
    ['of a lost lock', new LockLostError('LOCK_LOST', 'lost', { reason: 'expired' })],
    ['of a caller that gave up', new LockAbortedError('LOCK_ABORTED', 'aborted')],
  ])('rejects with an error %s, and does not delay the job', async (_, error) => {
    const job = newJob();
    await expect(runOrDelay(job, 'token', reject(error))).rejects.toBe(error);
    expect(job.delays).toEqual([]);
  });

  it('rejects with the error of the queue if the job cannot be delayed', async () => {
    const job = { moveToDelayed: reject(new Error('Missing lock')) };
    const taken = new LockNotAcquiredError('LOCK_TAKEN', 'taken');
    await expect(runOrDelay(job, 'token', reject(taken))).rejects.toThrow('Missing lock');
  });
});
