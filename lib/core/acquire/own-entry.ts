import type { Claim } from '../seam/claim.js';
import type { Grant } from '../seam/grant.js';
import type { QueueEntry, QueueEntryOutcome } from '../seam/queue-entry.js';
import type { QueueEntryReply, Queued, QueuePosition } from '../seam/reply.js';

/** Number of first entries that retry at the end of the blocking lease: one of them will get the key. */
const WATCHERS_OF_THE_END = 3;

/** Grant of unknown age: its process has to request the key from the store. */
const UNKNOWN_GRANT: QueueEntryOutcome = { status: 'granted', validForMs: 0 };

/**
 * Queue entry of this process for one key, as far as the process knows. The entry stays when the caller that enqueued
 * gives up and others of the process wait.
 */
export class OwnEntry {
  private sentAt: number;
  private queuePosition: QueuePosition;
  private knownOutcome: QueueEntryOutcome | undefined;
  private listener: (() => void) | undefined;

  constructor(
    readonly claim: Claim,
    /** Lease length that the entry was made for, and that the watchdog renews; undefined for a fixed lease. */
    readonly watchdogMs: number | undefined,
    private readonly entry: QueueEntry,
    queued: Queued,
    sentAt: number,
    /** Called when the outcome may have been missed. */
    onMissedNotification: () => void,
  ) {
    this.queuePosition = queued;
    this.sentAt = sentAt;
    entry.listen({ notified: (outcome) => this.notify(outcome), missedNotification: onMissedNotification });
  }

  /** When the last request with the reply "queued" was sent: a grant by message came after that. */
  get queuedAt(): number {
    return this.sentAt;
  }

  get position(): number {
    return this.queuePosition.position;
  }

  /** When to look whether the blocking hold has ended; `Infinity` behind the first entries, which look. */
  get lookAgainAt(): number {
    const { position, retryInMs } = this.queuePosition;
    return position < WATCHERS_OF_THE_END ? this.sentAt + retryInMs : Infinity;
  }

  /** What became of it, if that is known. */
  get outcome(): QueueEntryOutcome | undefined {
    return this.knownOutcome;
  }

  /** Calls the listener when the outcome is known, or {@link lookAgainAt} comes nearer; the last one counts. */
  onOutcome(listener: (() => void) | undefined): void {
    this.listener = listener;
  }

  /** The store was asked about it. An answer to an older request than the last one changes nothing. */
  replied(reply: Exclude<QueueEntryReply, { status: 'failed' }>, sentAt: number): void {
    if (reply.status === 'gone') return this.notify(reply);
    if (reply.status === 'held') return this.notify(UNKNOWN_GRANT);
    if (sentAt < this.sentAt) return;
    const before = this.lookAgainAt;
    this.sentAt = sentAt;
    this.queuePosition = reply;
    if (this.lookAgainAt < before) this.listener?.();
  }

  /**
   * Whether a section may begin on what a message said, for a lease that is renewed so. A forced unlock may have ended an
   * older grant.
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

  /** Gives it up in the store; see `QueueEntry.leave`. */
  leave(): QueueEntry {
    this.listener = undefined;
    return this.entry;
  }

  private notify(outcome: QueueEntryOutcome): void {
    if (this.knownOutcome) return;
    this.knownOutcome = outcome;
    this.listener?.();
  }
}
