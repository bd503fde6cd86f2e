import { abortedError, queueFullError, storeError, takenError } from '../errors/error-messages.js';
import type { HoldEndListener, Hold } from '../lease/hold.js';
import type { Blocking } from '../seam/reply.js';
import { StoreFailure, type StoreOutcome } from '../seam/store-failure.js';
import type { EntryWaiter, StoreQueueEntry } from '../seam/store-queue-entry.js';
import { waitFor } from '../util/wait-for.js';
import { handedOffFrom } from './hand-off-batch.js';
import { sendableUntil, type Wait } from '../wait/wait.js';
import type { QueueHost } from './queue-host.js';
import { Waiter, type WaiterQueue } from './waiter.js';
import { Fairness, YIELD_MS } from '../wait/fairness.js';
import { WakeUp } from '../wait/wake-up.js';
import { LocalWaiters } from './local-waiters.js';
import { SharedHold } from './shared-hold.js';
import { KeyOutage } from '../outage/key-outage.js';

/** Shared empty set for queues without waiters; must not be mutated. */
const NOBODY = new LocalWaiters();

/** Maximum number of concurrent contenders if the number of permits is unknown. */
const MAX_CONCURRENT = 64;

/**
 * Callers of this process that want one key, in order. One of them at a time is the contender, which talks to the
 * store. For kinds with one owner at a time it stays the contender until its hold has ended. So a process has one
 * contender for each key in the store, however many callers it has.
 */
export class LocalQueue implements HoldEndListener, WaiterQueue, EntryWaiter {
  private waiters = NOBODY;
  /** Wait of the contender, once it is blocked or if it has waited behind another: it is one of `maxWaiters`. */
  waiting: Wait | undefined;
  private hasContender = false;
  /** The store has refused the contender's last question. */
  private refused = false;
  /** Number of waiters that are concurrent contenders. */
  private concurrents = 0;
  /** Number of holds of a kind with several owners, whose callers are no contenders any more. */
  private holds = 0;
  /** Number of releases in progress, of a process that had to wait. */
  private releases = 0;
  /**
   * Set while the contender's request is in progress: then it is unknown whether the store works, and waiters whose time
   * ends hear its outcome. See `KindStore.unsent`.
   */
  unreplied: (() => StoreFailure | undefined) | undefined;
  // Created on first use: most keys have one caller at a time, which needs neither.
  /** Where the contender stands in the store's wait queue; a contender that gives up leaves that to the next one. */
  ownEntry: StoreQueueEntry | undefined;
  /** Whether the contender was woken only to sleep for less. */
  sooner = false;
  /** What the last reply said about the blocking hold. */
  blocking: Blocking | undefined;
  readonly shared = new SharedHold();
  /** The contender's hold, of a kind with one owner at a time. */
  held: Hold | undefined;
  private ownWakeUp: WakeUp | undefined;
  private idleTimer: unknown;
  /** Outage of the store for this key, during which earlier waiters keep waiting. */
  readonly outage: KeyOutage;
  /** Of kinds with several holders. Of the others the store's wait queue keeps the order. */
  readonly fairness: Fairness | undefined;
  /** Receiver of the ends of this queue's holds. */
  readonly endListener: HoldEndListener;

  /** How many times this process has asked the store for the key. */
  attempts = 0;

  /** Requests up to this number were sent before a forced unlock: their grants do not count. */
  forcedUpTo = 0;
  /**
   * Time of the last forced unlock. A grant by message may have come before it, and been ended by it, or after it: only
   * the store knows.
   */
  forcedAt: number | undefined;

  constructor(
    private readonly host: QueueHost<LocalQueue>,
    readonly finalKey: string,
    /** How many queues of further callers the key had before; see `KindTraits.eachQueued`. */
    readonly behind = 0,
  ) {
    this.outage = new KeyOutage(host.outages, this);
    this.fairness = host.singleHolder ? undefined : new Fairness(this, host.runtime);
    this.endListener = this.fairness ?? this;
  }

  /** What wakes the contender while it sleeps. */
  get wakeUp(): WakeUp {
    return (this.ownWakeUp ??= new WakeUp(this.host.runtime, this.host.watch, () => this.woken()));
  }

  /** Whether the contender lets other processes go first. */
  get isAside(): boolean {
    return this.fairness?.asideUntil !== undefined;
  }

  get length(): number {
    return this.waiters.size - this.concurrents;
  }

  get wakeUps(): number {
    return this.ownWakeUp?.wakeUps ?? 0;
  }

  /** Makes the caller the contender if no other caller holds, requests or waits. */
  enter(): boolean {
    if (this.hasContender || this.waiters.size > 0) return false;
    this.hasContender = true;
    this.outage.contender = this.outage.arrive();
    return true;
  }

  /**
   * Makes the caller a concurrent contender, if its kind has several owners and the store rejected no caller last.
   * Requests keep their order on the way. There are no more of them than permits, because the others would be rejected.
   * The caller reports its end with {@link endConcurrent}, or waits in its position with {@link untilContender}. Returns
   * undefined when it has to wait in the queue.
   */
  beginConcurrent(wait: Wait, permits = MAX_CONCURRENT): Waiter | undefined {
    const isOpen = !this.refused && this.length === 0 && !this.isAside;
    const requesting = this.concurrents + (this.hasContender ? 1 : 0);
    if (this.host.singleHolder || !isOpen || requesting >= permits) return undefined;
    this.concurrents++;
    return this.add(wait, undefined, true);
  }

  /** Ends a concurrent request. */
  endConcurrent(concurrent: Waiter): void {
    this.concurrents--;
    this.waiters.delete(concurrent);
    if (!this.hasContender) this.leave();
  }

  /**
   * Resolves when this caller is the contender. Resolves with the hold of the caller before, if that was handed off;
   * the watchdog renews both with the same lease. Rejects at the end of the wait, on an abort, or when the store fails.
   * Throws when `maxWaiters` callers wait already. `own`: the position of a caller whose own request was rejected.
   */
  untilContender(wait: Wait, watchdogMs: number | undefined, own?: Waiter): Promise<Hold | undefined> {
    const { maxWaiters, runtime, shown } = this.host;
    if (this.length + (this.waiting ? 1 : 0) >= maxWaiters) {
      const full = queueFullError(shown(wait.key), maxWaiters);
      const last = own && this.waiters.lastWaiting(own);
      if (last === own) {
        if (own) this.endConcurrent(own);
        throw full;
      }
      last!.reject(full);
    }
    return waitFor(runtime, own ?? this.add(wait, watchdogMs, false));
  }

  now(): number {
    return this.host.runtime.now();
  }

  waits(waiter: Waiter): void {
    if (waiter.requesting) {
      waiter.requesting = false;
      this.concurrents--;
      if (!this.hasContender) this.leave();
    }
    // Whether the store fails still, the contender finds out now: this caller does not wait for an outage to end.
    if (this.host.outages.storeFails) this.ownWakeUp?.wakeIfDue();
    this.host.slowWaits.begin(waiter.wait, waiter);
  }

  waitsNoMore(waiter: Waiter): void {
    this.waiters.delete(waiter);
    this.host.slowWaits.end(waiter.wait);
  }

  timeIsOver(waiter: Waiter): number {
    const { wait } = waiter;
    const unsent = this.unreplied?.();
    // While the request is unsent, the store works: what it said last is true, as far as anybody can know.
    const failure = this.outage.isOn ? this.outage.failure : this.refused ? undefined : unsent;
    // An unsent request has a least time, and so has a caller behind it.
    const moreMs = failure && failure === unsent ? sendableUntil(wait, wait.startedAt) - this.now() : 0;
    if (failure && moreMs <= 0) {
      waiter.reject(this.storeError(wait, failure));
      return 0;
    }
    // A request without a reply may mean a dead store, which must not be reported as "taken". An earlier reply does
    // not show that the store still works: the contender sends another request. So do concurrent contenders, and a
    // contender that yields to other processes.
    const requests = failure ?? ((this.unreplied && !unsent) || this.ownWakeUp?.wakeIfDue());
    if (requests || this.concurrents > 0 || this.isAside) this.waiters.setDue(waiter);
    else this.refuseTaken(waiter);
    return moreMs;
  }

  aborted(waiter: Waiter): void {
    const { wait } = waiter;
    waiter.reject(abortedError(this.host.shown(wait.key), wait.signal!, this.now() - wait.startedAt));
  }

  /**
   * The release of the contender's hold is sent. The next contender's request reaches the store behind it. The queue
   * stays subscribed until the reply: a caller that comes back at once would subscribe again, and request what it missed.
   */
  releaseSent(): void {
    // A queue of one caller is over with it.
    if (this.ownWakeUp && !this.host.ofOneCaller) this.releases++;
    this.leave();
  }

  releaseOver(): void {
    if (this.releases === 0) return;
    this.releases--;
    if (this.hasContender || this.releases > 0) return;
    this.host.runtime.soon(() => this.closeIfUnused());
  }

  /**
   * The store has answered the contender's question. Where it has granted one of several holds, there may be another for the
   * next waiter, also when that waits for hardly any time.
   */
  replied(refused: boolean): void {
    this.refused = refused;
    this.outage.replied();
    this.unreplied = undefined;
    this.refuseDue(refused || this.host.singleHolder ? undefined : this.host.runtime.now());
  }

  /** Tells waiters whose time is over that the lock is taken; see `LocalWaiters.allDue`. */
  refuseDue(now?: number): void {
    for (const waiter of this.waiters.allDue(now)) this.refuseTaken(waiter);
  }

  /** The store failed: all waiters hear of it, or only those whose time is over anyway. */
  failed(failure: unknown, doing: string, scope: 'all' | 'due' = 'all', contenderLeaves = false): void {
    const { claimOnly, cause, overloaded } = failure as Partial<StoreFailure>;
    // Behind a withdrawn request, callers whose time is over hear why it was unsent.
    if (claimOnly) return cause instanceof StoreFailure ? this.failed(cause, doing, 'due') : undefined;
    // Callers behind a contender that leaves, or hears of an overload, have their own time to ask.
    const at = overloaded || contenderLeaves ? this.host.runtime.now() : undefined;
    this.reject((one) => (scope === 'all' && !overloaded) || this.waiters.isDue(one, at), failure, doing);
  }

  /** The store failed for a passing reason: the contender and those who wait already go on waiting. */
  failing(failure: StoreFailure, sentAt: number): void {
    this.outage.failed(failure, sentAt);
    this.reject((waiter) => this.waiters.isDue(waiter) || !this.outage.keepsWaiting(waiter.number), failure);
  }

  private reject(hears: (waiter: Waiter) => boolean, failure: unknown, doing?: string): void {
    for (const waiter of this.waiters.all)
      if (!waiter.requesting && hears(waiter)) waiter.reject(this.storeError(waiter.wait, failure, doing));
  }

  /** The outcome of the queue entry is known. */
  notified(): void {
    this.lookAgain();
  }

  /** The contender is to look at the queue entry sooner than it sleeps for. */
  looksSooner(): void {
    this.sooner = true;
    this.lookAgain();
  }

  /** The outcome of the queue entry may have been missed. */
  missedNotification(): void {
    this.wakeUp.notified();
  }

  /** The queue entry could not be refreshed. The contender looks for itself: at once, or when all try again. */
  entryFailed(cause: unknown): void {
    if (!(cause instanceof StoreFailure) || !cause.passing) return this.lookAgain();
    // What is asked at this moment tells it, too.
    if (!this.unreplied && this.outage.contenderKeepsWaiting) this.failing(cause, this.host.runtime.now());
  }

  /** The error of a caller whose own request, if it waits behind the contender, was never sent. */
  storeError(
    wait: Wait,
    failure: unknown,
    doing = 'waiting for',
    outcome: StoreOutcome = 'not-executed',
  ): Error {
    const now = this.host.runtime.now();
    const failedForMs = this.outage.failedForMs(now);
    return storeError(this.host.shown(wait.key), failure, doing, now - wait.startedAt, outcome, failedForMs);
  }

  /** Refuses all waiters for whom `refusal` has an error; the contender looks for itself. */
  shutDown(refusal: (wait: Wait) => Error | undefined): void {
    for (const waiter of this.waiters.all) {
      const error = waiter.requesting ? undefined : refusal(waiter.wait);
      if (error) waiter.reject(error);
    }
    this.lookAgain();
  }

  /** A forced unlock has ended that was requested after this number of attempts. */
  forcedOpen(attempts: number): void {
    this.forcedUpTo = Math.max(this.forcedUpTo, attempts);
  }

  /** The contender goes on, if it sleeps. */
  lookAgain(): void {
    this.ownWakeUp?.wakeNow();
  }

  /** Makes the next caller the contender and gives it the hold, if the batch goes on and that caller may have it. */
  handOff(hold: Hold): boolean {
    if (this.waiters.size === 0 || hold.watchdogMs === undefined) return false;
    const next = this.waiters.first;
    if (next?.watchdogMs !== hold.watchdogMs) return false;
    const passed = handedOffFrom(hold, this.host.runtime.now(), next.wait);
    if (!passed) return false;
    this.host.keepAlive(passed);
    this.held = passed;
    this.outage.contender = next.number;
    next.admit(passed);
    return true;
  }

  /** The contender has to wait. */
  blocked(wait: Wait, blocking: Blocking): void {
    this.blocking = blocking;
    this.waiting = wait;
    this.host.slowWaits.begin(wait, { queue: this, ahead: () => this.ownEntry?.position });
  }

  /**
   * The contender goes on waiting. If one caller more waits than may, the one that came last is refused: by an error,
   * or here.
   */
  checkRoom(key: string): void {
    const { maxWaiters, shown } = this.host;
    const isLast = this.behind >= maxWaiters && this.host.isFull(this);
    if (!isLast && this.length < maxWaiters) return;
    const full = queueFullError(shown(key), maxWaiters);
    if (isLast) throw full;
    this.waiters.lastWaiting()?.reject(full);
  }

  /** The contender waits no more. */
  private unblocked(): void {
    if (this.waiting) this.host.slowWaits.end(this.waiting);
    this.waiting = undefined;
  }

  /** The contender has the key. */
  has(hold: Hold): void {
    this.unblocked();
    this.outage.replied();
    this.blocking = undefined;
    this.held = hold;
  }

  /** The contender is done. It passes its queue entry to the next contender, or leaves the store's wait queue. */
  leave(): void {
    this.unblocked();
    this.refused = this.outage.isOn;
    this.held = undefined;
    const { ownEntry: entry } = this;
    // Also a waiter whose time is over: it asks once, since it is unknown whether the store works.
    const next = this.waiters.first;
    // A concurrent contender is before the others, and becomes the contender if its request is rejected.
    this.hasContender = next?.requesting === false;
    if (this.hasContender) {
      this.waiting = next!.wait;
      this.outage.contender = next!.number;
      return next!.admit();
    }
    if (this.waiters.size === 0) this.outage.left();
    if (entry) this.host.leaveQueue(entry);
    this.ownEntry = undefined;
    this.closeIfUnused();
  }

  /** Closes the queue's subscription if no caller wants the key. */
  private closeIfUnused(): void {
    if (this.hasContender || this.releases > 0) return;
    this.ownWakeUp?.close();
    this.over(false);
  }

  /**
   * A caller has one of several holds. If it was the contender, the next caller becomes it. `shared`: a hold that waiters
   * join at once, and later callers, too.
   */
  granted(isContender: boolean, shared?: Hold): void {
    if (isContender) this.outage.replied();
    this.blocking = undefined;
    this.holds++;
    if (shared) this.shared.begin(shared, this.waiters, this.host.runtime.now());
    if (isContender) this.leave();
  }

  /** One of several holds has ended. */
  holdEnds(othersWaiting: boolean): void {
    this.holds--;
    this.over(othersWaiting);
  }

  private over(othersWaiting: boolean): void {
    const { runtime } = this.host;
    if (othersWaiting) {
      // Keeps the queue for a moment: a caller that comes meanwhile lets other processes go first, too.
      runtime.clearTimer(this.idleTimer);
      this.idleTimer = runtime.setTimer(() => this.idle(), YIELD_MS);
    } else this.idle();
  }

  private add(wait: Wait, watchdogMs: number | undefined, requesting: boolean): Waiter {
    if (this.waiters === NOBODY) this.waiters = new LocalWaiters();
    const waiter = new Waiter(this, wait, this.outage.arrive(), watchdogMs, requesting);
    this.waiters.add(waiter);
    return waiter;
  }

  /** Its time is over, and the store has said that the lock is taken: it leaves now, and hears so in its portion. */
  private refuseTaken(waiter: Waiter): void {
    const { key, startedAt, waitMs } = waiter.wait;
    const others = [this.aheadOf(waiter), this.blocking] as const;
    this.waiters.delete(waiter);
    const { portions, runtime, shown } = this.host;
    portions.add(() => waiter.reject(takenError(shown(key), runtime.now() - startedAt, waitMs, ...others)));
  }

  /** Approximate number of callers before a waiter: of this process, without the holder, and of the wait queue. */
  aheadOf(waiter: Waiter): number | undefined {
    if (waiter.wait.waitMs === 0) return undefined;
    const contender = this.hasContender && !this.held ? 1 : 0;
    return this.waiters.aheadOf(waiter) + contender + (this.ownEntry?.position ?? 0);
  }

  /** The key may be free. If this process holds it, it may have been forced open. */
  private woken(): void {
    if (this.held) this.host.lookAt(this.held);
  }

  private idle(): void {
    this.host.runtime.clearTimer(this.idleTimer);
    if (!this.hasContender && this.waiters.size + this.holds + this.releases === 0) this.host.onIdle(this);
  }
}
