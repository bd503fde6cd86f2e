import { Poller } from '../wait/poller.js';
import { LockConfigurationError, LockKeyError } from '../errors/lock.errors.js';
import { closedError, storeError, storeKeyError } from '../errors/error-messages.js';
import type { LockKind } from '../kinds/kinds.js';
import type { Opening } from './opening.js';
import { Undo, type Orphan } from '../lease/undo.js';
import type { Runtime } from '../util/runtime.js';
import { mayLastMs, type Claim } from '../seam/claim.js';
import type { KindStore, LockStore, ReleaseOptions, Watch, WatchListener } from '../seam/lock-store.js';
import type { AcquireReply, ExtendReply, QueueEntryReply, ReleaseReply } from '../seam/reply.js';
import { traitsOf, type KindTraits } from '../seam/kind-traits.js';
import { isNotExecuted, StoreFailure } from '../seam/store-failure.js';
import type { LockCall } from '../settings/lock-call.js';
import type { ShowKey } from '../util/shown-key.js';
import type { StoreHealth } from './store-health.js';

/** Of a store that cannot notify: waiters retry. */
const NO_WATCH: Watch = { live: false, close: () => undefined };

/**
 * Sends requests about holds and queue entries to the store of their kind, classifies failures, and releases what has
 * no owner any more. Callers send other requests by themselves: inspect and forced unlock through `request`, semaphores and
 * latches through `ObjectContext`.
 */
export class StoreRequests {
  readonly undo: Undo;
  private readonly pollers = new Map<LockKind, Poller>();

  constructor(
    private readonly store: LockStore,
    private readonly runtime: Runtime,
    private readonly health: StoreHealth,
    private readonly opening: Pick<Opening, 'begin'>,
    private readonly shown: ShowKey,
    private readonly isClosed: () => boolean = () => false,
  ) {
    this.undo = new Undo((claim, how) => this.kind(claim.kind).release(claim, how), runtime);
  }

  /** Throws `LockConfigurationError` when the store does not support the kind. */
  checkKind(kind: LockKind): void {
    this.kind(kind);
  }

  /** Throws `LockConfigurationError` when the store cannot do what a call wants. */
  checkCall({ kind, permits, holdAtLeastMs, oncePerMs }: LockCall): void {
    this.kind(kind);
    if (kind === 'permit' && permits === undefined && !this.store.permits)
      throw new LockConfigurationError(
        `${this.store.name} keeps no number of permits: pass permits in each decorator or call.`,
      );
    const keeps = holdAtLeastMs > 0 || oncePerMs !== undefined;
    if (keeps && this.store.lease.type === 'session') {
      throw new LockConfigurationError(
        `${oncePerMs === undefined ? 'holdAtLeastMs' : 'oncePerMs'}: ${this.store.name} ends a lock with the session of its process, and cannot keep it for a time. ` +
          'Leave the option out.',
      );
    }
  }

  /** Throws `LockConfigurationError` when the store cannot promise a hold for that long. */
  checkExtension(ms: number): void {
    const { lease, name } = this.store;
    if (lease.type !== 'session' || ms <= lease.timeoutMs) return;
    throw new LockConfigurationError(
      `extend(${ms}): ${name} ends locks ${lease.timeoutMs} ms after their process has gone; longer is not possible.`,
    );
  }

  /** Opens the store, if that has not begun yet. */
  begin(): void {
    this.opening.begin();
  }

  acquire(claim: Claim): Promise<AcquireReply> {
    this.begin();
    return this.kind(claim.kind).acquire(claim);
  }

  /** See `KindStore.unsent`. */
  unsent(claim: Claim): StoreFailure | undefined {
    return this.kind(claim.kind).unsent?.(claim);
  }

  /** Releases a hold. Never throws synchronously: a store that does so has failed. */
  release(claim: Claim, how?: ReleaseOptions): Promise<ReleaseReply> {
    try {
      return Promise.resolve(this.kind(claim.kind).release(claim, how));
    } catch (failure) {
      return Promise.reject(failure);
    }
  }

  /** Renews claims of one kind; returns one reply for each. */
  extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]> {
    return this.kind(claims[0]!.kind).extendMany(claims);
  }

  /** Throws `LockConfigurationError` when the store cannot downgrade holds of the kind. */
  checkDowngrade(kind: LockKind): void {
    if (this.kind(kind).downgrade) return;
    throw new LockConfigurationError(`${this.store.name} cannot downgrade locks of the kind "${kind}".`);
  }

  /** Downgrades a hold; see `KindStore.downgrade`. Call {@link checkDowngrade} before. */
  downgrade(claim: Claim): Promise<ExtendReply> {
    return this.kind(claim.kind).downgrade!(claim);
  }

  /**
   * Refreshes queue entries of one kind; returns one reply for each. Undefined if the store's entries need no refresh.
   */
  refreshEntries(claims: readonly Claim[]): Promise<readonly QueueEntryReply[]> | undefined {
    return this.kind(claims[0]!.kind).refreshEntries?.(claims);
  }

  /**
   * Resolves when the store replies about a key, also if it rejects just that key. Rejects when the store fails for a
   * temporary reason.
   */
  async look(finalKey: string): Promise<undefined> {
    try {
      await this.inspect(finalKey);
    } catch (failure) {
      if (failure instanceof StoreFailure && failure.passing) throw failure;
    }
    return undefined;
  }

  /** Resolves when the store replies about a key, and rejects with any failure. */
  async inspect(finalKey: string): Promise<void> {
    await this.store.inspect(finalKey);
  }

  watch(claim: Claim, listener: WatchListener): Watch {
    const kind = this.kind(claim.kind);
    const poller = this.pollerOf(claim.kind, kind);
    return poller?.watch(claim, listener) ?? kind.watch?.(claim, listener) ?? NO_WATCH;
  }

  private pollerOf(name: LockKind, kind: KindStore): Poller | undefined {
    const { poll } = this.traits(name);
    if (!poll) return undefined;
    const poller = this.pollers.get(name) ?? new Poller(kind, poll, this.runtime);
    this.pollers.set(name, poller);
    return poller;
  }

  /** Returns how the store keeps a kind. */
  traits(kind: LockKind): KindTraits {
    return traitsOf(kind, this.store.kinds[kind]?.traits);
  }

  /** Sends another request, about a key as the caller wrote it, and reports a failure of the store. */
  async request<T>(key: string | undefined, doing: string, request: () => Promise<T>): Promise<T> {
    const startedAt = this.runtime.now();
    this.begin();
    try {
      const reply = await request();
      this.replied();
      return reply;
    } catch (failure) {
      // Not a failure of the store: it rejects the key or the request by its name.
      if (failure instanceof LockConfigurationError) throw failure;
      const shown = key === undefined ? undefined : this.shown(key);
      if (failure instanceof LockKeyError)
        throw shown === undefined ? failure : storeKeyError(shown, failure);
      if (this.isClosed() && isNotExecuted(failure)) throw closedError(shown, doing);
      this.failed(failure);
      throw storeError(shown, failure, doing, this.runtime.now() - startedAt);
    }
  }

  replied(): void {
    this.health.works();
  }

  failed(failure: unknown): void {
    this.health.failed(failure);
  }

  /** Returns until when the store may keep what was requested now. A hold of a session ends only with that, or by a release. */
  mayLastUntil(claim: Claim): number {
    return this.store.lease.type === 'session' ? Infinity : this.runtime.now() + mayLastMs(claim);
  }

  /** Handles a failed acquire: what it may have acquired has no owner, and is released. */
  acquireFailed(claim: Claim, failure: unknown): void {
    this.failed(failure);
    if (failure instanceof StoreFailure && failure.outcome === 'unknown') {
      this.undo.begin({ claim, uncertain: failure, until: this.mayLastUntil(claim) });
    }
  }

  /** Handles a failed release: the hold is still there, or may be. */
  releaseFailed(hold: Orphan, failure: unknown): void {
    this.failed(failure);
    if (failure instanceof StoreFailure) this.undo.begin(hold);
  }

  private kind(name: LockKind): KindStore {
    const kind = this.store.kinds[name];
    if (kind) return kind;
    throw new LockConfigurationError(`${this.store.name} cannot keep locks of the kind "${name}".`);
  }
}
