import type { CoreContext } from '../context/core-context.js';
import { storeError } from '../errors/error-messages.js';
import type { Claim } from '../seam/claim.js';
import type { LocalQueue } from './local-queue.js';
import { deadlineOf, type Wait } from '../wait/wait.js';

/** Longest pause before a retry after a foreign release, in ms: 1 ms for each position in the wait queue. */
const LONGEST_STEP_ASIDE_MS = 20;

/**
 * Lets the entries before this one send their requests first, after a foreign holder has released the lock: all queued
 * processes are notified of that.
 */
export const letOthersLook = async (queue: LocalQueue, wait: Wait, wakeUpsBefore: number): Promise<void> => {
  const { ownEntry: entry } = queue;
  if (!entry || entry.outcome || entry.position === 0 || queue.wakeUps === wakeUpsBefore) return;
  await queue.wakeUp.untilWoken(Math.min(entry.position, LONGEST_STEP_ASIDE_MS), wait.signal);
};

/** Lets other processes go first: they wait for the lock that this process has just released. */
export const yieldToOthers = async (
  { runtime }: CoreContext,
  queue: LocalQueue,
  wait: Wait,
  claim: Claim,
): Promise<void> => {
  queue.wakeUp.listen(claim);
  for (;;) {
    const until = queue.yieldingUntil;
    const now = runtime.now();
    const leftMs = deadlineOf(wait) - now;
    if (until === undefined || leftMs <= 0 || wait.signal?.aborted) return;
    try {
      await queue.wakeUp.untilWoken(Math.min(until - now, leftMs), wait.signal);
    } catch {
      // Nothing can be heard; asking the store will show whether that matters.
      return;
    }
  }
};

/**
 * Rejects the callers behind the contender, and returns the contender's error, when no notification about the key can
 * ever arrive.
 */
export const neverNotified = (core: CoreContext, queue: LocalQueue, wait: Wait, failure: unknown): Error => {
  queue.failed(failure, 'waiting for');
  return storeError(core.shown(wait.key), failure, 'waiting for', core.runtime.now() - wait.startedAt);
};

/** Pauses while the store fails: until all try again (see `Outages`), a notification comes, or the wait is over. */
export const pauseInOutage = async (
  core: CoreContext,
  queue: LocalQueue,
  wait: Wait,
  claim: Claim,
): Promise<void> => {
  const { wakeUp, ownEntry: entry } = queue;
  if (entry?.outcome || core.reasonToStop(wait)) return;
  wakeUp.listen(claim);
  try {
    await wakeUp.untilWoken(Math.ceil(deadlineOf(wait) - core.runtime.now()) + 1, wait.signal, true);
  } catch (failure) {
    throw neverNotified(core, queue, wait, failure);
  }
};
