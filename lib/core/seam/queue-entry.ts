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

/**
 * Queue entry as a store keeps it. A grant may arrive before the reply "queued": a store creates the entry before its
 * request, or keeps such a grant until the reply.
 */
export class StoreQueueEntry implements QueueEntry {
  private outcome: QueueEntryOutcome | undefined;
  private uncertain = false;
  private listener: QueueEntryListener | undefined;

  /** @param leaveQueue removes the claim from the wait queue, or releases its hold */
  constructor(private readonly leaveQueue: (uncertain: StoreFailure | undefined) => Promise<void>) {}

  /** Passes the outcome on. Only the first one counts. */
  notify(outcome: QueueEntryOutcome): void {
    if (this.outcome) return;
    this.outcome = outcome;
    this.listener?.notified(outcome);
  }

  /** Reports that the store may have missed an outcome. */
  mayHaveMissed(): void {
    this.uncertain = true;
    this.listener?.missedNotification();
  }

  listen(listener: QueueEntryListener): void {
    this.listener = listener;
    if (this.outcome) listener.notified(this.outcome);
    else if (this.uncertain) listener.missedNotification();
  }

  leave(uncertain?: StoreFailure): Promise<void> {
    this.listener = undefined;
    return this.leaveQueue(uncertain);
  }
}
