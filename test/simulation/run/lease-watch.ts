import type { LeasePart } from '../../../lib/core/lease/lease-part.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import type { EventOf } from '../../checker/history.js';
import type { SimProcess } from '../engine/sim-process.js';

/** A tenth of this is less than anything that matters, and more than what sums of floating point lose, in ms. */
const NOTABLE_MS = 0.01;

/** What a caller has, and what it believes about it, written into the history. */
export class LeaseWatch {
  private readonly until: number[] = [];
  private over = false;
  private gone = false;

  constructor(
    readonly id: string,
    readonly lease: Lease,
    private readonly process: SimProcess,
    /** The section it was taken in, if any. */
    readonly around: LeaseWatch | undefined,
    /** Where the watches of the process are kept. */
    private readonly open: Set<LeaseWatch>,
  ) {}

  /** The caller has it; with `inSection`, because a section begins in it. */
  begin(call: string, inSection = false): void {
    const parts = this.lease.parts.map(({ key, hold, outer }) => ({
      key,
      token: hold.token ?? 0,
      // By its name where it has no token.
      ...((hold.claim.kind === 'permit' || hold.claim.kind === 'read') && { owner: hold.claim.owner }),
      sharedWith: outer && this.watchOf(outer)?.id,
    }));
    this.process.record({ type: 'granted', call, lease: this.id, parts });
    const announce = (): void => this.process.record({ type: 'announced', lease: this.id });
    // The state itself: to ask the lease would be a look at the clock, and the process may stop there.
    const lost = this.lease.parts.some(({ state }) => state === 'lost');
    if (lost) announce();
    if (inSection) this.claim('section');
    const { signal } = this.lease;
    if (signal.aborted && !lost) announce();
    else if (!lost) signal.addEventListener('abort', () => this.over || announce());
    this.open.add(this);
    this.look();
  }

  /** Somebody gives it back by hand, or its section has come to its end: from now on it is certainly over. */
  release(): void {
    this.end();
    this.gone = true;
  }

  /** Whether its section has ended, but perhaps not all that it has started: nobody can tell what it is worth. */
  get isEnding(): boolean {
    return this.over && !this.gone;
  }

  get isOver(): boolean {
    return this.over;
  }

  /** A section begins in it, or something else that takes it for valid. */
  claim(what: EventOf<'claims'>['what']): void {
    this.process.record({ type: 'claims', lease: this.id, what });
  }

  ask(): void {
    if (!this.isEnding && this.lease.remainingMs() > 0) this.claim('remainingMs');
  }

  /** The caller gives it up. */
  end(): void {
    if (this.over) return;
    this.over = true;
    this.open.delete(this);
    this.process.record({ type: 'ended', lease: this.id });
  }

  look(): void {
    this.lease.parts.forEach(({ key, hold, state }, i) => {
      // Of several keys one may be lost: then the whole lease is, for its caller.
      if (state !== 'held' || this.lease.signal.aborted) return;
      const until = this.process.momentOf(hold.validUntil);
      const before = this.until[i];
      if (before !== undefined && Math.abs(until - before) < NOTABLE_MS) return;
      this.until[i] = until;
      this.process.record({ type: 'believes', lease: this.id, key, until });
    });
  }

  /** The enclosing lease that a part belongs to. */
  private watchOf(part: LeasePart): LeaseWatch | undefined {
    for (let watch = this.around; watch; watch = watch.around) {
      if (watch.lease.parts.includes(part)) return watch;
    }
    return undefined;
  }
}
