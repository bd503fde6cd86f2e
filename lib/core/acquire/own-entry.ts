import type { Claim } from '../seam/claim.js';
import type { QueueEntry, QueueEntryOutcome } from '../seam/queue-entry.js';
import type { QueueEntryReply, Queued, QueuePosition } from '../seam/reply.js';

/** Only so many at the head of a line look when the hold in the way ends: one of them will have it. */
const WATCHERS_OF_THE_END = 3;

/** Its turn has come, but nobody knows since when: the store has to be asked. */
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
    /** The lease that the watchdog renews, as the place was taken for; undefined for a fixed lease. */
    readonly watchdogMs: number | undefined,
    private readonly entry: QueueEntry,
    queued: Queued,
    sentAt: number,
    /** Called when the store may have missed what became of it. */
    onDoubt: () => void,
  ) {
    this.queuePosition = queued;
    this.sentAt = sentAt;
    entry.listen({ notified: (outcome) => this.notify(outcome), missedNotification: onDoubt });
  }

  /** When the last request was sent that was still answered "queued": a grant by message came after that. */
  get queuedAt(): number {
    return this.sentAt;
  }

  get position(): number {
    return this.queuePosition.position;
  }

  /** When to look whether the hold in the way has ended; `Infinity` for those who leave that to others. */
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
  answered(reply: Exclude<QueueEntryReply, { status: 'failed' }>, sentAt: number): void {
    if (reply.status === 'gone') return this.notify(reply);
    if (reply.status === 'held') return this.notify(UNKNOWN_GRANT);
    if (sentAt < this.sentAt) return;
    const before = this.lookAgainAt;
    this.sentAt = sentAt;
    this.queuePosition = reply;
    if (this.lookAgainAt < before) this.listener?.();
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
