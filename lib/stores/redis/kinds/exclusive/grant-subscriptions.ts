import type { ExclusiveClaim } from '../../../../core/seam/claim.js';
import type { StoreFailure } from '../../../../core/seam/store-failure.js';
import type { RedisLink } from '../redis-link.js';
import { GrantSubscription, type GrantListener } from './grant-subscription.js';

/** Number of subscriptions at which unused ones are closed for the first time. */
const FIRST_SWEEP_AT = 64;

export interface GrantsListener {
  received(text: string, subscription: GrantSubscription): void;
  opened(subscription: GrantSubscription): void;
  refused(failure: StoreFailure, subscription: GrantSubscription): void;
  /** Returns the claims that wait. */
  waiting(): Iterable<ExclusiveClaim>;
}

/**
 * The grant subscriptions of one process: one, or in a cluster one for each slot with waiters, because the server of a
 * channel's slot announces its messages.
 */
export class GrantSubscriptions {
  private readonly subscriptions = new Map<string, GrantSubscription>();
  /** Process of the last owner, with a colon, and its channel: mostly all owners have the same. */
  private lastProcess = '';
  private lastChannel = '';
  // A subscription that is closed and made again has another opening: its messages may come from another server.
  private readonly openings = { count: 0 };
  private sweepAt = FIRST_SWEEP_AT;

  constructor(
    private readonly link: RedisLink,
    private readonly listener: GrantsListener,
  ) {}

  /** Returns the grant subscription of a claim, if there is one. */
  of(claim: ExclusiveClaim): GrantSubscription | undefined {
    return this.subscriptions.size > 0 ? this.subscriptions.get(this.channelOf(claim)) : undefined;
  }

  /** Returns the grant subscription of a claim, and opens it. */
  open(claim: ExclusiveClaim): GrantSubscription {
    const channel = this.channelOf(claim);
    let subscription = this.subscriptions.get(channel);
    if (!subscription) {
      if (this.subscriptions.size >= this.sweepAt) this.sweep();
      subscription = this.make(channel, this.link.keys.name(claim.finalKey));
      this.subscriptions.set(channel, subscription);
    }
    subscription.open();
    return subscription;
  }

  private make(channel: string, name: string): GrantSubscription {
    const { link, listener } = this;
    const own: GrantListener = {
      received: (text) => listener.received(text, subscription),
      opened: () => listener.opened(subscription),
      refused: (failure) => listener.refused(failure, subscription),
    };
    const subscription: GrantSubscription = new GrantSubscription(link, channel, name, own, this.openings);
    return subscription;
  }

  private channelOf({ owner, finalKey }: ExclusiveClaim): string {
    const { keys, topology } = this.link;
    if (topology.hasSlots) return keys.grantChannel(owner, keys.ofLock(finalKey).slotTag);
    const process = owner.slice(0, owner.lastIndexOf(':') + 1);
    if (process === '' || process !== this.lastProcess) {
      this.lastProcess = process;
      this.lastChannel = keys.grantChannel(owner);
    }
    return this.lastChannel;
  }

  private sweep(): void {
    const needed = new Set<string>();
    for (const claim of this.listener.waiting()) needed.add(this.channelOf(claim));
    for (const [channel, subscription] of this.subscriptions) {
      if (needed.has(channel)) continue;
      subscription.close();
      this.subscriptions.delete(channel);
    }
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.subscriptions.size * 2);
  }
}
