import type { CoreContext } from '../core-context.js';
import { storeError } from '../errors/error-messages.js';
import type { Claim } from '../seam/claim.js';
import type { LocalQueue } from './local-queue.js';
import { deadlineOf, type Wait } from './wait.js';

/** After a foreign release: 1 ms for each position in the store's line before the next request, and at most so many. */
const LONGEST_STEP_ASIDE_MS = 20;

/**
 * Lets the entries before this one send their requests first, after a foreign holder has released the lock: all queued
 * processes are notified of that.
 */
export const letOthersLook = async (queue: LocalQueue, wait: Wait, hintsBefore: number): Promise<void> => {
  const { linePlace: place } = queue;
  if (!place || place.outcome || place.position === 0 || queue.hints === hintsBefore) return;
  await queue.wakeUp.hinted(Math.min(place.position, LONGEST_STEP_ASIDE_MS), wait.signal);
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
      await queue.wakeUp.hinted(Math.min(until - now, leftMs), wait.signal);
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
export const neverHeard = (core: CoreContext, queue: LocalQueue, wait: Wait, failure: unknown): Error => {
  queue.failed(failure, 'waiting for');
  return storeError(wait.key, failure, 'waiting for', core.runtime.now() - wait.startedAt);
};

/** Pauses while the store fails: until all try again (see `Outages`), a notification comes, or the wait is over. */
export const pauseInOutage = async (
  core: CoreContext,
  queue: LocalQueue,
  wait: Wait,
  claim: Claim,
): Promise<void> => {
  const { wakeUp, linePlace: place } = queue;
  if (place?.outcome || core.reasonToStop(wait)) return;
  wakeUp.listen(claim);
  place?.onOutcome(() => wakeUp.wakeNow());
  try {
    await wakeUp.hinted(Math.ceil(deadlineOf(wait) - core.runtime.now()) + 1, wait.signal, true);
  } catch (failure) {
    throw neverHeard(core, queue, wait, failure);
  } finally {
    place?.onOutcome(undefined);
  }
};
