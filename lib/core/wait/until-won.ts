import { ANOTHER_TRY_MS, getsAnotherTry } from '../outage/another-try.js';
import { harmless, StoreFailure, type StoreOutcome } from '../seam/store-failure.js';
import type { Callers } from './callers.js';
import { afterFailure, nextOf, type View } from './states.js';
import { unlessOver, type StopHost } from './unless-over.js';
import { waitFor } from '../util/wait-for.js';
import { deadlineOf, type TimedWait } from './wait.js';
import { NOT_SUBSCRIBED_RETRY_MS } from './wake-up.js';

/** What a wait needs of its service. */
export interface WaitHost extends StopHost {
  /** Whether callers exclude each other. Otherwise each one wins without a request. */
  readonly excludes: boolean;
  /** Whether the store fails, at least for some keys. */
  readonly storeFails: boolean;
  /** Sends a request, and notes whether the store works. */
  judged<T>(send: () => Promise<T>): Promise<T>;
}

/** What a caller asks the store for. */
export interface Ask {
  /** Maximum number of callers that wait. */
  readonly maxWaiters: number;
  /**
   * Sends the request that may win. Resolves with whether it won. `shares`: the reply to a request in progress will do, if
   * it was sent after the last wake-up.
   */
  request(shares: boolean): Promise<boolean>;
  /** Sends a request that changes nothing, to see whether `request` may win. Absent where `request` changes nothing. */
  readonly look?: () => Promise<boolean>;
  /** Returns the error for a wait that is over. */
  taken(waitedMs: number): Error;
  /** Returns the error for a caller beyond `maxWaiters`; not needed without a limit. */
  readonly full?: () => Error;
  failed(failure: StoreFailure, waitedMs: number, outcome: StoreOutcome, failedForMs?: number): Error;
}

/**
 * One caller that asks until it wins. It sends a request at once, unless other callers of this process wait already.
 * After a refusal it subscribes. It asks again once it is subscribed, after each wake-up, and for the last time when the
 * wait is over. A grant counts even after an abort, since only this caller can give it back.
 */
export class UntilWon {
  /** The wake-ups before its last request; -1 before the first one. */
  private requested = -1;
  private retryAt = Infinity;
  /** Whether the store has refused it. */
  private isRefused = false;
  /** Whether it may wait beside the others; see {@link Ask.maxWaiters}. */
  private hasRoom = false;
  private readonly caller;

  constructor(
    private readonly host: WaitHost,
    private readonly wait: TimedWait,
    private readonly callers: Callers,
    private readonly ask: Ask,
  ) {
    this.caller = callers.enter();
  }

  /** Resolves when the caller has won. Rejects with its error, on time. */
  async run(): Promise<void> {
    const { callers, caller, wait } = this;
    try {
      for (;;) {
        const over = this.host.reasonToStop(wait);
        if (over) throw over;
        if (!this.host.excludes) return;
        switch (nextOf(this.view())) {
          case 'ask':
            if (await this.request()) return;
            break;
          case 'look':
            await this.lookForStore();
            break;
          case 'sleep':
            await this.sleep();
            break;
          case 'give up':
            throw this.outageError();
        }
      }
    } finally {
      callers.leave(caller);
    }
  }

  private view(): View {
    const { host, wait, callers, caller } = this;
    const mayAsk = callers.mayAsk(caller);
    const keepsWaiting = callers.keepsWaiting(caller);
    // A caller that would only queue behind others finds out for itself whether the store fails for them.
    const queuesInOutage = host.storeFails && !mayAsk && !keepsWaiting;
    return {
      now: this.now(),
      deadline: deadlineOf(wait),
      mayAsk,
      isWoken: this.requested !== callers.wakeUps,
      retryAt: this.retryAt,
      inOutage: callers.outage.isOn || queuesInOutage,
      keepsWaiting,
      isToLook: callers.isToLookNow(caller),
    };
  }

  private async request(): Promise<boolean> {
    const { host, wait, callers, ask } = this;
    const sentAt = this.now();
    const isFirstTime = this.requested === -1;
    const shares = !isFirstTime && sentAt < deadlineOf(wait);
    // Without a live subscription the connection may be dead: a look changes nothing, so it needs no undo.
    const look = isFirstTime || !callers.isNotSubscribed ? undefined : ask.look;
    this.requested = callers.wakeUps;
    this.retryAt = Infinity;
    try {
      const isWorthIt = !look || (await this.send(() => harmless(look())));
      const over = look && host.reasonToStop(wait);
      if (over) throw over;
      if (isWorthIt && (await this.send(() => ask.request(shares)))) return true;
      this.isRefused = true;
    } catch (failure) {
      this.failed(failure, sentAt);
      return false;
    }
    // The app may have begun to stop meanwhile.
    if (this.now() >= deadlineOf(wait)) throw host.reasonToStop(wait) ?? ask.taken(this.waitedMs());
    return false;
  }

  private send(request: () => Promise<boolean>): Promise<boolean> {
    return this.host.judged(async () => {
      const reply = await request();
      this.callers.replied();
      return reply;
    });
  }

  /** In an outage. A caller that has waited does not wait for the reply longer than for the rest. */
  private async lookForStore(): Promise<void> {
    const { host, wait, callers, caller, ask } = this;
    const keepsWaiting = callers.keepsWaiting(caller);
    if (keepsWaiting) callers.looks();
    const look = (): Promise<boolean> => this.send(() => harmless(ask.look?.() ?? ask.request(false)));
    const sentAt = this.now();
    try {
      await (keepsWaiting ? unlessOver(host, wait, look, () => this.outageError()) : look());
    } catch (failure) {
      this.failed(failure, sentAt);
      // Another try, as the store asks. `Outages` tells the callers that keep waiting when to try.
      if (!keepsWaiting) await this.pause();
    }
  }

  private failed(failure: unknown, sentAt: number): void {
    const { host, wait, callers, caller, ask } = this;
    if (!(failure instanceof StoreFailure)) throw failure;
    const isCertain = failure.outcome === 'not-executed';
    const keepsWaiting = callers.keepsWaiting(caller);
    const isOutage = failure.passing && keepsWaiting;
    const isLate = this.now() >= deadlineOf(wait);
    const next = afterFailure({
      isLate,
      getsAnotherTry: getsAnotherTry(failure, callers.outage, { keepsWaiting, waitedMs: this.waitedMs() }),
      isPassing: failure.passing,
      keepsWaiting,
      isHarmless: isCertain || !ask.look,
    });
    if (next === 'ask again') {
      this.retryAt = this.now() + ANOTHER_TRY_MS;
      return;
    }
    if (isOutage) callers.outage.failed(failure, sentAt);
    if (next === 'go on') return;
    if (callers.inOrder && !failure.claimOnly && !failure.overloaded && !isOutage && callers.first === caller)
      callers.failAll(failure);
    const stopped = isCertain ? host.reasonToStop(wait) : undefined;
    if (stopped) throw stopped;
    if (next === 'give up') throw this.outageError();
    // In an overload the store works, and its last reply was a refusal.
    if (failure.overloaded && isLate && this.isRefused) throw ask.taken(this.waitedMs());
    throw ask.failed(failure, this.waitedMs(), failure.outcome);
  }

  private pause(): Promise<void> {
    return waitFor<void>(this.host.runtime, {
      ms: ANOTHER_TRY_MS,
      signal: this.wait.signal,
      onTime: (pause) => pause.resolve(),
      onAbort: (pause) => pause.resolve(),
    });
  }

  private async sleep(): Promise<void> {
    const { wait, callers, caller, ask } = this;
    const isBehind = !callers.mayAsk(caller);
    callers.beginToWait(caller);
    // A caller whose request has failed was not told that it has to wait.
    if (!this.hasRoom && (isBehind || this.isRefused)) {
      const refusal = callers.waiting > ask.maxWaiters ? ask.full?.() : undefined;
      if (refusal) throw refusal;
      this.hasRoom = true;
    }
    const now = this.now();
    let wakeAt = deadlineOf(wait);
    // A caller that may not ask is woken by the one that may.
    if (callers.mayAsk(caller) && !callers.outage.isOn) {
      const withoutWakeUps = callers.isSubscribed ? Infinity : now + NOT_SUBSCRIBED_RETRY_MS;
      wakeAt = Math.min(wakeAt, this.retryAt, withoutWakeUps);
    }
    try {
      // Timers may come a moment early.
      await callers.sleep(caller, Math.ceil(wakeAt - now) + 1, wait.signal);
    } catch (failure) {
      // It has no request under way.
      throw failure instanceof StoreFailure ? ask.failed(failure, this.waitedMs(), 'not-executed') : failure;
    }
    if (!callers.isSubscribed && callers.mayAsk(caller)) this.retryAt = Math.min(this.retryAt, wakeAt);
  }

  private outageError(): Error {
    const { outage } = this.callers;
    return this.ask.failed(outage.failure, this.waitedMs(), 'not-executed', outage.failedForMs(this.now()));
  }

  private waitedMs(): number {
    return this.now() - this.wait.startedAt;
  }

  private now(): number {
    return this.host.runtime.now();
  }
}
