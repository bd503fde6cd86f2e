import type { CoreContext } from '../context/core-context.js';
import { storeError } from '../errors/error-messages.js';
import type { Claim } from '../seam/claim.js';
import type { LocalQueue } from './local-queue.js';
import { deadlineOf, type Wait } from '../wait/wait.js';

/** What a pause uses of its service. */
type Core = Pick<CoreContext, 'reasonToStop' | 'runtime' | 'shown'>;

/**
 * Rejects the callers behind the contender, and returns the contender's error, when no notification about the key can
 * ever arrive.
 */
export const neverNotified = (core: Core, queue: LocalQueue, wait: Wait, failure: unknown): Error => {
  queue.failed(failure, 'waiting for');
  return storeError(core.shown(wait.key), failure, 'waiting for', core.runtime.now() - wait.startedAt);
};

/** Pauses while the store fails: until all try again (see `Outages`), a notification comes, or the wait is over. */
export const pauseInOutage = async (
  core: Core,
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
