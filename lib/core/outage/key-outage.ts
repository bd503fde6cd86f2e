import type { StoreFailure } from '../seam/store-failure.js';
import type { Outages } from './outages.js';

/**
 * What the callers of one key, or one object, know of a store that fails for a passing reason. Callers that came before the
 * outage, when the store had replied to one of them, go on waiting; those that come later do not.
 */
export class KeyOutage {
  private arrivals = 0;
  /** Callers up to this one wait since before the outage; all, while the store replies. */
  private waitedUpTo = 0;
  /** The number of the caller that talks to the store. */
  head = 0;
  private failedSince: number | undefined;
  private lastFailure: StoreFailure | undefined;

  constructor(
    private readonly outages: Outages,
    /** Makes the caller that waits for the store try again. */
    private readonly retry: () => void,
  ) {}

  /** Whether the last request failed for a passing reason. */
  get isOn(): boolean {
    return this.failedSince !== undefined;
  }

  /** The last failure; there has to be one. */
  get failure(): StoreFailure {
    return this.lastFailure!;
  }

  /** For how long the store has failed. */
  failedForMs(now: number): number {
    return now - (this.failedSince ?? now);
  }

  /** Returns the number of a caller that comes now. */
  arrive(): number {
    if (this.outages.storeFails) this.waitedUpTo = Math.min(this.waitedUpTo, this.arrivals);
    return ++this.arrivals;
  }

  /** Whether a caller goes on waiting while the store fails. */
  hasWaited(number: number): boolean {
    return number <= this.waitedUpTo;
  }

  get headHasWaited(): boolean {
    return this.hasWaited(this.head);
  }

  /** The store replied to a request for the key. */
  replied(): void {
    this.waitedUpTo = Infinity;
    this.end(true);
  }

  /** A request that was sent then failed for a passing reason. */
  failed(failure: StoreFailure, sentAt: number): void {
    this.waitedUpTo = Math.min(this.waitedUpTo, this.arrivals);
    this.failedSince ??= sentAt;
    this.lastFailure = failure;
    this.outages.failed(this, this.retry);
  }

  /** Nobody waits any more. */
  left(): void {
    this.end(false);
  }

  private end(works: boolean): void {
    if (this.failedSince === undefined) return;
    this.failedSince = undefined;
    this.lastFailure = undefined;
    this.outages.over(this, works);
  }
}
