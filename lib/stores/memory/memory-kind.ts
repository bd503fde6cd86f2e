import type { LockKind } from '../../core/kinds/kinds.js';
import { queueEntryTermsOf, type ClaimOf } from '../../core/seam/claim.js';
import type { KindStore, ReleaseOptions, Watch, WatchListener } from '../../core/seam/lock-store.js';
import { StoreQueueEntry } from '../../core/seam/store-queue-entry.js';
import type { AcquireReply, ExtendReply, QueueEntryReply, ReleaseReply } from '../../core/seam/reply.js';
import { later } from '../../core/util/later.js';
import type { MemorySpace } from './memory-space.js';

/** Shared parts of the kinds of one memory store. */
export interface MemoryHost {
  readonly space: MemorySpace;
  /** Runs the work at once, so that requests take effect in the order of the calls. A throw becomes a rejection. */
  request<T>(work: () => T): Promise<T>;
  watch(finalKey: string, listener: WatchListener): Watch;
}

export class MemoryKind<K extends LockKind> implements KindStore<ClaimOf<K>> {
  /** The queued claims of this store, by owner, and how to end their notifications. */
  private readonly waiting = new Map<
    string,
    { readonly claim: ClaimOf<K>; readonly stopListening: () => void }
  >();

  constructor(
    private readonly kind: K,
    private readonly host: MemoryHost,
  ) {}

  acquire(claim: ClaimOf<K>): Promise<AcquireReply> {
    return this.host.request(() => this.requested(claim));
  }

  refreshEntries(claims: readonly ClaimOf<K>[]): Promise<readonly QueueEntryReply[]> {
    return this.host.request(() => claims.map((claim) => this.kept(claim)));
  }

  extendMany(claims: readonly ClaimOf<K>[]): Promise<readonly ExtendReply[]> {
    return this.host.request(() => claims.map((claim) => this.host.space.of(this.kind).extend(claim)));
  }

  downgrade(claim: ClaimOf<K>): Promise<ExtendReply> {
    return this.host.request(() => this.host.space.of(this.kind).downgrade?.(claim) ?? { status: 'lost' });
  }

  commit(claim: ClaimOf<K>, token: number): Promise<boolean> {
    return this.host.request(() => this.host.space.of(this.kind).commit?.(claim, token) ?? false);
  }

  // Nothing is ever under way in memory, so no acquire is uncertain and the first reply is final.
  release(claim: ClaimOf<K>, { keepForMs }: ReleaseOptions = {}): Promise<ReleaseReply> {
    this.stopListening(claim.owner);
    return this.host.request(() => ({
      wasHeld: this.host.space.of(this.kind).release(claim, keepForMs),
      // For kinds with a wait queue the space keeps the order.
      othersWaiting:
        !this.host.space.of(this.kind).keep && this.host.space.othersWatch(claim.finalKey, this.host),
    }));
  }

  private requested(claim: ClaimOf<K>): AcquireReply {
    const { space } = this.host;
    const holds = space.toTake(this.kind, claim.finalKey);
    if (!claim.waits || !queueEntryTermsOf(claim)) return holds.acquire(claim) as AcquireReply;
    const { owner } = claim;
    const entry = new StoreQueueEntry(() => this.release(claim).then(() => undefined));
    // Notify later, never inside the call that causes it, as over a network.
    const stopListening = space.onGrant(owner, (grant) => {
      this.stopListening(owner);
      later(() => entry.notify(grant));
    });
    this.waiting.set(owner, { claim, stopListening });
    try {
      const reply = holds.acquire(claim);
      if (reply.status === 'queued') return { ...reply, entry };
      this.stopListening(owner);
      return reply;
    } catch (failure) {
      // The caller gets the reply that nothing was done, so it must not stay in the queue either.
      this.stopListening(owner);
      holds.release(claim);
      throw failure;
    }
  }

  /** Removes all queue entries of this store, because no caller is left to receive a grant. */
  leaveAll(): void {
    const left = [...this.waiting.values()];
    // End all notifications first, so that no entry gets a grant when another one is removed.
    for (const { stopListening } of left) stopListening();
    this.waiting.clear();
    for (const { claim } of left) this.host.space.of(this.kind).release(claim);
  }

  private kept(claim: ClaimOf<K>): QueueEntryReply {
    try {
      const reply = this.host.space.of(this.kind).keep?.(claim) ?? { status: 'gone' };
      if (reply.status !== 'queued') this.stopListening(claim.owner);
      return reply;
    } catch (cause) {
      return { status: 'failed', cause };
    }
  }

  private stopListening(owner: string): void {
    this.waiting.get(owner)?.stopListening();
    this.waiting.delete(owner);
  }

  watch({ finalKey }: ClaimOf<K>, listener: WatchListener): Watch {
    return this.host.watch(finalKey, listener);
  }
}
