import type { Claim } from './claim.js';
import { abortedError, storeError, takenError } from './failures.js';
import { Hold } from './hold.js';
import { deadlineOf, type KeyQueue, type Wait } from './key-queue.js';
import { StoreFailure, type LockStore } from './lock-store.js';
import type { Runtime } from './runtime.js';
import type { Settler } from './settler.js';
import type { StoreHealth } from './store-health.js';

/** How soon to ask again a store that says "not now", in ms. */
const TRANSIENT_RETRY_MS = 50;
/** How soon to look again while no wake-up can arrive, in ms. */
const DEAF_RETRY_MS = 1_000;

export interface Contention {
  readonly store: LockStore;
  readonly runtime: Runtime;
  readonly health: StoreHealth;
  readonly settler: Settler;
  /** The error for a caller that may not wait any longer because the app stops; undefined while it may. */
  refusal(wait: Wait): Error | undefined;
}

/**
 * Takes the key in the store for the caller whose turn it is: ask; if it is taken, listen for its end, ask again
 * once that can be heard, and after each hint or at the end of the hold in the way. There is no polling.
 *
 * Hints count from before the question was sent: the message of a release can arrive before the answer "taken".
 * On failure the turn is given up; on success the caller keeps it.
 */
export const contend = async (
  { store, runtime, health, settler, refusal }: Contention,
  queue: KeyQueue,
  wait: Wait,
  claim: Claim,
  renewed: boolean,
): Promise<Hold> => {
  const deadline = deadlineOf(wait);
  const waited = (): number => runtime.now() - wait.startedAt;
  const giveUp = (error: Error): Error => {
    queue.leave(false);
    return error;
  };

  if (wait.waitMs > 0 && queue.sittingOutUntil !== undefined) await sitOut(queue, runtime, wait.signal);

  for (;;) {
    if (wait.signal?.aborted) throw giveUp(abortedError(wait.key, wait.signal, waited()));
    const refused = refusal(wait);
    if (refused) throw giveUp(refused);
    const hintsBefore = queue.hints;
    const sentAt = runtime.now();
    let retryInMs: number;
    try {
      const reply = await queue.ask(() => store.acquire(claim));
      health.works();
      if (reply.status === 'granted') {
        const hold = new Hold(
          wait.key,
          queue,
          claim,
          reply.token,
          renewed,
          runtime.now(),
          sentAt,
          reply.validForMs,
        );
        if (wait.signal?.aborted) {
          settler.settle(claim, undefined, hold.validUntil);
          throw giveUp(abortedError(wait.key, wait.signal, waited()));
        }
        if (hold.validUntil > runtime.now()) {
          queue.answered();
          return hold;
        }
        throw new StoreFailure(`the answer came after the lease of ${claim.leaseMs} ms was over`, 'unknown');
      }
      queue.answered();
      retryInMs = reply.retryInMs;
    } catch (error) {
      if (!(error instanceof StoreFailure)) throw giveUp(error as Error);
      health.failed(error);
      if (error.outcome === 'unknown') settler.settle(claim, error, runtime.now() + claim.leaseMs);
      if (!error.transient || runtime.now() >= deadline) {
        // A value that is not ours concerns all who want this key, just as a dead store does.
        queue.failed(error, 'acquiring');
        throw giveUp(storeError(wait.key, error, 'acquiring', waited()));
      }
      retryInMs = TRANSIENT_RETRY_MS;
    }

    if (runtime.now() >= deadline) throw giveUp(takenError(wait.key, waited(), wait.waitMs));
    queue.listen();
    if (queue.hints !== hintsBefore) continue;
    const leftMs = deadline - runtime.now();
    const lookAgainMs = queue.hearing ? retryInMs : Math.min(retryInMs, DEAF_RETRY_MS);
    try {
      await queue.hinted(Math.min(leftMs, lookAgainMs + 1), wait.signal);
    } catch (failure) {
      queue.failed(failure, 'waiting for');
      throw giveUp(storeError(wait.key, failure, 'waiting for', waited()));
    }
    if (runtime.now() >= deadline && queue.hints === hintsBefore) {
      throw giveUp(takenError(wait.key, waited(), wait.waitMs));
    }
  }
};

/** This process had the lock just now and others wait for it: they go first. */
const sitOut = async (queue: KeyQueue, runtime: Runtime, signal: AbortSignal | undefined): Promise<void> => {
  queue.listen();
  for (;;) {
    const until = queue.sittingOutUntil;
    if (until === undefined || signal?.aborted) return;
    try {
      await queue.hinted(until - runtime.now(), signal);
    } catch {
      // Nothing can be heard; asking the store will show whether that matters.
      return;
    }
  }
};
