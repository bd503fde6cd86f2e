import type { Lease } from '../../../lib/core/lease.js';
import type { SimProcess } from '../engine/sim-process.js';

/** A tenth of this is less than anything that matters, and more than what sums of floating point lose, in ms. */
const NOTABLE_MS = 0.01;

/** What a caller has, and what it believes about it, written into the history. */
export class LeaseWatch {
  private readonly until: number[] = [];
  private over = false;

  constructor(
    readonly id: string,
    readonly lease: Lease,
    private readonly process: SimProcess,
    /** The section it was taken in, if any. */
    readonly around: LeaseWatch | undefined,
    /** Where the watches of the process are kept. */
    private readonly open: Set<LeaseWatch>,
  ) {}

  begin(call: string): void {
    const parts = this.lease.parts.map(({ key, hold, place }) => ({
      key,
      token: hold.token ?? 0,
      sharedWith: place && this.owner(hold)?.id,
    }));
    this.process.record({ type: 'granted', call, lease: this.id, parts });
    const { signal } = this.lease;
    const announce = (): void => this.process.record({ type: 'announced', lease: this.id });
    if (signal.aborted) announce();
    else signal.addEventListener('abort', () => this.over || announce());
    this.open.add(this);
    this.look();
  }

  /** The caller gives it up. */
  end(): void {
    if (this.over) return;
    this.over = true;
    this.open.delete(this);
    this.process.record({ type: 'ended', lease: this.id });
  }

  look(): void {
    this.lease.parts.forEach(({ key, hold }, i) => {
      // Of several keys one may be lost: then the whole lease is, for its caller.
      if (hold.state !== 'held' || this.lease.signal.aborted) return;
      const until = this.process.momentOf(hold.validUntil);
      const before = this.until[i];
      if (before !== undefined && Math.abs(until - before) < NOTABLE_MS) return;
      this.until[i] = until;
      this.process.record({ type: 'believes', lease: this.id, key, until });
    });
  }

  /** The nearest enclosing lease that has the same hold. */
  private owner(hold: unknown): LeaseWatch | undefined {
    for (let watch = this.around; watch; watch = watch.around) {
      if (watch.lease.parts.some((part) => part.hold === hold)) return watch;
    }
    return undefined;
  }
}
