import type { LockKind } from '../../core/kinds/kinds.js';
import { livingFor, placeTermsOf, type Claim, type ClaimOf } from '../../core/seam/claim.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../core/seam/lock-store.js';
import { PlaceInLine } from '../../core/seam/place.js';
import type { AcquireReply, ExtendReply, PlaceReply, ReleaseReply } from '../../core/seam/reply.js';
import { later } from './later.js';
import type { MemorySpace } from './memory-space.js';

/** What the kinds of one memory store share. */
export interface MemoryHost {
  readonly space: MemorySpace;
  /** Does the work at once, so that requests take effect in the order of the calls; a throw becomes a rejection. */
  ask<T>(work: () => T): Promise<T>;
  watch(finalKey: string, listener: WatchListener): Watch;
}

/** In memory nobody dies alone: a place lives until it is left. */
const forEver = <C extends Claim>(claim: C): C => livingFor(claim, Infinity);

/** One kind of lock in memory. */
export class MemoryKind<K extends LockKind> implements KindStore<ClaimOf<K>> {
  /** The claims of this store that stand in line, by owner, and what ends that they hear of their turn. */
  private readonly waiting = new Map<
    string,
    { readonly claim: ClaimOf<K>; readonly stopHearing: () => void }
  >();

  constructor(
    private readonly kind: K,
    private readonly host: MemoryHost,
  ) {}

  acquire(claim: ClaimOf<K>): Promise<AcquireReply> {
    return this.host.ask(() => this.asked(claim));
  }

  keepPlaces(claims: readonly ClaimOf<K>[]): Promise<readonly PlaceReply[]> {
    return this.host.ask(() => claims.map((claim) => this.kept(claim)));
  }

  extendMany(claims: readonly ClaimOf<K>[]): Promise<readonly ExtendReply[]> {
    return this.host.ask(() => claims.map((claim) => this.host.space.of(this.kind).extend(claim)));
  }

  downgrade(claim: ClaimOf<K>): Promise<ExtendReply> {
    return this.host.ask(() => this.host.space.of(this.kind).downgrade?.(claim) ?? { status: 'lost' });
  }

  commit(claim: ClaimOf<K>, token: number): Promise<boolean> {
    return this.host.ask(() => this.host.space.of(this.kind).commit?.(claim, token) ?? false);
  }

  // A doubt cannot arise here: nothing is ever under way, so the first answer is final.
  release(claim: ClaimOf<K>, { keepForMs }: ReleaseOptions = {}): Promise<ReleaseReply> {
    this.stopHearing(claim.owner);
    return this.host.ask(() => ({
      wasHeld: this.host.space.of(this.kind).release(claim, keepForMs),
      // Of those who stand in line the space has the order.
      othersWaiting:
        !this.host.space.of(this.kind).keep && this.host.space.othersWatch(claim.finalKey, this.host),
    }));
  }

  private asked(claim: ClaimOf<K>): AcquireReply {
    const { space } = this.host;
    const holds = space.toTake(this.kind, claim.finalKey);
    if (!claim.waits || !placeTermsOf(claim)) return holds.acquire(claim) as AcquireReply;
    const { owner } = claim;
    const place = new PlaceInLine(() => this.release(claim).then(() => undefined));
    // Told later, never inside the call that causes it, as it would be over a network.
    const stopHearing = space.hear(owner, (grant) => {
      this.stopHearing(owner);
      later(() => place.tell(grant));
    });
    this.waiting.set(owner, { claim, stopHearing });
    try {
      const reply = holds.acquire(forEver(claim));
      if (reply.status === 'queued') return { ...reply, place };
      this.stopHearing(owner);
      return reply;
    } catch (failure) {
      // Its caller hears that nothing was done, so it does not stand in line either.
      this.stopHearing(owner);
      holds.release(claim);
      throw failure;
    }
  }

  /** Gives up all places: nobody is there any more for whom the key would be taken. */
  leaveAll(): void {
    const left = [...this.waiting.values()];
    // All of them first, so that none of them is granted when another one goes.
    for (const { stopHearing } of left) stopHearing();
    this.waiting.clear();
    for (const { claim } of left) this.host.space.of(this.kind).release(claim);
  }

  private kept(claim: ClaimOf<K>): PlaceReply {
    try {
      const reply = this.host.space.of(this.kind).keep?.(forEver(claim)) ?? { status: 'gone' };
      if (reply.status !== 'queued') this.stopHearing(claim.owner);
      return reply;
    } catch (cause) {
      return { status: 'failed', cause };
    }
  }

  private stopHearing(owner: string): void {
    this.waiting.get(owner)?.stopHearing();
    this.waiting.delete(owner);
  }

  watch({ finalKey }: ClaimOf<K>, listener: WatchListener): Watch {
    return this.host.watch(finalKey, listener);
  }
}
