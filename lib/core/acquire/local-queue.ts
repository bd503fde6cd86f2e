import { onAbort } from '../abort-listeners.js';
import type { LockKind } from '../seam/claim.js';
import { abortedError, storeError, takenError } from '../errors/error-messages.js';
import type { Hold, Turn } from '../lease/hold.js';
import type { LockStore, StoreFailure, Watch } from '../seam/lock-store.js';
import type { Runtime } from '../runtime.js';

/** Somebody who wants a key: until when, and how it may be called off. */
export interface Wait {
  /** The key as the caller wrote it. */
  readonly key: string;
  readonly startedAt: number;
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
  /** Part of work that runs already; it may go on waiting while the app stops. */
  readonly nested: boolean;
}

export const deadlineOf = (wait: Wait): number => wait.startedAt + wait.waitMs;

interface Waiter {
  readonly wait: Wait;
  /** Its time is over, but a request is under way that may show why it really waits. */
  due: boolean;
  /** It may have the hold of the one before if the watchdog renews that with this lease; undefined: it may not. */
  readonly watchdogMs: number | undefined;
  admit(passed?: Hold): void;
  refuse(error: Error): void;
}

/** What all queues have until somebody waits: most keys are wanted by one caller at a time. Never added to. */
const NOBODY = new Set<Waiter>();

/** How long the process that had the lock lets others go first, in ms. */
const SIT_OUT_MS = 25;
/** Two messages end the turn: the echo of our own release, and the release of whoever came in between. */
const SIT_OUT_HINTS = 2;

/**
 * The callers of this process that want one key, in the order in which they came. One of them at a time has the
 * turn: it asks the store, and if it gets the hold it keeps the turn until that is over. So a process puts one
 * contender per key before the store, however many callers it has.
 */
export class KeyQueue implements Turn {
  private waiters = NOBODY;
  private turnTaken = false;
  /** A request for this key is under way, so nobody knows whether the store works. */
  private unanswered = false;
  private watching: Watch | undefined;
  private watchFailure: StoreFailure | undefined;
  private onHint: (() => void) | undefined;
  private onDue: (() => void) | undefined;
  private sitOutUntil = -Infinity;
  private sitOutHints = 0;
  private idleTimer: unknown;

  /** How many times the key may have become free. Read before asking, compare after a refusal. */
  hints = 0;

  /** How many times this process has asked the store for the key. */
  attempts = 0;

  /** What was asked for up to this number has been forced open since, also where the answer is still to come. */
  forcedUpTo = 0;

  constructor(
    private readonly kind: LockKind,
    private readonly finalKey: string,
    private readonly store: LockStore,
    private readonly runtime: Runtime,
    private readonly onIdle: () => void,
  ) {}

  get length(): number {
    return this.waiters.size;
  }

  get taken(): boolean {
    return this.turnTaken;
  }

  /** Takes the turn if nobody has it. */
  enter(): boolean {
    if (this.turnTaken) return false;
    this.turnTaken = true;
    return true;
  }

  /**
   * Resolves when it is this caller's turn: with the hold of the one before if that was passed on to it, which takes
   * that the watchdog renews both with the same lease. Rejects when its time is over, it is aborted, or the store fails.
   */
  queue(wait: Wait, watchdogMs: number | undefined): Promise<Hold | undefined> {
    return new Promise((resolve, reject) => {
      const { signal } = wait;
      const settle = (): void => {
        this.waiters.delete(waiter);
        if (timer !== undefined) this.runtime.clearTimer(timer);
        stopAborting?.();
      };
      const waiter: Waiter = {
        wait,
        due: false,
        watchdogMs,
        admit: (passed) => {
          settle();
          resolve(passed);
        },
        refuse: (error) => {
          settle();
          reject(error);
        },
      };
      const abort = (): void =>
        waiter.refuse(abortedError(wait.key, signal!, this.runtime.now() - wait.startedAt));
      const onDeadline = (): void => {
        // A request without an answer may be the sign of a dead store, which must not pass for a taken lock. And what
        // the store said a while ago is no sign that it works: who has the turn asks again.
        if (this.unanswered || this.askAgain()) waiter.due = true;
        else waiter.refuse(this.takenError(wait));
      };
      const leftMs = deadlineOf(wait) - this.runtime.now();
      const timer = leftMs > 0 && leftMs < Infinity ? this.runtime.setTimer(onDeadline, leftMs) : undefined;
      if (this.waiters === NOBODY) this.waiters = new Set();
      this.waiters.add(waiter);
      const stopAborting = signal && onAbort(signal, abort);
      if (leftMs <= 0) onDeadline();
    });
  }

  /** A request to the store is sent for whoever has the turn. Those whose time ends meanwhile hear its outcome. */
  asking(): void {
    this.unanswered = true;
  }

  /** The request is over. With `tell`, those whose time is over are told that the lock is taken. */
  asked(tell: boolean): void {
    this.unanswered = false;
    if (tell && this.waiters.size > 0) this.tellDue();
  }

  /** The store failed: all who wait hear of it, or only those whose time is over anyway. */
  failed(failure: unknown, doing: string, who: 'all' | 'due' = 'all'): void {
    for (const waiter of [...this.waiters]) {
      if (who === 'due' && !waiter.due) continue;
      const { key, startedAt } = waiter.wait;
      // Their own requests were never sent.
      waiter.refuse(storeError(key, failure, doing, this.runtime.now() - startedAt, 'not-executed'));
    }
  }

  /** Refuses all waiters for whom `refusal` has an error; the one whose turn it is looks for itself. */
  shutDown(refusal: (wait: Wait) => Error | undefined): void {
    for (const waiter of [...this.waiters]) {
      const error = refusal(waiter.wait);
      if (error) waiter.refuse(error);
    }
    this.onHint?.();
  }

  /** Gives the turn to the next caller together with the hold, if there is one to pass on and a caller who may have it. */
  passOn(watchdogMs: number | undefined, pass: () => Hold | undefined): boolean {
    if (this.waiters.size === 0 || watchdogMs === undefined) return false;
    const next = this.waiters.values().next();
    const passed = next.done || next.value.watchdogMs !== watchdogMs ? undefined : pass();
    if (!passed) return false;
    next.value!.admit(passed);
    return true;
  }

  /** Gives up the turn. `othersWaiting`: somebody in another process wants the key too. */
  leave(othersWaiting: boolean, hintsBefore = this.hints): void {
    if (othersWaiting) {
      this.sitOutUntil = this.runtime.now() + SIT_OUT_MS;
      this.sitOutHints = hintsBefore + SIT_OUT_HINTS;
    }
    // Also one whose time is over: it asks once, since nobody knows whether the store works.
    const next = this.waiters.values().next();
    if (!next.done) return next.value.admit();
    this.turnTaken = false;
    this.unwatch();
    if (othersWaiting) {
      // Whoever comes in this moment is to let the others go first as well.
      this.runtime.clearTimer(this.idleTimer);
      this.idleTimer = this.runtime.setTimer(() => this.idle(), SIT_OUT_MS);
    } else this.idle();
  }

  /** Until when the one whose turn it is lets other processes go first; undefined when it need not. */
  get sittingOutUntil(): number | undefined {
    const over = this.hints >= this.sitOutHints || this.runtime.now() >= this.sitOutUntil;
    return over ? undefined : this.sitOutUntil;
  }

  /** Starts listening for the end of the hold in the way; from now on hints are counted. */
  listen(): void {
    this.watching ??= this.store.watch(
      this.kind,
      this.finalKey,
      () => {
        this.hints++;
        this.onHint?.();
      },
      (failure) => {
        this.watchFailure = failure;
        this.onHint?.();
      },
    );
  }

  /** Whether hints can arrive. */
  get hearing(): boolean {
    return this.watching?.live ?? false;
  }

  /**
   * Waits for a hint, `ms`, or the signal, whichever comes first; with `forDue` also until somebody's time behind it is
   * over. Throws when hints can never come.
   */
  async hinted(ms: number, cancelled: AbortSignal | undefined, forDue = false): Promise<void> {
    if (this.watchFailure) {
      const failure = this.watchFailure;
      this.unwatch();
      throw failure;
    }
    await new Promise<void>((resolve) => {
      const settle = (): void => {
        this.onHint = undefined;
        this.onDue = undefined;
        this.runtime.clearTimer(timer);
        stopAborting?.();
        resolve();
      };
      const timer = this.runtime.setTimer(settle, ms);
      this.onHint = settle;
      if (forDue) this.onDue = settle;
      const stopAborting = cancelled && onAbort(cancelled, settle);
      if (cancelled?.aborted) settle();
    });
  }

  /** Wakes the caller that has the turn and sleeps until the lock may be free. False when nobody does. */
  private askAgain(): boolean {
    const { onDue } = this;
    onDue?.();
    return onDue !== undefined;
  }

  private tellDue(): void {
    for (const waiter of [...this.waiters]) if (waiter.due) waiter.refuse(this.takenError(waiter.wait));
  }

  private takenError({ key, startedAt, waitMs }: Wait): Error {
    return takenError(key, this.runtime.now() - startedAt, waitMs);
  }

  private unwatch(): void {
    this.watching?.close();
    this.watching = undefined;
    this.watchFailure = undefined;
  }

  private idle(): void {
    this.runtime.clearTimer(this.idleTimer);
    if (!this.turnTaken && this.waiters.size === 0) this.onIdle();
  }
}
