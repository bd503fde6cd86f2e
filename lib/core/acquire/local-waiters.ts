import { ArrivalOrder } from '../wait/arrival-order.js';
import { sendableUntil } from '../wait/wait.js';
import type { Waiter } from './waiter.js';

/** Callers in a local queue, in the order of their arrival. */
export class LocalWaiters extends ArrivalOrder<Waiter> {
  private due: Set<Waiter> | undefined;

  /**
   * Keeps a waiter whose time ends while a request is in progress. The outcome of that decides its error: a failed store
   * must not be reported as a taken lock.
   */
  setDue(waiter: Waiter): void {
    (this.due ??= new Set()).add(waiter);
  }

  /** Whether the time of a waiter is over; with `now`, also the one that it has to be sent by. */
  isDue(waiter: Waiter, now = Infinity): boolean {
    return this.due?.has(waiter) === true && sendableUntil(waiter.wait, waiter.wait.startedAt) <= now;
  }

  /** The last one that waits; or `own`, a caller with a request of its own, if none that waits came after it. */
  lastWaiting(own?: Waiter): Waiter | undefined {
    return this.all.findLast((one) => one === own || !one.requesting);
  }

  /** Waiters whose time is over; with `now`, only those that have no request of their own to come. */
  allDue(now?: number): readonly Waiter[] {
    return this.due ? [...this.due].filter((waiter) => this.isDue(waiter, now)) : [];
  }

  override delete(waiter: Waiter): void {
    super.delete(waiter);
    this.due?.delete(waiter);
  }
}
