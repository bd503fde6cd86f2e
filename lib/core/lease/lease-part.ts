import type { SiblingQueue } from '../nesting/sibling-queue.js';
import type { Hold, HoldState } from './hold.js';
import type { LossReason } from '../report/lock-events.js';

/**
 * One key of a lease: its own hold, or an entry into the part of an outer lease. A nested part ends with its own lease,
 * with the hold, or when the outer part is released by hand, whichever comes first.
 */
export class LeasePart {
  /** Queue of the calls nested in this lease; created by the first of them. */
  siblings: SiblingQueue | undefined;
  /** How a nested part, or one of several that share a hold, ended, if it ended before the hold. */
  private over: 'released' | 'lost' | undefined;
  private left = false;
  private outsideListeners: Set<() => void> | undefined;

  constructor(
    /** Key as the caller wrote it. */
    readonly key: string,
    readonly finalKey: string,
    readonly hold: Hold,
    /** Part of the outer lease that holds the key: the end of this part only leaves that one. */
    readonly outer: LeasePart | undefined,
    /** Label of its call. */
    readonly label: string,
  ) {}

  get state(): HoldState {
    return this.over ?? this.hold.state;
  }

  /** Returns whether it is nested in the other part. */
  isInside(other: LeasePart): boolean {
    let { outer } = this;
    while (outer && outer !== other) ({ outer } = outer);
    return outer !== undefined;
  }

  get lossReason(): LossReason | 'outer-release' {
    return this.hold.lossReason ?? 'outer-release';
  }

  /**
   * Ends the part, but not the hold. Waiting nested callers must acquire from the store; the running one is notified of
   * the loss. Returns the result for the part's own holder.
   */
  end(): 'released' | 'lost' {
    const how = this.state === 'lost' ? 'lost' : 'released';
    this.endNested();
    if (!this.outer || this.left) return how;
    this.left = true;
    this.over ??= how;
    this.outer.siblings?.leave();
    return how;
  }

  /** Ends the part while other leases still have the hold. Returns false when this one was the last. */
  leavesToOthers(): boolean {
    const { state } = this;
    if (!this.hold.dropLease()) return false;
    this.over = state === 'lost' ? 'lost' : 'released';
    return true;
  }

  /** Ends the parts nested in this one. A loop, since nesting may be deeper than the stack. */
  private endNested(): void {
    for (let nested = this.siblings?.close(); nested?.endFromOutside();) nested = nested.siblings?.close();
  }

  /**
   * Ends this nested part because the outer part was released. Its work goes on, and leaves when it ends. Returns false if
   * it has ended already.
   */
  endFromOutside(): boolean {
    if (this.over !== undefined || this.hold.state === 'lost') return false;
    this.over = 'lost';
    for (const listener of [...(this.outsideListeners ?? [])]) listener();
    return true;
  }

  /** Registers a listener for the loss; returns a function that removes it. */
  onLoss(listener: () => void): () => void {
    const stop = this.hold.onLoss(listener);
    if (!this.outer) return stop;
    const listeners = (this.outsideListeners ??= new Set());
    listeners.add(listener);
    return () => {
      stop();
      listeners.delete(listener);
    };
  }
}
