import type { LockKind } from '../kinds/kinds.js';
import type { Claim, ClaimOf } from './claim.js';
import type { LatchStore, SemaphoreStore } from './object-stores.js';
import type {
  AcquireReply,
  ExtendReply,
  KeyState,
  PermitState,
  QueueEntryReply,
  ReleaseReply,
} from './reply.js';
import type { StoreFailure } from './store-failure.js';
import type { Watch, WatchListener } from './watch.js';

export type { Watch, WatchListener } from './watch.js';

/** Options of {@link KindStore.release}. */
export interface ReleaseOptions {
  /**
   * Failure that left this owner's acquire with an unknown outcome. The reply has to be final: if the acquire may still
   * arrive, the store throws, and the core retries the release.
   */
  readonly uncertain?: StoreFailure | undefined;
  /**
   * Time in ms after which the hold ends by itself: the store sets its time to live to exactly this, longer or shorter
   * than before. Waiters get a wake-up, because they expect another end.
   */
  readonly keepForMs?: number | undefined;
  /** With `keepForMs`: change only the time to live. The owner keeps the hold, and renews and releases it later. */
  readonly continues?: boolean;
}

/**
 * Operations of a store for one kind of lock.
 *
 * Every method that sends a request settles within the store's command time-out, with a reply or a
 * {@link StoreFailure}. Requests of one store instance are sent in the order of the calls; a request that has to be
 * repeated is sent later.
 */
export interface KindStore<C extends Claim = Claim> {
  /**
   * Acquires the key for the claim's owner, or returns that it is taken, or enqueues the claim. If the owner already
   * has the hold, the store sets its time to live to `leaseMs` and returns a new, larger token. So a repeated request
   * acquires nothing twice.
   */
  acquire(claim: C): Promise<AcquireReply>;

  /**
   * Extends each hold to `leaseMs`. Never shortens a hold, and never creates one. A failure for one key does not affect
   * the others. Throws only when no hold could be requested.
   */
  extendMany(claims: readonly C[]): Promise<readonly ExtendReply[]>;

  /**
   * Refreshes the queue entries of claims, and returns their state. Never creates an entry, and never acquires a hold.
   * Only for stores whose entries expire. Throws only when no entry could be requested.
   */
  refreshEntries?(claims: readonly C[]): Promise<readonly QueueEntryReply[]>;

  /**
   * Downgrades the owner's hold to the kind that its own downgrades to (see `Kind.downgradesTo`), valid for at least
   * `leaseMs`. Wakes the waiters that may now share it. No other owner gets the key in between. Idempotent. Afterwards
   * claims of either kind renew and release the hold. Only for kinds that can be downgraded.
   */
  downgrade?(claim: C): Promise<ExtendReply>;

  /**
   * Makes every later token of the key larger than `token`, if the claim's owner has the key now. Resolves with whether
   * it has. For a store that is one node of several; see `QuorumStore`.
   */
  commit?(claim: C, token: number): Promise<boolean>;

  /** Ends the owner's hold if it exists, and wakes waiters. Idempotent. */
  release(claim: C, how?: ReleaseOptions): Promise<ReleaseReply>;

  /**
   * Calls `listener` whenever the claim's key may have become free: at each release elsewhere, and when the
   * subscription becomes live, also again. It calls it, too, when an interruption lasts: the store may have failed, and
   * waiters have to find out.
   */
  watch(claim: C, listener: WatchListener): Watch;
}

/** Operations of a store by kind, for the kinds that it supports. */
export type KindStores = { readonly [K in LockKind]?: KindStore<ClaimOf<K>> };

/** Operations of a store that supports all kinds: the compiler names a missing one. */
export type AllKindStores = Required<KindStores>;

/** Times of a server, as the server reports them. */
export interface ServerTimes {
  /** Minimum uptime in ms; holds that are older may have been lost in a restart. */
  readonly upForMs: number;
  /** Wall clock, in ms since 1970. */
  readonly clockMs: number;
  /** Name of this run of the server: two stores with the same one are on one server. */
  readonly serverId?: string | undefined;
  /**
   * Number of tokens for each ms of the wall clock, if tokens come from it. A token further ahead shows that the clock
   * was set back, or that a larger token was known already. Left out if tokens do not depend on the clock.
   */
  readonly tokensPerMs?: number | undefined;
}

/** Interface between the core and a store of holds. An implementation imports only `core`. */
export interface LockStore {
  /** Supported kinds. The core rejects any other kind by its name. */
  readonly kinds: KindStores;

  /** Operations on counting semaphores. Without it the core rejects them. */
  readonly semaphores?: SemaphoreStore;

  /** Operations on countdown latches. Without it the core rejects them. */
  readonly latches?: LatchStore;

  /** Throws `LockKeyError` for a name that the store can never hold. Returns at once. */
  checkKey?(finalKey: string): void;

  /** Resolves with the holds of a key, of any kind; null when the key is free. */
  inspect(finalKey: string): Promise<KeyState | null>;

  /** Permits of a key; null when the store has no number for it. A store without this method keeps no permits. */
  permits?(finalKey: string): Promise<PermitState | null>;

  /** Ends all holds of a key, of any kind, and wakes waiters. Resolves with true when there was one. */
  forceUnlock(finalKey: string): Promise<boolean>;

  /**
   * Registers the core's listener. The store calls it when something may have ended the holds of a key, or of all keys
   * if it passes none. The core then checks them at once instead of at the next renewal. Called at most once.
   */
  onRisk?(listener: (finalKey?: string) => void): void;

  /**
   * Resolves with the uptime and the clock of the server. For a store that is one node of several; see `QuorumStore`.
   */
  serverTimes?(): Promise<ServerTimes>;

  /** Resolves when the store replies. */
  ping(): Promise<void>;

  /**
   * Resolves with warnings about a setup that endangers or slows locks, as sentences for the log. Called when the app
   * starts. Empty when all is well, or when the store cannot find out.
   *
   * @param options `noQueue`: no claim uses a wait queue here, because the store is one node of several
   * @throws {LockConfigurationError} when locks cannot work with this setup
   */
  diagnose?(options?: { readonly noQueue?: boolean }): Promise<readonly string[]>;

  /**
   * Registers the core's listener for warnings that {@link diagnose} does not return, as sentences for the log. The
   * store reports each warning once: at once if it is about options, otherwise when locks reveal it. Called at most
   * once.
   */
  onWarning?(listener: (warning: string) => void): void;

  /**
   * Tells the store that its app begins to start. Until the returned function is called, an idle connection does not
   * keep the process alive, and the store tries to connect only while `isNeeded`. The reason: an app that fails to
   * start never closes its store. Called at most once, before the first request.
   */
  startsWithApp?(isNeeded: () => boolean): () => void;

  /** Closes what the store opened, and nothing else. May be called twice. */
  close(): Promise<void>;
}
