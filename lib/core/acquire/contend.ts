import type { CoreContext } from '../context/core-context.js';
import { lostError, storeError, takenError } from '../errors/error-messages.js';
import { kindOf } from '../kinds/kinds.js';
import { Hold } from '../lease/hold.js';
import type { LossReason } from '../report/lock-events.js';
import type { Claim } from '../seam/claim.js';
import type { Grant } from '../seam/grant.js';
import type { QueueEntryOutcome } from '../seam/queue-entry.js';
import type { AcquireReply, Blocking, Queued, QueuePosition, Taken } from '../seam/reply.js';
import { ANOTHER_TRY_MS, getsAnotherTry } from '../outage/another-try.js';
import { unlessOver, type StopHost } from '../wait/unless-over.js';
import type { KindTraits } from '../seam/kind-traits.js';
import { relayed, StoreQueueEntry } from '../seam/store-queue-entry.js';
import { harmless, StoreFailure } from '../seam/store-failure.js';
import { claimFor, sendableNow, type ClaimSource } from './claim-for.js';
import type { LocalQueue } from './local-queue.js';
import type { EntryState } from './entry-keeper.js';
import { neverNotified, pauseInOutage } from './pauses.js';
import { beginBatch, MAX_LEASES, leasesFor } from './hand-off-batch.js';
import { letOthersLook, TURN_MS } from '../wait/fairness.js';
import { deadlineOf, type Wait } from '../wait/wait.js';
import { NOT_SUBSCRIBED_RETRY_MS } from '../wait/wake-up.js';
import { mayShare, type HoldTerms, type WantedHold } from './wanted-hold.js';

/** What a contender uses of its service. */
export type ContentionHost = ClaimSource &
  StopHost &
  Pick<CoreContext, 'asking' | 'keeper' | 'requests' | 'shown' | 'undo'>;

/** Number of grants that had expired on arrival after which the caller gets `LockLostError`. */
const VAIN_GRANTS = 3;

/** The store asks for another try, or fails for a passing reason. */
interface Failed {
  readonly status: 'not-now' | 'failing';
}

/** Outcome of a request for the key, or for the state of its queue entry. */
type Reply = AcquireReply | EntryState | Failed;

/**
 * Acquires the key in the store for the contender of a local queue. The store's reply says how it waits.
 *
 * - `queued`: the store has a wait queue, and notifies the process of a grant. The contender sends another request only
 *   when the store may not know that the key is free: after a release of a foreign holder, and after the end of the
 *   blocking lease.
 * - `taken`: the contender subscribes to the end of the blocking hold. It requests the key again once it is subscribed,
 *   after each wake-up, and after the end of the blocking lease.
 *
 * If each caller of the kind has its own entry (`KindTraits.eachQueued`), the store only wakes the first one. That caller
 * requests the key as the queued owner, and its entry ends with the grant.
 *
 * Wake-ups count from before the request was sent, because the message of a release may arrive before the reply. The
 * last request is sent when the wait is over: an earlier reply does not show that the store still works. When it throws,
 * the contender has left. Otherwise the caller has a hold that is renewed.
 */
class Contention {
  private claim: Claim;
  /** An uncertain grant is being requested again. */
  private confirming = false;
  /** Last request: the time of its sending, its number, and how many leases it asked for. */
  private sentAt = 0;
  private number = 0;
  private leases = 1;
  private readonly traits: KindTraits;
  /** The outcome of a request was unknown, and is being undone. */
  private isUndone = false;
  /** What the store last said about the blocking hold. */
  private blocking: Blocking | undefined;

  constructor(
    private readonly core: ContentionHost,
    private readonly queue: LocalQueue,
    private readonly wait: Wait,
    private readonly wanted: WantedHold,
    private readonly terms: HoldTerms,
    /** Else it asks once beside the contender, leaves the queue as it is, and is refused as soon as the store says so. */
    private readonly isContender: boolean,
  ) {
    this.traits = core.traits[wanted.call.kind];
    this.claim = this.entry?.claim ?? claimFor(core, wanted, wait);
  }

  // One function, since each further promise costs as much as all the rest of a lock that is free.
  async win(): Promise<Hold> {
    const { core, queue, wait, isContender } = this;
    try {
      for (let vain = 0; ;) {
        if (isContender && wait.waitMs > 0 && queue.isAside)
          await queue.fairness!.yieldToOthers(queue.wakeUp, wait, this.claim);
        const over = core.reasonToStop(wait);
        if (over) throw over;
        let won: Hold | LossReason | 'gone' | undefined;
        if (this.entry?.outcome) won = this.takeGrant(this.entry, this.entry.outcome);
        else {
          const wakeUpsBefore = queue.wakeUps;
          this.sentAt = core.runtime.now();
          this.number = ++queue.attempts;
          let reply: Reply;
          if (isContender) queue.unreplied = () => core.requests.unsent(this.claim);
          core.asking.begin();
          try {
            reply = await this.request();
            this.replied(reply);
          } catch (failure) {
            if (isContender) queue.unreplied = undefined;
            reply = this.failed(failure);
          } finally {
            core.asking.end();
          }
          if (reply.status === 'granted') {
            won = this.accept(reply, reply.since ?? this.sentAt, this.number <= queue.forcedUpTo);
          } else if (this.confirming && reply.status === 'taken') {
            this.confirming = false;
            // The deadline has passed: report "taken" instead of retrying.
            if (core.runtime.now() >= deadlineOf(wait)) throw this.takenError();
            won = 'gone';
          } else await this.sleep(reply, wakeUpsBefore);
        }
        if (won instanceof Hold) return won;
        if (won === undefined) continue;
        if (won !== 'gone') this.throwIfVain(won, ++vain);
        this.beAnotherOwner();
      }
    } catch (error) {
      this.giveUp();
      throw error;
    }
  }

  /** A grant came too late, once more. Waiters whose time is over do not wait for the next one. */
  private throwIfVain(reason: LossReason, times: number): void {
    const { core, queue, wait } = this;
    const now = core.runtime.now();
    if (times >= VAIN_GRANTS || now >= deadlineOf(wait)) {
      this.confirming = false;
      throw lostError(core.shown(wait.key), this.claim, reason, now - this.sentAt);
    }
    if (this.isContender) queue.refuseDue();
  }

  private giveUp(): void {
    const { core, queue, claim } = this;
    // It was never found out whether the owner has what it was given.
    if (this.confirming) core.undo.begin({ claim, until: core.requests.mayLastUntil(claim) });
    if (this.isContender) queue.leave();
  }

  /** The claim as it is asked for: with a token for each caller that may have the hold after this one. */
  private requested(): Claim {
    const { core, wait, wanted, queue } = this;
    const claim = sendableNow(this.claim, wait, core.runtime.now());
    // Only the contender may enqueue in the store; other callers wait in the local queue.
    if (!this.isContender) return { ...claim, waits: false };
    this.leases = wanted.watchdogMs === undefined ? 1 : leasesFor(queue.length);
    return this.leases > 1 && claim.tokens > 0 ? { ...claim, tokens: this.leases } : claim;
  }

  private request(): Promise<Reply> {
    const { core, entry, queue } = this;
    if (queue.outage.isOn) return this.requestAfterOutage();
    return entry && !this.traits.eachQueued
      ? core.entries.request(entry)
      : core.requests.acquire(this.requested());
  }

  /** First sends a request that leaves nothing to undo: for the entry's state, or an inspection of the key. */
  private async requestAfterOutage(): Promise<Reply> {
    const { core, entry, wait, wanted } = this;
    const look = (): Promise<EntryState | undefined> =>
      harmless(entry ? core.entries.request(entry) : core.requests.look(wanted.finalKey));
    const state = await unlessOver(core, wait, look, () => this.outageError());
    return state ?? core.requests.acquire(this.requested());
  }

  private replied(reply: Reply): void {
    // A reply about the entry, after an outage, leaves it where it is.
    if (
      this.traits.eachQueued &&
      (reply.status === 'granted' || reply.status === 'taken' || 'entry' in reply)
    )
      this.entryIsOver();
    // Before waiters whose time is over are told.
    if (reply.status === 'taken' || reply.status === 'queued') this.noteBlocker(reply);
    if (this.isContender) this.queue.replied(reply.status !== 'granted');
    else if (reply.status === 'taken') this.queue.refuseDue();
    this.core.requests.replied();
  }

  /** An owner that had a grant or an entry is not used again. */
  private beAnotherOwner(): void {
    this.confirming = false;
    // Such an owner has a channel of its own: the next owner subscribes again.
    if (this.traits.eachQueued) this.queue.wakeUp.close();
    this.claim = claimFor(this.core, this.wanted, this.wait);
  }

  /** The entry has become a hold, or is gone. A hold that is not certain enough is asked for first. */
  private takeGrant(
    entry: StoreQueueEntry,
    outcome: QueueEntryOutcome,
  ): Hold | LossReason | 'gone' | undefined {
    const { core, wait, wanted, queue } = this;
    const now = core.runtime.now();
    const isCertain =
      outcome.status === 'granted' &&
      wanted.call.holdAtLeastMs === 0 &&
      entry.isCertain(outcome, wanted.watchdogMs, queue.forcedAt, now);
    // The deadline has passed: report "taken". The next caller of this process goes on from here.
    if (!isCertain && now >= deadlineOf(wait)) throw this.takenError();
    this.entryIsOver();
    if (outcome.status === 'gone') return 'gone';
    this.leases = MAX_LEASES;
    // Not forced open since: the entry got the reply "queued" after that.
    if (isCertain) return this.accept(outcome, outcome.since ?? entry.queuedAt, false);
    // The owner that the store gave the hold to has it given again, for its own time: or has nothing.
    const { owner } = entry.claim;
    this.claim = { ...claimFor(core, wanted, wait), owner, waits: false, reacquires: true };
    this.confirming = true;
    return undefined;
  }

  /**
   * Makes a hold of a grant, and has it renewed from now on. Otherwise returns the reason: the grant had expired on
   * arrival, because this process stood still, or a forced unlock came after it.
   */
  private accept(grant: Grant, sentAt: number, forced: boolean): Hold | LossReason {
    const { core, queue, wait, wanted, claim, leases } = this;
    const { token, tokens, validForMs, session, lost, grantedBy, owner, waiting } = grant;
    const now = core.runtime.now();
    this.logLimit(grant);
    const terms = { token, grantedAt: now, sentAt, validForMs, session, lost, grantedBy, owner };
    const hold = new Hold(wait, queue.endListener, claim, wanted.watchdogMs, terms);
    const over = core.reasonToStop(wait);
    const isGone = (lost?.aborted || session?.over.aborted) === true;
    if (!over && !forced && now < hold.validUntil && !isGone) {
      hold.heldWith(this.terms.whenLost);
      core.keeper.add(hold);
      const reserved = token === undefined ? leases : Math.min(leases, tokens ?? 1);
      if (this.traits.handedOff) beginBatch(hold, reserved, waiting);
      const shares = mayShare(wanted.call);
      if (shares) hold.beginSharing(now + TURN_MS);
      if (kindOf(claim.kind).singleHolder) queue.has(hold);
      else queue.granted(this.isContender, shares ? hold : undefined);
      return hold;
    }
    core.undo.begin({ claim, until: hold.inStore.mayLastUntil });
    if (over) throw over;
    if (forced) return 'force-unlocked';
    return isGone ? 'refused' : 'expired';
  }

  /**
   * Requests again if the store asks for another try; and until the wait is over if it fails for a passing reason and the
   * contender has waited since before. Each other failure reaches all callers for the key.
   */
  private failed(failure: unknown): Failed {
    const { core, queue, wait, claim } = this;
    if (!(failure instanceof StoreFailure)) throw failure;
    if (this.entry && !this.traits.eachQueued) core.requests.failed(failure);
    else core.requests.acquireFailed(claim, failure);
    const isUnknown = failure.outcome === 'unknown';
    // The undo of a request removes the queue entry as well as a hold.
    if (this.traits.eachQueued && isUnknown) this.entryIsOver();
    if (isUnknown) this.confirming = false;
    const isLate = core.runtime.now() >= deadlineOf(wait);
    const keepsWaiting = this.isContender && queue.outage.contenderKeepsWaiting;
    const caller = { keepsWaiting, hasEntry: this.entry !== undefined, waitedMs: this.waitedMs() };
    const again = getsAnotherTry(failure, queue.outage, caller);
    if (!again && failure.passing && keepsWaiting) return this.goOnThrough(failure, isLate);
    // A waiter whose time is over already does not wait for the outcome of another try; the others have their own.
    if (this.isContender) queue.failed(failure, 'acquiring', again ? 'due' : 'all', isLate);
    if (again && !isLate) return { status: 'not-now' };
    // In an overload the store works, and its last reply was "taken".
    if (failure.overloaded && isLate && this.blocking) throw core.reasonToStop(wait) ?? this.takenError();
    throw core.reasonToStop(wait) ?? storeError(core.shown(wait.key), failure, 'acquiring', this.waitedMs());
  }

  private goOnThrough(failure: StoreFailure, isLate: boolean): Failed {
    const isUnknown = failure.outcome === 'unknown';
    this.queue.failing(failure, this.sentAt);
    this.isUndone ||= isUnknown;
    if (isLate) throw this.core.reasonToStop(this.wait) ?? this.outageError();
    // What is being undone may not be asked for again.
    if (isUnknown && !this.entry) this.beAnotherOwner();
    return { status: 'failing' };
  }

  private outageError(): Error {
    const { queue, wait } = this;
    const outcome = this.entry || this.isUndone ? 'unknown' : 'not-executed';
    return queue.storeError(wait, queue.outage.failure, 'waiting for', outcome);
  }

  /** Waits until it is worth to ask again. Throws that the lock is taken when the wait was over before the answer came. */
  private async sleep(reply: Exclude<Reply, Grant>, wakeUpsBefore: number): Promise<void> {
    const { core, queue, wait } = this;
    const { wakeUp } = queue;
    const deadline = deadlineOf(wait);
    const now = core.runtime.now();
    if (reply.status === 'failing') return pauseInOutage(core, queue, wait, this.claim);
    if (reply.status === 'queued' && 'entry' in reply) this.enqueued(reply);
    const { entry } = this;
    if (entry?.outcome) return;
    // The app may have begun to stop while the question was under way; that is not said a second time.
    const over = core.reasonToStop(wait);
    const isLate = reply.status !== 'not-now' && now >= deadline;
    if (isLate || !(this.isContender || over)) throw this.takenError();
    if (over) throw over;
    if (reply.status !== 'not-now') queue.checkRoom(wait.key);
    wakeUp.listen(this.claim);
    try {
      const isAsleep = (): boolean =>
        queue.wakeUps === wakeUpsBefore && !entry?.outcome && !core.reasonToStop(wait);
      // If the blocking lease now ends earlier, shorten the sleep.
      for (queue.sooner = true; queue.sooner && isAsleep();) {
        queue.sooner = false;
        const at = core.runtime.now();
        const wakeAt = Math.min(deadline, Math.max(this.lookAgainAt(reply, now), at) + 1);
        await wakeUp.untilWoken(Math.ceil(wakeAt - at), wait.signal, true);
      }
      // Of those who have entries of their own only the first is notified.
      if (!this.traits.eachQueued) await letOthersLook(wakeUp, entry, wait.signal, wakeUpsBefore);
    } catch (failure) {
      throw neverNotified(core, queue, wait, failure);
    }
  }

  private enqueued(queued: Queued): void {
    const { core, queue, claim, wanted, sentAt } = this;
    const entry = queued.entry instanceof StoreQueueEntry ? queued.entry : relayed(queued.entry);
    entry.enqueued(claim, wanted.watchdogMs, queued, sentAt, queue);
    queue.ownEntry = entry;
    core.entries.add(entry);
  }

  /** The entry of the caller's request has ended, or is that of the reply. */
  private entryIsOver(): void {
    const { core, queue, entry } = this;
    if (!entry) return;
    entry.stopListening();
    core.entries.remove(entry);
    queue.ownEntry = undefined;
  }

  /** When to ask again although nothing was heard. Counted from the send: the reply may have lain in the socket. */
  private lookAgainAt(reply: Exclude<Reply, Grant>, now: number): number {
    if (reply.status === 'not-now') return now + ANOTHER_TRY_MS;
    // An entry is refreshed, and its keeper is notified of the outcome.
    if (reply.status !== 'taken') return this.entry?.lookAgainAt ?? Infinity;
    const retryAt = this.sentAt + reply.retryInMs;
    return this.queue.wakeUp.live ? retryAt : Math.min(retryAt, now + NOT_SUBSCRIBED_RETRY_MS);
  }

  /** Notes what the store reports about the blocking hold. Waiters behind the contender report it, too. */
  private noteBlocker(reply: Taken | QueuePosition): void {
    if ('limitBefore' in reply) this.logLimit(reply);
    this.blocking = reply;
    if (this.isContender) this.queue.blocked(this.wait, reply);
  }

  private logLimit({ limitBefore }: Grant | Taken): void {
    if (limitBefore === undefined) return;
    this.terms.limitChanged(this.wait.key, limitBefore, this.wanted.call.permits);
  }

  private takenError(): Error {
    const { core, wait, entry } = this;
    return takenError(core.shown(wait.key), this.waitedMs(), wait.waitMs, entry?.position, this.blocking);
  }

  /** Where the contender stands in the store's wait queue. It is the queue's: the next contender goes on from there. */
  private get entry(): StoreQueueEntry | undefined {
    return this.isContender ? this.queue.ownEntry : undefined;
  }

  private waitedMs(): number {
    return this.core.runtime.now() - this.wait.startedAt;
  }
}

/** Acquires a hold from the store; see {@link Contention}. */
export const contend = (
  core: ContentionHost,
  queue: LocalQueue,
  wait: Wait,
  wanted: WantedHold,
  terms: HoldTerms,
  isContender: boolean,
): Promise<Hold> => new Contention(core, queue, wait, wanted, terms, isContender).win();
