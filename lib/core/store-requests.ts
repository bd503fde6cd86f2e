import { LockConfigurationError } from './errors/lock.errors.js';
import { storeError } from './errors/error-messages.js';
import type { LockKind } from './kinds/kinds.js';
import { Undo, type Orphan } from './lease/undo.js';
import type { Runtime } from './runtime.js';
import { mayLastMs, type Claim } from './seam/claim.js';
import type { KindStore, LockStore, ReleaseOptions, Watch, WatchListener } from './seam/lock-store.js';
import type { AcquireReply, ExtendReply, PlaceReply, ReleaseReply } from './seam/reply.js';
import { StoreFailure } from './seam/store-failure.js';
import type { StoreHealth } from './store-health.js';

/**
 * Requests about holds and places: finds the kind's part of the store, judges failures, and undoes what has no owner any
 * more. Requests about anything else (inspect, forced unlock, semaphores, latches) are sent where they are made, by `ask`.
 */
export class StoreRequests {
  readonly undo: Undo;

  constructor(
    private readonly store: LockStore,
    private readonly runtime: Runtime,
    private readonly health: StoreHealth,
  ) {
    this.undo = new Undo((claim, how) => this.kind(claim.kind).release(claim, how), runtime);
  }

  /** Throws `LockConfigurationError` when the store does not have the kind. */
  checkKind(kind: LockKind): void {
    this.kind(kind);
  }

  acquire(claim: Claim): Promise<AcquireReply> {
    return this.kind(claim.kind).acquire(claim);
  }

  /** Never throws at once: a store that does is one that fails. */
  release(claim: Claim, how?: ReleaseOptions): Promise<ReleaseReply> {
    try {
      return Promise.resolve(this.kind(claim.kind).release(claim, how));
    } catch (failure) {
      return Promise.reject(failure);
    }
  }

  /** For claims of one kind; one answer for each. */
  extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    return this.kind(claims[0]!.kind).extendMany(claims);
  }

  /** Throws `LockConfigurationError` when the store cannot downgrade holds of the kind. */
  checkDowngrade(kind: LockKind): void {
    if (this.kind(kind).downgrade) return;
    throw new LockConfigurationError(`This store cannot downgrade locks of the kind "${kind}".`);
  }

  /** See `KindStore.downgrade`; to be checked before. */
  downgrade(claim: Claim): Promise<ExtendReply> {
    return this.kind(claim.kind).downgrade!(claim);
  }

  /** For claims of one kind; one answer for each. Where places need not be kept, all that is known is that they stand. */
  keepPlaces(claims: readonly Claim[]): Promise<readonly PlaceReply[]> | undefined {
    return this.kind(claims[0]!.kind).keepPlaces?.(claims);
  }

  /** Resolves when the store replies about a key, also where it refuses just that; rejects when it fails for a passing reason. */
  async look(finalKey: string): Promise<undefined> {
    try {
      await this.store.inspect(finalKey);
    } catch (failure) {
      if (failure instanceof StoreFailure && failure.passing) throw failure;
    }
    return undefined;
  }

  watch(claim: Claim, listener: WatchListener): Watch {
    return this.kind(claim.kind).watch(claim, listener);
  }

  /** Asks the store for something that is no hold, and says so when it fails. */
  async ask<T>(key: string | undefined, doing: string, request: () => Promise<T>): Promise<T> {
    const startedAt = this.runtime.now();
    try {
      const reply = await request();
      this.answered();
      return reply;
    } catch (failure) {
      this.failed(failure);
      throw storeError(key, failure, doing, this.runtime.now() - startedAt);
    }
  }

  answered(): void {
    this.health.works();
  }

  failed(failure: unknown): void {
    this.health.failed(failure);
  }

  /** An acquire failed. What it may have taken has no owner, and is undone. */
  acquireFailed(claim: Claim, failure: unknown): void {
    this.failed(failure);
    if (failure instanceof StoreFailure && failure.outcome === 'unknown') {
      this.undo.begin({ claim, doubt: failure, until: this.runtime.now() + mayLastMs(claim) });
    }
  }

  /** A release failed. The hold is still there, or may be. */
  releaseFailed(hold: Orphan, failure: unknown): void {
    this.failed(failure);
    if (failure instanceof StoreFailure) this.undo.begin(hold);
  }

  private kind(name: LockKind): KindStore {
    const kind = this.store.kinds[name];
    if (kind) return kind;
    throw new LockConfigurationError(`This store cannot keep locks of the kind "${name}".`);
  }
}
