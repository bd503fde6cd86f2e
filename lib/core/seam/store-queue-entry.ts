import type { Claim } from './claim.js';
import type { Grant } from './grant.js';
import type { QueueEntry, QueueEntryListener, QueueEntryOutcome } from './queue-entry.js';
import type { Queued, QueueEntryReply, QueuePosition } from './reply.js';
import type { StoreFailure } from './store-failure.js';

/** Number of first entries that retry at the end of the blocking lease: one of them will get the key. */
const WATCHERS_OF_THE_END = 3;

/** Grant of unknown age: its process has to request the key from the store. */
const UNKNOWN_GRANT: QueueEntryOutcome = { status: 'granted', validForMs: 0 };

/** The caller's side of an entry: its local queue. */
export interface EntryWaiter extends QueueEntryListener {
  /** The time to look again has come nearer. */
  looksSooner(): void;
  /** The entry could not be refreshed. */
  entryFailed(cause: unknown): void;
}

/**
 * Queue entry as its store and its process know it. The first outcome counts, and only this object keeps it. A grant may
 * arrive before the reply "queued": a store creates the entry before its request, or keeps such a grant until the reply.
 */
export class StoreQueueEntry implements QueueEntry {
  private first: QueueEntryOutcome | undefined;
  private uncertain = false;
  private listener: (QueueEntryListener & Partial<EntryWaiter>) | undefined;
  private enqueuedClaim: Claim | undefined;
  private watchdogMs: number | undefined;
  private sentAt = -Infinity;
  private place: QueuePosition | undefined;

  /** @param leaveQueue removes the claim from the wait queue, or releases its hold */
  constructor(private readonly leaveQueue: (uncertain: StoreFailure | undefined) => Promise<void>) {}

  /** Passes the outcome on. Only the first one counts. */
  notify(outcome: QueueEntryOutcome): void {
    if (this.first) return;
    this.first = outcome;
    this.listener?.notified(outcome);
  }

  /** Reports that the store may have missed an outcome. */
  mayHaveMissed(): void {
    if (this.first) return;
    this.uncertain = true;
    this.listener?.missedNotification();
  }

  listen(listener: QueueEntryListener): void {
    this.listener = listener;
    if (this.first) listener.notified(this.first);
    else if (this.uncertain) listener.missedNotification();
  }

  leave(uncertain?: StoreFailure): Promise<void> {
    this.listener = undefined;
    return this.leaveQueue(uncertain);
  }

  /**
   * @internal The reply "queued" has come. The entry stays when the caller that enqueued gives up and others of its process
   * wait. `watchdogMs`: lease that it was made for, and that the watchdog renews; undefined for a fixed lease.
   */
  enqueued(
    claim: Claim,
    watchdogMs: number | undefined,
    queued: Queued,
    sentAt: number,
    waiter: EntryWaiter,
  ): void {
    this.enqueuedClaim = claim;
    this.watchdogMs = watchdogMs;
    this.place = queued;
    this.sentAt = sentAt;
    this.listen(waiter);
  }

  /** @internal What became of it, if that is known. */
  get outcome(): QueueEntryOutcome | undefined {
    return this.first;
  }

  /** @internal The claim that was enqueued. */
  get claim(): Claim {
    return this.enqueuedClaim!;
  }

  /** @internal When the last request with the reply "queued" was sent: a grant by message came after that. */
  get queuedAt(): number {
    return this.sentAt;
  }

  /** @internal */
  get position(): number {
    return this.place!.position;
  }

  /** @internal When to look whether the blocking hold has ended; `Infinity` behind the first entries, which look. */
  get lookAgainAt(): number {
    const { position, retryInMs } = this.place!;
    return position < WATCHERS_OF_THE_END ? this.sentAt + retryInMs : Infinity;
  }

  /** @internal The store was asked about it. A reply to an older request than the last one changes nothing. */
  replied(reply: Exclude<QueueEntryReply, { status: 'failed' }>, sentAt: number): void {
    if (reply.status === 'gone') return this.notify(reply);
    if (reply.status === 'held') return this.notify(UNKNOWN_GRANT);
    if (sentAt < this.sentAt) return;
    const before = this.lookAgainAt;
    this.sentAt = sentAt;
    this.place = reply;
    if (this.lookAgainAt < before) this.listener?.looksSooner?.();
  }

  /** @internal The store was asked about it in vain. */
  failed(cause: unknown): void {
    this.listener?.entryFailed?.(cause);
  }

  /** @internal It has become a hold, or another entry has its place. */
  stopListening(): void {
    this.listener = undefined;
  }

  /**
   * @internal Whether a section may begin on what a message said, for a lease that is renewed so. A forced unlock may have
   * ended an older grant.
   */
  isCertain(
    grant: Grant,
    watchdogMs: number | undefined,
    forcedAt: number | undefined,
    now: number,
  ): boolean {
    if (watchdogMs === undefined || watchdogMs !== this.watchdogMs) return false;
    const { since = this.sentAt, validForMs, session } = grant;
    if (forcedAt !== undefined && since <= forcedAt) return false;
    if (session) return now < session.validUntil;
    return validForMs > 0 && since + validForMs - now >= validForMs / 2;
  }
}

/** Returns an entry that hears what another one hears, perhaps as something else. */
export const relayed = (
  entry: QueueEntry,
  seen: (outcome: QueueEntryOutcome) => QueueEntryOutcome = (outcome) => outcome,
): StoreQueueEntry => {
  const relay = new StoreQueueEntry((uncertain) => entry.leave(uncertain));
  entry.listen({
    notified: (outcome) => relay.notify(seen(outcome)),
    missedNotification: () => relay.mayHaveMissed(),
  });
  return relay;
};
