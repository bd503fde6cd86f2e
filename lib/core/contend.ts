import type { Claim, Grant } from './claim.js';
import { abortedError, storeError, takenError } from './failures.js';
import { beginTurn, turnFor } from './hand-over.js';
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

/** What contending needs of the service instance. */
export interface Surroundings {
  readonly store: LockStore;
  readonly runtime: Runtime;
  readonly health: StoreHealth;
  readonly settler: Settler;
  /** The error for a caller that may not wait any longer because the app stops; undefined while it may. */
  readonly refusal: (wait: Wait) => Error | undefined;
}

/**
 * Takes the key in the store for the caller whose turn it is: ask; if it is taken, listen for its end, ask again
 * once that can be heard, and after each hint or at the end of the hold in the way. There is no polling.
 *
 * Hints count from before the question was sent: the message of a release can arrive before the answer "taken".
 * When it throws, the turn has been given up; otherwise the caller keeps it.
 */
export const contend = async (
  around: Surroundings,
  queue: KeyQueue,
  wait: Wait,
  claim: Claim,
  renewed: boolean,
): Promise<Hold> => {
  try {
    if (wait.waitMs > 0 && queue.sittingOutUntil !== undefined) await sitOut(around.runtime, queue, wait);
    for (;;) {
      const over = reasonToStop(around, wait);
      if (over) throw over;
      const hintsBefore = queue.hints;
      const sentAt = around.runtime.now();
      let retryAt: number;
      let notNow: unknown;
      // A token for each caller that may have the hold after this one.
      const leases = renewed ? turnFor(queue.length) : 1;
      const asked = leases > 1 && claim.fenceBlock > 0 ? { ...claim, fenceBlock: leases } : claim;
      queue.asking();
      try {
        const reply = await around.store.acquire(asked);
        queue.asked(true);
        around.health.works();
        if (reply.status === 'granted') {
          const hold = accept(around, queue, wait, claim, renewed, sentAt, reply);
          beginTurn(hold, leases);
          return hold;
        }
        // Counted from before the question: who knows for how long the answer has been here already.
        retryAt = sentAt + reply.retryInMs;
      } catch (failure) {
        queue.asked(false);
        retryAt = around.runtime.now() + afterFailure(around, queue, wait, claim, failure);
        notNow = failure;
      }
      await wakeUp(around, queue, wait, hintsBefore, retryAt, notNow);
    }
  } catch (error) {
    queue.leave(false);
    throw error;
  }
};

const waitedMs = ({ runtime }: Surroundings, wait: Wait): number => runtime.now() - wait.startedAt;

/** The error for a caller that was called off, or may not have locks any more; undefined while it may. */
export const reasonToStop = (around: Surroundings, wait: Wait): Error | undefined =>
  wait.signal?.aborted ? abortedError(wait.key, wait.signal, waitedMs(around, wait)) : around.refusal(wait);

/** Makes a hold of a grant, unless it came too late for its own lease or for its caller. */
const accept = (
  around: Surroundings,
  queue: KeyQueue,
  wait: Wait,
  claim: Claim,
  renewed: boolean,
  sentAt: number,
  { token, validForMs }: Grant,
): Hold => {
  const now = around.runtime.now();
  const hold = new Hold(wait.key, queue, claim, token, renewed, now, sentAt, validForMs);
  if (now >= hold.validUntil) {
    throw new StoreFailure(`the answer came after the lease of ${claim.leaseMs} ms was over`, 'unknown');
  }
  const over = reasonToStop(around, wait);
  if (!over) return hold;
  around.settler.settle(claim, undefined, hold.validUntil);
  throw over;
};

/** A store that asks for another try gets one, within the wait. Any other failure reaches all who want the key. */
const afterFailure = (
  around: Surroundings,
  queue: KeyQueue,
  wait: Wait,
  claim: Claim,
  failure: unknown,
): number => {
  const { runtime, health, settler } = around;
  if (!(failure instanceof StoreFailure)) throw failure;
  health.failed(failure);
  if (failure.outcome === 'unknown') settler.settle(claim, failure, runtime.now() + claim.leaseMs);
  else if (failure.transient && runtime.now() < deadlineOf(wait)) {
    // Whose time is over already does not wait for the outcome of another try.
    queue.failed(failure, 'acquiring', 'due');
    return TRANSIENT_RETRY_MS;
  }
  queue.failed(failure, 'acquiring');
  throw storeError(wait.key, failure, 'acquiring', waitedMs(around, wait));
};

/**
 * Waits until it is worth to ask again. Throws when the wait is over: that the lock is taken, or with `notNow`, what
 * the store said instead.
 */
const wakeUp = async (
  around: Surroundings,
  queue: KeyQueue,
  wait: Wait,
  hintsBefore: number,
  retryAt: number,
  notNow: unknown,
): Promise<void> => {
  const { runtime } = around;
  const deadline = deadlineOf(wait);
  if (runtime.now() < deadline) {
    // The app may have begun to stop while the question was under way; nobody says so again.
    const over = reasonToStop(around, wait);
    if (over) throw over;
    queue.listen();
    if (queue.hints !== hintsBefore) return;
    const now = runtime.now();
    const lookAgainAt = queue.hearing ? retryAt : Math.min(retryAt, now + DEAF_RETRY_MS);
    try {
      await queue.hinted(Math.min(deadline, Math.max(lookAgainAt, now) + 1) - now, wait.signal);
    } catch (failure) {
      queue.failed(failure, 'waiting for');
      throw storeError(wait.key, failure, 'waiting for', waitedMs(around, wait));
    }
    // A hint at the last moment is worth one more question.
    if (queue.hints !== hintsBefore || runtime.now() < deadline) return;
  }
  throw notNow === undefined
    ? takenError(wait.key, waitedMs(around, wait), wait.waitMs)
    : storeError(wait.key, notNow, 'acquiring', waitedMs(around, wait));
};

/** This process had the lock just now and others wait for it: they go first. */
const sitOut = async (runtime: Runtime, queue: KeyQueue, wait: Wait): Promise<void> => {
  queue.listen();
  for (;;) {
    const until = queue.sittingOutUntil;
    const leftMs = deadlineOf(wait) - runtime.now();
    if (until === undefined || leftMs <= 0 || wait.signal?.aborted) return;
    try {
      await queue.hinted(Math.min(until - runtime.now(), leftMs), wait.signal);
    } catch {
      // Nothing can be heard; asking the store will show whether that matters.
      return;
    }
  }
};
