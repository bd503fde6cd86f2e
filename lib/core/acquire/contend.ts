import type { AcquireReply, Claim, Grant, LockKind, Taken } from '../seam/claim.js';
import { abortedError, lostError, storeError, takenError } from '../errors/error-messages.js';
import { beginTurn, turnFor } from './turn.js';
import { Hold } from '../lease/hold.js';
import { deadlineOf, type KeyQueue, type Wait } from './local-queue.js';
import type { LeaseKeeper } from '../lease/lease-keeper.js';
import type { LossReason } from '../lock-events.js';
import type { LockSettings } from '../settings/lock-settings.js';
import { StoreFailure, type LockStore } from '../seam/lock-store.js';
import type { Runtime } from '../runtime.js';
import type { Settler } from '../lease/undo.js';
import type { StoreHealth } from '../store-health.js';

/** How soon to ask again a store that says "not now", in ms. */
const TRANSIENT_RETRY_MS = 50;
/** How soon to look again while no wake-up can arrive, in ms. */
const DEAF_RETRY_MS = 1_000;

/** How many grants a caller gets that are over before it can have them, until it is told so. */
const VAIN_GRANTS = 3;

/** The hold that a caller wants. */
export interface WantedHold {
  readonly kind: LockKind;
  readonly finalKey: string;
  readonly leaseMs: number;
  /** The lease that the watchdog renews; undefined for a fixed lease. */
  readonly watchdogMs: number | undefined;
  /** What to do when the hold turns out to be lost. */
  readonly whenLost: (hold: Hold) => void;
}

/** What contending needs of the service instance. */
export interface Surroundings {
  readonly store: LockStore;
  readonly runtime: Runtime;
  readonly health: StoreHealth;
  readonly settler: Settler;
  readonly keeper: LeaseKeeper;
  readonly settings: Pick<LockSettings, 'fencing'>;
  nextOwner(): string;
  /** The error for a caller that may not wait any longer because the app stops; undefined while it may. */
  readonly refusal: (wait: Wait) => Error | undefined;
}

/**
 * Takes the key in the store for the caller whose turn it is: ask; if it is taken, listen for its end, ask again
 * once that can be heard, and after each hint or at the end of the hold in the way. There is no polling.
 *
 * Hints count from before the question was sent: the message of a release can arrive before the answer "taken".
 * The last question is sent when the wait is over: what a store said before is no sign that it works still.
 * When it throws, the turn has been given up; otherwise the caller keeps it, and the hold is being kept alive.
 */
export const contend = async (
  around: Surroundings,
  queue: KeyQueue,
  wait: Wait,
  wanted: WantedHold,
): Promise<Hold> => {
  try {
    if (wait.waitMs > 0 && queue.sittingOutUntil !== undefined) await sitOut(around.runtime, queue, wait);
    let claim = claimOf(around, wanted);
    for (let vain = 0; ;) {
      const over = reasonToStop(around, wait);
      if (over) throw over;
      const hintsBefore = queue.hints;
      const sentAt = around.runtime.now();
      // A token for each caller that may have the hold after this one.
      const leases = wanted.watchdogMs === undefined ? 1 : turnFor(queue.length);
      const attempt = ++queue.attempts;
      const asked = leases > 1 && claim.fenceBlock > 0 ? { ...claim, fenceBlock: leases } : claim;
      let reply: AcquireReply | NotNow;
      queue.asking();
      try {
        reply = await around.store.acquire(asked);
        queue.asked(true);
        around.health.works();
      } catch (failure) {
        queue.asked(false);
        throwUnlessTransient(around, queue, wait, claim, failure);
        reply = NOT_NOW;
      }
      if (reply.status !== 'granted') {
        await wakeUp(around, queue, wait, hintsBefore, sentAt, reply);
        continue;
      }
      const hold = accept(around, queue, wait, wanted, claim, attempt, sentAt, reply);
      if (hold instanceof Hold) {
        beginTurn(hold, leases);
        return hold;
      }
      // An owner is used once, and what this one may have in the store is being undone.
      claim = claimOf(around, wanted);
      if (++vain === VAIN_GRANTS || around.runtime.now() >= deadlineOf(wait)) {
        throw lostError(wait.key, hold, around.runtime.now() - sentAt);
      }
    }
  } catch (error) {
    queue.leave(false);
    throw error;
  }
};

const claimOf = (around: Surroundings, { kind, finalKey, leaseMs }: WantedHold): Claim => ({
  kind,
  key: finalKey,
  owner: around.nextOwner(),
  leaseMs,
  fenceBlock: around.settings.fencing ? 1 : 0,
});

/** The store asks for another try. */
interface NotNow {
  readonly status: 'not-now';
}

const NOT_NOW: NotNow = { status: 'not-now' };

const waitedMs = ({ runtime }: Surroundings, wait: Wait): number => runtime.now() - wait.startedAt;

/** The error for a caller that was called off, or may not have locks any more; undefined while it may. */
export const reasonToStop = (around: Surroundings, wait: Wait): Error | undefined =>
  wait.signal?.aborted ? abortedError(wait.key, wait.signal, waitedMs(around, wait)) : around.refusal(wait);

/**
 * Makes a hold of a grant, and has it kept alive from now on. Else says what became of it: it came too late for its own
 * lease (this process stood still: that says nothing of the store), or a forced unlock was asked for after it.
 */
const accept = (
  around: Surroundings,
  queue: KeyQueue,
  wait: Wait,
  { watchdogMs, whenLost }: WantedHold,
  claim: Claim,
  attempt: number,
  sentAt: number,
  { token, validForMs }: Grant,
): Hold | LossReason => {
  const now = around.runtime.now();
  const hold = new Hold(wait.key, queue, claim, token, watchdogMs, now, sentAt, validForMs);
  const over = reasonToStop(around, wait);
  const forced = attempt <= queue.forcedUpTo;
  if (!over && !forced && now < hold.validUntil) {
    hold.whenLost = whenLost;
    around.keeper.add(hold);
    return hold;
  }
  around.settler.settle(claim, undefined, hold.mayLastUntil);
  if (over) throw over;
  return forced ? 'force-unlocked' : 'expired';
};

/** A store that asks for another try gets one, within the wait. Any other failure reaches all who want the key. */
const throwUnlessTransient = (
  around: Surroundings,
  queue: KeyQueue,
  wait: Wait,
  claim: Claim,
  failure: unknown,
): void => {
  if (!(failure instanceof StoreFailure)) throw failure;
  const { runtime, health, settler } = around;
  health.failed(failure);
  if (failure.outcome === 'unknown') settler.settle(claim, failure, runtime.now() + claim.leaseMs);
  else if (failure.transient && runtime.now() < deadlineOf(wait)) {
    // Whose time is over already does not wait for the outcome of another try.
    queue.failed(failure, 'acquiring', 'due');
    return;
  }
  queue.failed(failure, 'acquiring');
  const over = reasonToStop(around, wait);
  if (over) throw over;
  throw storeError(wait.key, failure, 'acquiring', runtime.now() - wait.startedAt);
};

/** Waits until it is worth to ask again. Throws that the lock is taken when the wait was over before the answer came. */
const wakeUp = async (
  around: Surroundings,
  queue: KeyQueue,
  wait: Wait,
  hintsBefore: number,
  sentAt: number,
  reply: Taken | NotNow,
): Promise<void> => {
  const { runtime } = around;
  const deadline = deadlineOf(wait);
  const now = runtime.now();
  if (reply.status === 'taken' && now >= deadline) {
    throw takenError(wait.key, waitedMs(around, wait), wait.waitMs);
  }
  // The app may have begun to stop while the question was under way; nobody says so again.
  const over = reasonToStop(around, wait);
  if (over) throw over;
  queue.listen();
  if (queue.hints !== hintsBefore) return;
  // Counted from before the question: who knows for how long the answer has been here already.
  const retryAt = reply.status === 'taken' ? sentAt + reply.retryInMs : now + TRANSIENT_RETRY_MS;
  const lookAgainAt = queue.hearing ? retryAt : Math.min(retryAt, now + DEAF_RETRY_MS);
  try {
    const wakeAt = Math.min(deadline, Math.max(lookAgainAt, now) + 1);
    await queue.hinted(Math.ceil(wakeAt - now), wait.signal, true);
  } catch (failure) {
    queue.failed(failure, 'waiting for');
    throw storeError(wait.key, failure, 'waiting for', waitedMs(around, wait));
  }
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
