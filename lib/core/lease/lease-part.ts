import type { SiblingQueue } from '../nesting/sibling-queue.js';
import type { Hold, HoldState } from './hold.js';
import type { LossReason } from '../lock-events.js';

/** Where a nested part stands: in the section of an enclosing lease on the same key. */
export interface OuterEntry {
  readonly part: LeasePart;
  leave(): void;
}

/**
 * One key of a lease: its own hold, or a place in the section of an enclosing one. A nested part ends with its own
 * lease, with the hold, or when the part around it is released by hand, whichever comes first.
 */
export class LeasePart {
  /** Where calls nested in this lease enter; made by the first of them. */
  siblings: SiblingQueue | undefined;
  /** Of a nested part: how it ended, if it did before the hold. */
  private over: 'released' | 'lost' | undefined;
  private left = false;
  /** In how many parts of the hold it is nested. */
  private readonly depth: number;
  private reported = false;
  private outsideListeners: Set<() => void> | undefined;

  constructor(
    /** As the caller wrote it. */
    readonly key: string,
    readonly finalKey: string,
    readonly hold: Hold,
    /** Set when an enclosing section holds the key; ending then only leaves the place. */
    readonly entry: OuterEntry | undefined,
  ) {
    this.depth = entry ? entry.part.depth + 1 : 0;
  }

  get state(): HoldState {
    return this.over ?? this.hold.state;
  }

  /** The event `acquired` reports the part. A nested part takes nothing in the store, and is not reported. */
  reports(): void {
    this.reported = true;
    this.hold.reports();
  }

  /** The event `released` is to report its end. False when `acquired` did not report it, or `lost` has reported its end. */
  endsReported(): boolean {
    if (!this.reported || this.hold.reported === 0) return false;
    this.reported = false;
    this.hold.endsReported(1);
    return true;
  }

  /** Whether it is nested in the other part. Parts of one hold are nested in each other, since one of them is in at a time. */
  isInside({ hold, depth }: LeasePart): boolean {
    return hold === this.hold && this.depth > depth;
  }

  /** Why it was lost, if it was. */
  get lossReason(): LossReason | 'outer-release' {
    return this.hold.lossReason ?? 'outer-release';
  }

  /**
   * Ends the part: who waits to go in has to take the key for real, and who is in has lost it. The hold itself is not
   * touched. Gives what the part's own holder is told.
   */
  end(): 'released' | 'lost' {
    const how = this.state === 'lost' ? 'lost' : 'released';
    this.siblings?.close();
    if (!this.entry || this.left) return how;
    this.left = true;
    this.over ??= how;
    this.entry.leave();
    return how;
  }

  /** Ends it where other leases have the hold still. False when this one was the last. */
  leavesToOthers(): boolean {
    const { state } = this;
    if (!this.hold.leaves()) return false;
    this.over = state === 'lost' ? 'lost' : 'released';
    return true;
  }

  /** The part around this one was released while this one was in. Its work goes on, and leaves when it ends. */
  endFromOutside(): void {
    if (this.over !== undefined || this.hold.state === 'lost') return;
    this.over = 'lost';
    this.siblings?.close();
    for (const listener of [...(this.outsideListeners ?? [])]) listener();
  }

  /** Listens for the loss; the returned function stops that. */
  onLoss(listener: () => void): () => void {
    const stop = this.hold.onLoss(listener);
    if (!this.entry) return stop;
    const listeners = (this.outsideListeners ??= new Set());
    listeners.add(listener);
    return () => {
      stop();
      listeners.delete(listener);
    };
  }
}
