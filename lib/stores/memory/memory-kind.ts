import type { LockKind } from '../../core/kinds/kinds.js';
import type { ClaimOf } from '../../core/seam/claim.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../core/seam/lock-store.js';
import type { AcquireReply, ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import type { MemorySpace } from './memory-space.js';

/** What the kinds of one memory store share. */
export interface MemoryHost {
  readonly space: MemorySpace;
  /** Does the work at once, so that requests take effect in the order of the calls; a throw becomes a rejection. */
  ask<T>(work: () => T): Promise<T>;
  watch(finalKey: string, listener: WatchListener): Watch;
}

/** One kind of lock in memory. */
export class MemoryKind<K extends LockKind> implements KindStore<ClaimOf<K>> {
  constructor(
    private readonly kind: K,
    private readonly host: MemoryHost,
  ) {}

  acquire(claim: ClaimOf<K>): Promise<AcquireReply> {
    return this.host.ask(() => this.host.space.toTake(this.kind, claim.finalKey).acquire(claim));
  }

  extendMany(claims: readonly ClaimOf<K>[]): Promise<readonly ExtendReply[]> {
    return this.host.ask(() => claims.map((claim) => this.host.space.of(this.kind).extend(claim)));
  }

  // A doubt cannot arise here: nothing is ever under way, so the first answer is final.
  release(claim: ClaimOf<K>, { keepForMs }: ReleaseOptions = {}): Promise<ReleaseReply> {
    return this.host.ask(() => ({
      wasHeld: this.host.space.of(this.kind).release(claim, keepForMs),
      othersWaiting: this.host.space.othersWatch(claim.finalKey, this.host),
    }));
  }

  watch({ finalKey }: ClaimOf<K>, listener: WatchListener): Watch {
    return this.host.watch(finalKey, listener);
  }
}
