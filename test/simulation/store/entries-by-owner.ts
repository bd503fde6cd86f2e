import { CompactingMap } from '../../../lib/core/compacting.js';
import { StoreQueueEntry, type QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';

/** The places of one process whose outcome its store has yet to tell. */
export class EntriesByOwner {
  private readonly entries = new CompactingMap<string, StoreQueueEntry>();

  /** @param onEmpty called when the last of them has gone. */
  constructor(private readonly onEmpty: () => void = () => undefined) {}

  get size(): number {
    return this.entries.size;
  }

  /** Makes the place of an owner, before it is asked for. `leaveQueue`: see `StoreQueueEntry`. */
  open(owner: string, leaveQueue: (uncertain: StoreFailure | undefined) => Promise<void>): StoreQueueEntry {
    const entry = new StoreQueueEntry((uncertain) => {
      this.close(owner);
      return leaveQueue(uncertain);
    });
    this.entries.set(owner, entry);
    return entry;
  }

  /** There is no such place, or nothing is to come of it any more. */
  close(owner: string): void {
    if (this.entries.delete(owner) && this.entries.size === 0) this.onEmpty();
  }

  has(owner: string): boolean {
    return this.entries.has(owner);
  }

  /** Messages may have been lost: of all places, or of these. */
  mayHaveMissed(isMeant: (owner: string) => boolean = () => true): void {
    for (const owner of [...this.entries.keys()])
      if (isMeant(owner)) this.entries.get(owner)?.mayHaveMissed();
  }

  /** False when no such owner waits. */
  notify(owner: string, outcome: QueueEntryOutcome): boolean {
    const entry = this.entries.get(owner);
    if (!entry) return false;
    this.close(owner);
    entry.notify(outcome);
    return true;
  }
}
