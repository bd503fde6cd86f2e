import type { CoreContext } from '../core-context.js';
import { storeError } from '../errors/error-messages.js';
import type { Claim } from '../seam/claim.js';
import type { LocalQueue } from './local-queue.js';
import { deadlineOf, type Wait } from './wait.js';

/** After a foreign release: 1 ms for each position in the store's line before the next request, and at most so many. */
const LONGEST_STEP_ASIDE_MS = 20;

/** All in line are notified that a foreign holder has gone: the first of them asks first. */
export const letOthersLook = async (queue: LocalQueue, wait: Wait, hintsBefore: number): Promise<void> => {
  const { linePlace: place } = queue;
  if (!place || place.outcome || place.position === 0 || queue.hints === hintsBefore) return;
  await queue.wakeUp.hinted(Math.min(place.position, LONGEST_STEP_ASIDE_MS), wait.signal);
};

/** This process had the lock just now and others wait for it: they go first. */
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

/** Nothing can ever be heard about the key: returns what its callers get, and rejects those behind the head. */
export const neverHeard = (core: CoreContext, queue: LocalQueue, wait: Wait, failure: unknown): Error => {
  queue.failed(failure, 'waiting for');
  return storeError(wait.key, failure, 'waiting for', core.runtime.now() - wait.startedAt);
};

/** The store fails: waits until all try again (see `Outages`), something is heard of the key, or the wait is over. */
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
