import { NOT_SUBSCRIBED_RETRY_MS } from '../wait/wake-up.js';
import { deadlineOf, type TimedWait } from '../wait/wait.js';
import { objectStoreError } from '../errors/error-messages.js';
import { withStackFromHere } from '../errors/lock.errors.js';
import { ANOTHER_TRY_MS, getsAnotherTry } from '../outage/another-try.js';
import { unlessOver } from '../outage/unless-over.js';
import { harmless, StoreFailure } from '../seam/store-failure.js';
import type { ObjectCall } from '../settings/object-call.js';
import type { ObjectContext, ObjectRequest } from './object-context.js';
import type { Waiters } from './waiters.js';

/** What a caller waits for at a semaphore or a latch. */
export interface WaitedFor {
  readonly request: ObjectRequest;
  readonly waiters: Waiters;
  /**
   * Whether callers queue: a waiting caller then sends a request only as the first of its process, and when its time
   * ends.
   */
  readonly inOrder: boolean;
  /** Maximum number of callers behind the first. */
  readonly maxWaiters: number;
  /** Sends a request. `shares`: the reply to a request in progress will do, if it was sent after the last wake-up. */
  attempt(shares: boolean): Promise<boolean>;
  /**
   * Sends a request that changes nothing, to see whether `attempt` may succeed. Left out where `attempt` changes
   * nothing.
   */
  readonly look?: () => Promise<boolean>;
  busy(waitedMs: number): Error;
  /** Returns the error for a caller beyond `maxWaiters`; not needed without a limit. */
  readonly full?: () => Error;
}

/** One caller that asks until the answer is yes. */
class ObjectWait {
  private caller: object | undefined;
  private inQueue = false;
  /** The wake-ups there were before it asked for the last time; -1 before the first time. */
  private requested = -1;
  /** The store wants to be asked again then. */
  private retryAt = Infinity;

  constructor(
    private readonly context: ObjectContext,
    private readonly wait: TimedWait,
    private readonly what: WaitedFor,
  ) {}

  /**
   * Sends a request at once, unless other callers of this process wait already. After a rejection it subscribes. It
   * retries once it is subscribed, after each wake-up, and for the last time when the wait is over: an earlier reply does
   * not show that the store still works. A positive reply counts, whatever came meanwhile, because only this caller can
   * return what it took.
   */
  async untilYes(): Promise<void> {
    const { context, wait, what } = this;
    const { waiters } = what;
    this.caller = waiters.enter();
    try {
      for (;;) {
        const over = context.core.reasonToStop(wait);
        if (over) throw over;
        if (!context.core.settings.excludes) return;
        if (waiters.outage.isOn || this.comesInOutage()) await this.waitForStore();
        else if (this.isDue()) {
          if (await this.request()) return;
        } else await this.sleep();
      }
    } finally {
      waiters.leave(this.caller);
    }
  }

  /** It would only wait in the queue, while the store fails for others. */
  private comesInOutage(): boolean {
    const { context, what } = this;
    return context.core.outages.storeFails && !this.mayRequest() && !what.waiters.hasWaited(this.caller!);
  }

  /** Whether to ask now. */
  private isDue(): boolean {
    const now = this.now();
    if (now >= deadlineOf(this.wait)) return true;
    if (!this.mayRequest()) return false;
    return this.requested !== this.what.waiters.wakeUps || now >= this.retryAt;
  }

  private mayRequest(): boolean {
    const { waiters, inOrder } = this.what;
    return !inOrder || waiters.waiting === 0 || waiters.isFirst(this.caller!);
  }

  private async request(): Promise<boolean> {
    const { context, wait, what } = this;
    const { waiters } = what;
    const shares = this.requested !== -1 && this.now() < deadlineOf(wait);
    // Without a live subscription the connection may be dead: a look changes nothing, so it needs no undo.
    const looks = this.requested !== -1 && waiters.isNotSubscribed && what.look;
    const sentAt = this.now();
    this.requested = waiters.wakeUps;
    this.retryAt = Infinity;
    try {
      const isWorthIt = !looks || (await this.send(() => harmless(looks())));
      if (isWorthIt && (await this.send(() => what.attempt(shares)))) return true;
    } catch (failure) {
      this.failed(failure, sentAt);
      return false;
    }
    if (this.now() >= deadlineOf(wait)) {
      // The app may have begun to stop while the question was under way.
      throw context.core.reasonToStop(wait) ?? what.busy(this.waitedMs());
    }
    return false;
  }

  private send(request: () => Promise<boolean>): Promise<boolean> {
    return this.context.judged(async () => {
      const reply = await request();
      this.what.waiters.replied();
      return reply;
    });
  }

  /**
   * The store fails. Of those who wait since before that the first looks from time to time whether it works again. Each that
   * comes later looks at once, and is rejected when that fails.
   */
  private async waitForStore(): Promise<void> {
    const { context, wait, what } = this;
    const { waiters } = what;
    const hasWaited = waiters.hasWaited(this.caller!);
    if (hasWaited && this.now() >= deadlineOf(wait)) throw this.outageError();
    if (hasWaited && !waiters.looks(this.caller!)) return this.sleep();
    const look = (): Promise<boolean> => this.send(() => harmless(what.look?.() ?? what.attempt(false)));
    const sentAt = this.now();
    try {
      await (hasWaited ? unlessOver(context.core, wait, look, () => this.outageError()) : look());
    } catch (failure) {
      this.failed(failure, sentAt);
    }
  }

  /**
   * A store that asks for another try may get one; see `getsAnotherTry`. A caller that waits since before the store
   * began to fail for a passing reason goes on waiting, unless the outcome of its request is unknown. Other failures
   * reach all waiters.
   */
  private failed(failure: unknown, sentAt: number): void {
    const { context, wait, what } = this;
    const { waiters } = what;
    if (!(failure instanceof StoreFailure)) throw failure;
    const isCertain = failure.outcome === 'not-executed';
    const isLate = this.now() >= deadlineOf(wait);
    const hasWaited = waiters.hasWaited(this.caller!);
    if (!isLate && getsAnotherTry(failure, waiters.outage, { hasWaited, waitedMs: this.waitedMs() })) {
      this.retryAt = this.now() + ANOTHER_TRY_MS;
      return;
    }
    const isOutage = failure.passing && hasWaited;
    if (isOutage) waiters.outage.failed(failure, sentAt);
    const goesOn = isOutage && (isCertain || !what.look);
    if (goesOn && !isLate) return;
    if (what.inOrder && !failure.claimOnly && !isOutage && waiters.isFirst(this.caller!)) {
      waiters.failAll(() => this.error(failure, 'not-executed'));
    }
    const stopped = isCertain ? context.core.reasonToStop(wait) : undefined;
    throw stopped ?? (goesOn ? this.outageError() : this.error(failure));
  }

  private async sleep(): Promise<void> {
    const { wait, what } = this;
    const { waiters } = what;
    this.waitInQueue();
    const now = this.now();
    let wakeAt = deadlineOf(wait);
    // A caller that may not send requests is woken by the one that may.
    if (this.mayRequest() && !waiters.outage.isOn)
      wakeAt = Math.min(wakeAt, this.retryAt, this.retryWhileNotSubscribedAt(now));
    try {
      // Timers may come a moment early.
      await waiters.sleep(this.caller!, Math.ceil(wakeAt - now) + 1, wait.signal);
    } catch (failure) {
      throw failure instanceof StoreFailure ? this.error(failure) : failure;
    }
    if (!waiters.isSubscribed && this.mayRequest()) this.retryAt = Math.min(this.retryAt, wakeAt);
  }

  private waitInQueue(): void {
    const { waiters, maxWaiters, full } = this.what;
    if (this.inQueue) return;
    const refusal = waiters.waiting >= maxWaiters ? full?.() : undefined;
    if (refusal) throw refusal;
    waiters.beginToWait(this.caller!);
    this.inQueue = true;
  }

  private retryWhileNotSubscribedAt(now: number): number {
    return this.what.waiters.isSubscribed ? Infinity : now + NOT_SUBSCRIBED_RETRY_MS;
  }

  private error(failure: StoreFailure, outcome = failure.outcome, failedForMs?: number): Error {
    const { request } = this.what;
    const key = this.context.core.shown(this.wait.key);
    return objectStoreError(key, failure, request, this.waitedMs(), outcome, failedForMs);
  }

  /** The wait is over, and the store fails. */
  private outageError(): Error {
    const { outage } = this.what.waiters;
    return this.error(outage.failure, 'not-executed', outage.failedForMs(this.now()));
  }

  private waitedMs(): number {
    return this.now() - this.wait.startedAt;
  }

  private now(): number {
    return this.context.core.runtime.now();
  }
}

/** Waits at a semaphore or a latch; see {@link ObjectWait.untilYes}. Throws the caller's error. */
export const waitAt = async (
  context: ObjectContext,
  key: string,
  call: ObjectCall,
  what: WaitedFor,
): Promise<void> => {
  const wait = context.waitOf(key, call);
  try {
    await context.during(() => new ObjectWait(context, wait, what).untilYes());
  } catch (error) {
    throw withStackFromHere(context.core.waitCap.explain(error, call.waitMs));
  }
};
