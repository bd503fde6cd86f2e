import type { Grant } from './grant.js';
import type { StoreFailure } from './store-failure.js';

/**
 * What becomes of a place in line: a grant, whose `validForMs` counts from the moment it is told; or `gone`: the place
 * is not there any more, and a caller that still wants the key asks again as another owner.
 */
export type PlaceOutcome = Grant | { readonly status: 'gone' };

/** Where a waiter stands in a line that the store keeps. */
export interface Place {
  /** Tells what becomes of it, once. What became of it before is told at once. */
  listen(listener: (outcome: PlaceOutcome) => void): void;
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
  private toldAt = 0;
  private listener: ((outcome: PlaceOutcome) => void) | undefined;

  /**
   * @param leaveLine takes the claim out of the store's line, or ends its hold.
   * @param now the store's clock in ms, which never goes back: a grant gets older while nobody listens.
   */
  constructor(
    private readonly leaveLine: (doubt: StoreFailure | undefined) => Promise<void>,
    private readonly now: () => number,
  ) {}

  /** The store has an outcome. The first one counts. */
  tell(outcome: PlaceOutcome): void {
    if (this.outcome) return;
    this.outcome = outcome;
    this.toldAt = this.now();
    this.listener?.(outcome);
  }

  listen(listener: (outcome: PlaceOutcome) => void): void {
    this.listener = listener;
    const { outcome } = this;
    if (outcome?.status !== 'granted') {
      if (outcome) listener(outcome);
      return;
    }
    listener({ ...outcome, validForMs: outcome.validForMs - (this.now() - this.toldAt) });
  }

  leave(doubt?: StoreFailure): Promise<void> {
    this.listener = undefined;
    return this.leaveLine(doubt);
  }
}
