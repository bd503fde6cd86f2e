import { CompactingMap } from '../../../lib/core/compacting.js';
import { StoreQueueEntry, type QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';

/** The places of one process whose outcome its store has yet to tell. */
export class PlacesByOwner {
  private readonly places = new CompactingMap<string, StoreQueueEntry>();

  /** @param onEmpty called when the last of them has gone. */
  constructor(private readonly onEmpty: () => void = () => undefined) {}

  get size(): number {
    return this.places.size;
  }

  /** Makes the place of an owner, before it is asked for. `leaveQueue`: see `StoreQueueEntry`. */
  open(owner: string, leaveLine: (doubt: StoreFailure | undefined) => Promise<void>): StoreQueueEntry {
    const place = new StoreQueueEntry((doubt) => {
      this.close(owner);
      return leaveLine(doubt);
    });
    this.places.set(owner, place);
    return place;
  }

  /** There is no such place, or nothing is to come of it any more. */
  close(owner: string): void {
    if (this.places.delete(owner) && this.places.size === 0) this.onEmpty();
  }

  has(owner: string): boolean {
    return this.places.has(owner);
  }

  /** Messages may have been lost: of all places, or of these. */
  mayHaveMissed(isMeant: (owner: string) => boolean = () => true): void {
    for (const owner of [...this.places.keys()]) if (isMeant(owner)) this.places.get(owner)?.mayHaveMissed();
  }

  /** False when no such owner waits. */
  tell(owner: string, outcome: QueueEntryOutcome): boolean {
    const place = this.places.get(owner);
    if (!place) return false;
    this.close(owner);
    place.notify(outcome);
    return true;
  }
}
