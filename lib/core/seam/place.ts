import type { Grant } from './grant.js';
import type { StoreFailure } from './store-failure.js';

/**
 * What becomes of a place in line: a grant, whose `validForMs` counts from the send of the last request that was still
 * answered "queued", because it can only have been given after that; or `gone`: the place is not there any more, and a
 * caller that still wants the key asks again as another owner.
 */
export type PlaceOutcome = Grant | { readonly status: 'gone' };

/** What a place tells. */
export interface PlaceListener {
  /** What becomes of it: once. */
  told(outcome: PlaceOutcome): void;
  /** Something may have become of it that could not be told: whoever waits has to ask. */
  doubted(): void;
}

/** Where a waiter stands in a line that the store keeps. */
export interface Place {
  /** Tells what becomes of it. What became of it before is told at once. */
  listen(listener: PlaceListener): void;
  /**
   * Gives the place up, and with it what was granted to it meanwhile. A waiter that gives up always
   * leaves: a forgotten claim would become the holder one day. `doubt`: as in `ReleaseOptions`.
   */
  leave(doubt?: StoreFailure): Promise<void>;
}

/**
 * A place as a store keeps it. It is made before anything is sent, because the grant may arrive before the answer that
 * the claim stands in line.
 */
export class PlaceInLine implements Place {
  private outcome: PlaceOutcome | undefined;
  private doubt = false;
  private listener: PlaceListener | undefined;

  /** @param leaveLine takes the claim out of the store's line, or ends its hold. */
  constructor(private readonly leaveLine: (doubt: StoreFailure | undefined) => Promise<void>) {}

  /** The store has an outcome. The first one counts. */
  tell(outcome: PlaceOutcome): void {
    if (this.outcome) return;
    this.outcome = outcome;
    this.listener?.told(outcome);
  }

  /** The store may have missed an outcome. */
  mayHaveMissed(): void {
    this.doubt = true;
    this.listener?.doubted();
  }

  listen(listener: PlaceListener): void {
    this.listener = listener;
    if (this.outcome) listener.told(this.outcome);
    else if (this.doubt) listener.doubted();
  }

  leave(doubt?: StoreFailure): Promise<void> {
    this.listener = undefined;
    return this.leaveLine(doubt);
  }
}
