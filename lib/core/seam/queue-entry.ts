import type { Grant } from './grant.js';
import type { StoreFailure } from './store-failure.js';

/**
 * Outcome of a queue entry: a grant or `gone`. The `validForMs` of a grant counts from when the last request that got
 * the reply "queued" was sent, because the grant came after that. `gone`: the entry does not exist any more; a caller
 * that still wants the key requests it as another owner.
 */
export type QueueEntryOutcome = Grant | { readonly status: 'gone' };

/** Listener of a queue entry. */
export interface QueueEntryListener {
  /** Called once, with the outcome. */
  notified(outcome: QueueEntryOutcome): void;
  /** Called when an outcome may have been missed: the waiter has to send a request. */
  missedNotification(): void;
}

/** Queue entry of a waiter, in the wait queue of the store. */
export interface QueueEntry {
  /** Registers the listener. An outcome that is already known is passed on at once. */
  listen(listener: QueueEntryListener): void;
  /**
   * Removes the entry, and releases a hold that was granted to it. A waiter that gives up has to call it: otherwise its
   * claim would become the holder later. `uncertain`: see `ReleaseOptions`.
   */
  leave(uncertain?: StoreFailure): Promise<void>;
}
