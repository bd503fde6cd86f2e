import type { Grant } from './grant.js';
import type { StoreFailure } from './store-failure.js';

/**
 * Outcome of a queue entry: a grant or `gone`. The `validForMs` of a grant counts from when the last request that got
 * the reply "queued" was sent, because the grant came after that. `gone`: the entry does not exist any more; a caller
 * that still wants the key requests it as another owner.
 */
export type PlaceOutcome = Grant | { readonly status: 'gone' };

/** Listener of a queue entry. */
export interface PlaceListener {
  /** Called once, with the outcome. */
  told(outcome: PlaceOutcome): void;
  /** Called when an outcome may have been missed: the waiter has to send a request. */
  doubted(): void;
}

/** Queue entry of a waiter, in the wait queue of the store. */
export interface Place {
  /** Registers the listener. An outcome that is already known is passed on at once. */
  listen(listener: PlaceListener): void;
  /**
   * Removes the entry, and releases a hold that was granted to it. A waiter that gives up has to call it: otherwise its
   * claim would become the holder later. `doubt`: see `ReleaseOptions`.
   */
  leave(doubt?: StoreFailure): Promise<void>;
}

/**
 * Queue entry as a store keeps it. It is created before the request, because a grant may arrive before the reply
 * "queued".
 */
export class PlaceInLine implements Place {
  private outcome: PlaceOutcome | undefined;
  private doubt = false;
  private listener: PlaceListener | undefined;

  /** @param leaveLine removes the claim from the wait queue, or releases its hold */
  constructor(private readonly leaveLine: (doubt: StoreFailure | undefined) => Promise<void>) {}

  /** Passes the outcome on. Only the first one counts. */
  tell(outcome: PlaceOutcome): void {
    if (this.outcome) return;
    this.outcome = outcome;
    this.listener?.told(outcome);
  }

  /** Reports that the store may have missed an outcome. */
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
