import type { StoreFailure } from '../seam/store-failure.js';
import type { Failing, Outages } from './outages.js';

/**
 * Outage of the store for one key, semaphore or latch: it fails for a temporary reason. Callers that came before the
 * outage go on waiting, if the store had replied to one of them. Later callers do not.
 */
export class KeyOutage implements Failing {
  private arrivals = 0;
  /** Callers up to this number have waited since before the outage. Undefined while the store replies: all of them. */
  private waitedUpTo: number | undefined = 0;
  /** Number of the caller that talks to the store. */
  contender = 0;
  private failedSince: number | undefined;
  private lastFailure: StoreFailure | undefined;

  constructor(
    private readonly outages: Outages,
    private readonly callers: { lookAgain(): void },
  ) {}

  /** Whether the last request failed for a temporary reason. */
  get isOn(): boolean {
    return this.failedSince !== undefined;
  }

  /** Last failure, also after the outage; there has to be one. */
  get failure(): StoreFailure {
    return this.lastFailure!;
  }

  /** Length of the outage until now, in ms; undefined without one. */
  failedForMs(now: number): number | undefined {
    return this.failedSince === undefined ? undefined : now - this.failedSince;
  }

  /** Returns the number of a new caller. */
  arrive(): number {
    if (this.outages.storeFails) this.noFurther();
    return ++this.arrivals;
  }

  /** Returns whether a caller goes on waiting while the store fails. */
  keepsWaiting(number: number): boolean {
    return number <= (this.waitedUpTo ?? number);
  }

  get contenderKeepsWaiting(): boolean {
    return this.keepsWaiting(this.contender);
  }

  /** Records a reply of the store to a request for the key. */
  replied(): void {
    this.waitedUpTo = undefined;
    this.end(true);
  }

  /** Records that a request, sent at `sentAt`, failed for a temporary reason. */
  failed(failure: StoreFailure, sentAt: number): void {
    this.noFurther();
    this.failedSince ??= sentAt;
    this.lastFailure = failure;
    this.outages.failed(this);
  }

  retry(): void {
    this.callers.lookAgain();
  }

  /** Ends the outage here, because no caller waits any more. */
  left(): void {
    this.end(false);
  }

  /** Callers that come from now on have not waited. */
  private noFurther(): void {
    this.waitedUpTo = Math.min(this.waitedUpTo ?? Infinity, this.arrivals);
  }

  private end(works: boolean): void {
    if (this.failedSince === undefined) return;
    this.failedSince = undefined;
    this.outages.over(this, works);
  }
}
