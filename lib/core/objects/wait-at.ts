import { deadlineOf, type Wait } from '../acquire/wait.js';
import { objectStoreError } from '../errors/error-messages.js';
import { withStackFromHere } from '../errors/lock.errors.js';
import { StoreFailure } from '../seam/store-failure.js';
import type { ObjectContext, Question } from './object-context.js';
import type { Waiters } from './waiters.js';

/** How soon to ask again a store that says "not now", in ms. */
const TRANSIENT_RETRY_MS = 50;
/** How soon to look again while no wake-up can arrive, in ms. */
const DEAF_RETRY_MS = 1_000;

/** What is waited for at an object. */
export interface WaitedFor {
  readonly question: Question;
  readonly waiters: Waiters;
  /** Whether callers line up: then one that waits asks only as the first of its process, and when its time is over. */
  readonly inOrder: boolean;
  /** How many may stand behind the first. */
  readonly maxWaiters: number;
  /** `shares`: an answer to a question that is under way will do, if that was sent after the last hint. */
  ask(shares: boolean): Promise<boolean>;
  busy(waitedMs: number): Error;
  /** What more callers than that get; not needed where there is no limit. */
  readonly full?: () => Error;
}

/** One caller that asks until the answer is yes. */
class ObjectWait {
  private caller: object | undefined;
  private inLine = false;
  /** The hints there were before it asked for the last time; -1 before the first time. */
  private asked = -1;
  /** The store wants to be asked again then. */
  private retryAt = Infinity;

  constructor(
    private readonly context: ObjectContext,
    private readonly wait: Wait,
    private readonly what: WaitedFor,
  ) {}

  /**
   * Asks at once, unless others of this process wait in line already. After a refusal it listens, and asks again once
   * hints can be heard, after each of them, and for the last time when the wait is over: what the store said before is no
   * sign that it works still. A yes counts, whatever came meanwhile: nobody else could give back what was taken.
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
        if (this.isDue()) {
          if (await this.ask()) return;
          continue;
        }
        await this.sleep();
      }
    } finally {
      waiters.leave(this.caller);
    }
  }

  /** Whether to ask now. */
  private isDue(): boolean {
    const now = this.now();
    if (now >= deadlineOf(this.wait)) return true;
    if (!this.mayAsk()) return false;
    return this.asked !== this.what.waiters.hints || now >= this.retryAt;
  }

  private mayAsk(): boolean {
    const { waiters, inOrder } = this.what;
    return !inOrder || waiters.waiting === 0 || waiters.isFirst(this.caller!);
  }

  private async ask(): Promise<boolean> {
    const { context, wait, what } = this;
    const { waiters } = what;
    const shares = this.asked !== -1 && this.now() < deadlineOf(wait);
    this.asked = waiters.hints;
    this.retryAt = Infinity;
    try {
      if (await context.judged(() => what.ask(shares))) return true;
    } catch (failure) {
      this.throwUnlessTransient(failure);
      return false;
    }
    if (this.now() >= deadlineOf(wait)) {
      // The app may have begun to stop while the question was under way.
      throw context.core.reasonToStop(wait) ?? what.busy(this.waitedMs());
    }
    return false;
  }

  /** A store that asks for another try gets one, within the wait. Its other failures reach all who stand in line. */
  private throwUnlessTransient(failure: unknown): void {
    const { context, wait, what } = this;
    if (!(failure instanceof StoreFailure)) throw failure;
    const { outcome, transient } = failure;
    if (outcome === 'not-executed' && transient && this.now() < deadlineOf(wait)) {
      this.retryAt = this.now() + TRANSIENT_RETRY_MS;
      return;
    }
    if (what.inOrder && !failure.claimOnly && what.waiters.isFirst(this.caller!)) {
      what.waiters.failAll(() => this.error(failure, 'not-executed'));
    }
    const stopped = outcome === 'not-executed' ? context.core.reasonToStop(wait) : undefined;
    throw stopped ?? this.error(failure);
  }

  private async sleep(): Promise<void> {
    const { wait, what } = this;
    const { waiters } = what;
    this.lineUp();
    const now = this.now();
    let wakeAt = deadlineOf(wait);
    // Whoever may not ask is woken by the one who may.
    if (this.mayAsk()) wakeAt = Math.min(wakeAt, this.retryAt, this.deafUntil(now));
    try {
      // Timers may come a moment early.
      await waiters.sleep(this.caller!, Math.ceil(wakeAt - now) + 1, wait.signal);
    } catch (failure) {
      throw failure instanceof StoreFailure ? this.error(failure) : failure;
    }
    if (!waiters.hearing && this.mayAsk()) this.retryAt = Math.min(this.retryAt, wakeAt);
  }

  private lineUp(): void {
    const { waiters, maxWaiters, full } = this.what;
    if (this.inLine) return;
    const refusal = waiters.waiting > maxWaiters ? full?.() : undefined;
    if (refusal) throw refusal;
    waiters.beginToWait(this.caller!);
    this.inLine = true;
  }

  private deafUntil(now: number): number {
    return this.what.waiters.hearing ? Infinity : now + DEAF_RETRY_MS;
  }

  private error(failure: StoreFailure, outcome = failure.outcome): Error {
    return objectStoreError(this.wait.key, failure, this.what.question, this.waitedMs(), outcome);
  }

  private waitedMs(): number {
    return this.now() - this.wait.startedAt;
  }

  private now(): number {
    return this.context.core.runtime.now();
  }
}

/** See {@link ObjectWait.untilYes}. Throws what its caller gets. */
export const waitAt = async (context: ObjectContext, wait: Wait, what: WaitedFor): Promise<void> => {
  try {
    await context.during(() => new ObjectWait(context, wait, what).untilYes());
  } catch (error) {
    throw withStackFromHere(error);
  }
};
