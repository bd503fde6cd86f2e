import type { ExclusiveClaim } from '../../../../core/seam/claim.js';
import type { RedisLink } from '../redis-link.js';
import { TurnEar } from './turn-ear.js';

/** How many ears there are before those are closed that nobody needs. */
const FIRST_SWEEP_AT = 64;

export interface EarsListener {
  heard(text: string, ear: TurnEar): void;
  opened(ear: TurnEar): void;
  refused(ear: TurnEar): void;
  /** Returns the claims that wait. */
  waiting(): Iterable<ExclusiveClaim>;
}

/**
 * The grant subscriptions of one process: one, or in a cluster one for each slot with waiters, because the server of a
 * channel's slot announces its messages.
 */
export class TurnEars {
  private readonly ears = new Map<string, TurnEar>();
  private sweepAt = FIRST_SWEEP_AT;

  constructor(
    private readonly link: RedisLink,
    private readonly listener: EarsListener,
  ) {}

  /** Returns the grant subscription of a claim, if there is one. */
  of(claim: ExclusiveClaim): TurnEar | undefined {
    return this.ears.get(this.channelOf(claim));
  }

  /** Returns the grant subscription of a claim, and opens it. */
  open(claim: ExclusiveClaim): TurnEar {
    const channel = this.channelOf(claim);
    let ear = this.ears.get(channel);
    if (!ear) {
      if (this.ears.size >= this.sweepAt) this.sweep();
      ear = this.make(channel, this.link.keys.name(claim.finalKey));
      this.ears.set(channel, ear);
    }
    ear.open();
    return ear;
  }

  private make(channel: string, name: string): TurnEar {
    const { link, listener } = this;
    const ear: TurnEar = new TurnEar(link, channel, name, {
      heard: (text) => listener.heard(text, ear),
      opened: () => listener.opened(ear),
      refused: () => listener.refused(ear),
    });
    return ear;
  }

  private channelOf({ owner, finalKey }: ExclusiveClaim): string {
    const { keys, topology } = this.link;
    return keys.turnChannel(owner, topology.hasSlots ? keys.name(finalKey) : undefined);
  }

  private sweep(): void {
    const needed = new Set<string>();
    for (const claim of this.listener.waiting()) needed.add(this.channelOf(claim));
    for (const [channel, ear] of this.ears) {
      if (needed.has(channel)) continue;
      ear.close();
      this.ears.delete(channel);
    }
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.ears.size * 2);
  }
}
