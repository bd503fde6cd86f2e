import type { CoreContext } from '../core-context.js';
import { lostError, storeError, takenError } from '../errors/error-messages.js';
import { kindOf } from '../kinds/kinds.js';
import { Hold } from '../lease/hold.js';
import type { LossReason } from '../lock-events.js';
import type { Claim } from '../seam/claim.js';
import type { Grant } from '../seam/grant.js';
import type { PlaceOutcome } from '../seam/place.js';
import type { AcquireReply, Queued, Taken } from '../seam/reply.js';
import { StoreFailure } from '../seam/store-failure.js';
import { waitFor } from '../wait-for.js';
import type { LocalQueue } from './local-queue.js';
import { beginTurn, turnFor } from './turn.js';
import { deadlineOf, type Wait } from './wait.js';
import type { HoldTerms, WantedHold } from './wanted-hold.js';

/** How soon to ask again a store that says "not now", in ms. */
const TRANSIENT_RETRY_MS = 50;
/** How soon to look again while no wake-up can arrive, in ms. */
const DEAF_RETRY_MS = 1_000;

/** After so many grants that had run out when they arrived, the caller gets `LockLostError`. */
const VAIN_GRANTS = 3;

/** The store asks for another try. */
interface NotNow {
  readonly status: 'not-now';
}

const NOT_NOW: NotNow = { status: 'not-now' };

/**
 * Takes the key in the store for the head of a local queue: ask; if it is taken, listen for its end, ask again
 * once that can be heard, and after each hint or at the end of the hold in the way. It polls only while it cannot hear,
 * and while a hold without an end is in the way. A store that keeps a line of waiters says itself when it is this
 * process's turn.
 *
 * Hints count from before the question was sent: the message of a release can arrive before the answer "taken".
 * The last question is sent when the wait is over: what a store said before is no sign that it works still.
 * When it throws, the head has left; otherwise the caller has a hold, which is being kept alive.
 */
class Contention {
  private claim: Claim;
  /** Of the last question: when it was sent, which one it was, and for how many leases it asked. */
  private sentAt = 0;
  private number = 0;
  private leases = 1;

  constructor(
    private readonly core: CoreContext,
    private readonly queue: LocalQueue,
    private readonly wait: Wait,
    private readonly wanted: WantedHold,
    private readonly terms: HoldTerms,
    /** Else it asks once beside the head, leaves the queue as it is, and is refused as soon as the store says so. */
    private readonly isHead: boolean,
  ) {
    this.claim = terms.claimFor(wanted);
  }

  // One function, since each further promise costs as much as all the rest of a lock that is free.
  async win(): Promise<Hold> {
    const { core, queue, wait, wanted, terms, isHead } = this;
    try {
      for (let vain = 0; ;) {
        if (isHead && wait.waitMs > 0 && queue.yieldingUntil !== undefined) await this.yieldToOthers();
        const over = core.reasonToStop(wait);
        if (over) throw over;
        const hintsBefore = queue.hints;
        this.sentAt = core.runtime.now();
        this.number = ++queue.attempts;
        // A token for each caller that may have the hold after this one.
        this.leases = wanted.watchdogMs === undefined ? 1 : turnFor(queue.length);
        let reply: AcquireReply | NotNow;
        if (isHead) queue.requestSent();
        try {
          reply = await core.requests.acquire(this.asked());
          if (isHead) queue.answered(reply.status !== 'granted');
          core.requests.answered();
        } catch (failure) {
          if (isHead) queue.requestOver(false);
          this.throwUnlessTransient(failure);
          reply = NOT_NOW;
        }
        if (reply.status === 'taken' || reply.status === 'not-now') {
          await this.sleep(reply, hintsBefore);
          continue;
        }
        const won =
          reply.status === 'granted' ? this.accept(reply, this.sentAt) : await this.standInLine(reply);
        if (won instanceof Hold) return won;
        // An owner that had a grant or a place is not used again.
        this.claim = terms.claimFor(wanted);
        if (won !== 'gone' && (++vain === VAIN_GRANTS || core.runtime.now() >= deadlineOf(wait))) {
          throw lostError(wait.key, this.claim, won, core.runtime.now() - this.sentAt);
        }
      }
    } catch (error) {
      if (isHead) queue.leave(false);
      throw error;
    }
  }

  private asked(): Claim {
    const { claim, leases } = this;
    return leases > 1 && claim.tokens > 0 ? { ...claim, tokens: leases } : claim;
  }

  /**
   * Makes a hold of a grant, and has it kept alive from now on. Else says what became of it: it came too late for its own
   * lease (this process stood still: that says nothing of the store), or a forced unlock was asked for after it.
   */
  private accept(grant: Grant, sentAt: number): Hold | LossReason {
    const { core, queue, wait, wanted, claim, leases } = this;
    const { token, tokens = leases, validForMs, lost } = grant;
    const now = core.runtime.now();
    const { alone } = kindOf(claim.kind);
    this.tellOfLimit(grant);
    const hold = new Hold(wait.key, queue.head, claim, wanted.watchdogMs, {
      token,
      grantedAt: now,
      sentAt,
      validForMs,
      lost,
    });
    const over = core.reasonToStop(wait);
    const forced = this.number <= queue.forcedUpTo;
    if (!over && !forced && now < hold.validUntil && !lost?.aborted) {
      hold.heldWith(this.terms.whenLost);
      core.keeper.add(hold);
      beginTurn(hold, Math.min(leases, tokens));
      if (!alone) queue.granted(this.isHead);
      return hold;
    }
    core.undo.begin({ claim, until: hold.mayLastUntil });
    if (over) throw over;
    if (forced) return 'force-unlocked';
    return lost?.aborted ? 'refused' : 'expired';
  }

  /** Waits for what becomes of a place in the store's line; a caller that gives it up leaves the line. */
  private async standInLine({ place }: Queued): Promise<Hold | LossReason | 'gone'> {
    const { core, queue, wait } = this;
    // Read when it is told: between that and the next step of this caller other work may stand in the way.
    let toldAt = 0;
    const outcome = await waitFor<PlaceOutcome | undefined>(core.runtime, {
      ms: deadlineOf(wait) - core.runtime.now(),
      signal: wait.signal,
      listen: ({ resolve }) => {
        place.listen((told) => {
          toldAt = core.runtime.now();
          resolve(told);
        });
        // The app may stop meanwhile.
        return queue.wakeUp.onWake(() => {
          if (core.reasonToStop(wait)) resolve(undefined);
        });
      },
      onTime: ({ resolve }) => resolve(undefined),
      onAbort: ({ resolve }) => resolve(undefined),
    });
    if (outcome?.status === 'granted') return this.accept(outcome, toldAt);
    if (!outcome) core.undo.leave(place);
    else if (core.runtime.now() < deadlineOf(wait)) return 'gone';
    throw core.reasonToStop(wait) ?? takenError(wait.key, this.waitedMs(), wait.waitMs);
  }

  /** A store that asks for another try gets one, within the wait. Its other failures reach all callers for the key. */
  private throwUnlessTransient(failure: unknown): void {
    const { core, queue, wait, claim } = this;
    if (!(failure instanceof StoreFailure)) throw failure;
    core.requests.acquireFailed(claim, failure);
    if (failure.outcome !== 'unknown' && failure.transient && core.runtime.now() < deadlineOf(wait)) {
      // A waiter whose time is over already does not wait for the outcome of another try.
      if (this.isHead) queue.failed(failure, 'acquiring', 'due');
      return;
    }
    if (this.isHead && !failure.claimOnly) queue.failed(failure, 'acquiring');
    throw core.reasonToStop(wait) ?? storeError(wait.key, failure, 'acquiring', this.waitedMs());
  }

  /** Waits until it is worth to ask again. Throws that the lock is taken when the wait was over before the answer came. */
  private async sleep(reply: Taken | NotNow, hintsBefore: number): Promise<void> {
    const { core, queue, wait } = this;
    const { wakeUp } = queue;
    const deadline = deadlineOf(wait);
    const now = core.runtime.now();
    if (reply.status === 'taken') this.tellOfLimit(reply);
    // The app may have begun to stop while the question was under way; that is not said a second time.
    const over = core.reasonToStop(wait);
    const isLate = reply.status === 'taken' && now >= deadline;
    if (isLate || !(this.isHead || over)) throw takenError(wait.key, this.waitedMs(), wait.waitMs);
    if (over) throw over;
    wakeUp.listen(this.claim);
    if (queue.hints !== hintsBefore) return;
    // Counted from the send: the reply may have lain in the socket while the event loop was busy.
    const retryAt = reply.status === 'taken' ? this.sentAt + reply.retryInMs : now + TRANSIENT_RETRY_MS;
    const lookAgainAt = wakeUp.hearing ? retryAt : Math.min(retryAt, now + DEAF_RETRY_MS);
    try {
      const wakeAt = Math.min(deadline, Math.max(lookAgainAt, now) + 1);
      await wakeUp.hinted(Math.ceil(wakeAt - now), wait.signal, true);
    } catch (failure) {
      queue.failed(failure, 'waiting for');
      throw storeError(wait.key, failure, 'waiting for', this.waitedMs());
    }
  }

  /** This process had the lock just now and others wait for it: they go first. */
  private async yieldToOthers(): Promise<void> {
    const { core, queue, wait, claim } = this;
    queue.wakeUp.listen(claim);
    for (;;) {
      const until = queue.yieldingUntil;
      const now = core.runtime.now();
      const leftMs = deadlineOf(wait) - now;
      if (until === undefined || leftMs <= 0 || wait.signal?.aborted) return;
      try {
        await queue.wakeUp.hinted(Math.min(until - now, leftMs), wait.signal);
      } catch {
        // Nothing can be heard; asking the store will show whether that matters.
        return;
      }
    }
  }

  private tellOfLimit({ limitBefore }: Grant | Taken): void {
    if (limitBefore === undefined) return;
    this.terms.limitChanged(this.wait.key, limitBefore, this.wanted.call.permits);
  }

  private waitedMs(): number {
    return this.core.runtime.now() - this.wait.startedAt;
  }
}

/** See {@link Contention}. */
export const contend = (
  core: CoreContext,
  queue: LocalQueue,
  wait: Wait,
  wanted: WantedHold,
  terms: HoldTerms,
  isHead: boolean,
): Promise<Hold> => new Contention(core, queue, wait, wanted, terms, isHead).win();
