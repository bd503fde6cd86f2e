import type { LockKind } from '../kinds/kinds.js';
import type { Runtime } from '../util/runtime.js';
import type { Claim, ClaimOf } from './claim.js';
import type { KindTraits } from './kind-traits.js';
import type { LeaseModel } from './lease-model.js';
import type { ListReply, ListRequest } from './listing.js';
import type { LatchStore, SemaphoreStore } from './object-stores.js';
import type { ProcessNotes } from './process-notes.js';
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
  readonly continues?: boolean | undefined;
  /** Until when it may be sent, on the runtime's clock; see `Claim.until`. The end of the lease that it ends. */
  readonly until?: number | undefined;
}

/**
 * Operations of a store for one kind of lock.
 *
 * Every request settles within the store's command time-out from its sending, with a reply or a {@link StoreFailure}. A
 * store that queues requests sends renewals first, then releases, then acquires. An unsent request waits until the time of
 * its claim, and can be withdrawn; see `Claim.until` and `Claim.withdrawnBy`. A release withdraws an unsent acquire of its
 * owner.
 *
 * Requests about one key are executed in the order of the calls, whatever their owner. A batch counts as one request for
 * each of its keys. A request that has to be repeated is sent behind the ones that were made meanwhile, unless the store
 * queues them.
 */
export interface KindStore<C extends Claim = Claim> {
  /** Where the kind differs from that of Redis. */
  readonly traits?: Partial<KindTraits>;

  /**
   * Acquires the key for the claim's owner, or returns that it is taken, or enqueues the claim. If the owner already
   * has the hold, the store sets its time to live to `leaseMs` and returns a token that is not smaller than before. So a
   * repeated request acquires nothing twice.
   */
  acquire(claim: C): Promise<AcquireReply>;

  /**
   * Returns the failure of an acquire that was not sent yet, because the process asks for more than the store serves.
   * Undefined for one that was sent. Callers whose time is over hear of it instead of waiting for the reply.
   */
  unsent?(claim: C): StoreFailure | undefined;

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

  /** Ends the owner's hold if it exists, and wakes waiters. Idempotent. */
  release(claim: C, how?: ReleaseOptions): Promise<ReleaseReply>;

  /**
   * Calls `listener` whenever the claim's key may have become free: at each release elsewhere, and each time the
   * subscription becomes live. The store also calls it when an interruption lasts: it may have failed, and waiters have
   * to find out. A store without this method is asked at intervals, or waiters retry each second.
   */
  watch?(claim: C, listener: WatchListener): Watch;

  /**
   * Returns for each claim in how many ms its key may be free: 0 for "try now", `Infinity` for a hold without an end.
   * Reads only. For a store with `traits.poll`. While it fails, waiters retry each second.
   */
  peekMany?(claims: readonly C[]): Promise<readonly number[]>;
}

/** Operations of a store by kind, for the kinds that it supports. */
export type KindStores = { readonly [K in LockKind]?: KindStore<ClaimOf<K>> };

/** Operations of a store that supports all kinds: the compiler names a missing one. */
export type AllKindStores = Required<KindStores>;

/** Interface between the core and a store of holds. An implementation imports only `core`. */
export interface LockStore {
  /** Name for messages and the log, as users know it, like "PostgreSQL". */
  readonly name: string;

  /**
   * Where the store keeps its locks, without credentials: the same text in each process that uses the same locks.
   * `withLocks` acquires equal keys of several stores in the order of these texts. Default: none.
   */
  readonly place?: string;

  /** What ends holds. Its type never changes. `timeoutMs` may change in {@link open}: a server may grant another one. */
  readonly lease: LeaseModel;

  /** Time in ms within which each request settles, from its sending. */
  readonly commandTimeoutMs: number;

  /** Supported kinds. The core rejects any other kind by its name. */
  readonly kinds: KindStores;

  /** Whether it counts the tokens of each key from 1, for claims with `perKeyCounter`. Default: false. */
  readonly hasCounters?: boolean;

  /** Operations on counting semaphores. Without it the core rejects them. */
  readonly semaphores?: SemaphoreStore;

  /** Operations on countdown latches. Without it the core rejects them. */
  readonly latches?: LatchStore;

  /**
   * Notes of processes, so that others see which process holds a key. Its methods may throw `LockConfigurationError` when
   * a right lacks, with the rule. Without it no holder is shown.
   */
  readonly processes?: ProcessNotes;

  /**
   * Prepares the store for a lock service, and checks whether locks can work. Called when the app starts, or else with
   * the first request. Requests may follow at once; each waits for what it needs, within its time-out. A service whose
   * store could not be reached opens it again at its next request. Each service that shares the store opens it.
   *
   * @throws {LockConfigurationError} when locks cannot work with this setup
   * @throws {StoreFailure} when the store cannot be reached: the app starts, and requests fail until it can be
   */
  open(host: StoreHost): Promise<void>;

  /**
   * Throws `LockKeyError` for a name that the store can never hold. Returns at once. The text continues `The key "…" cannot be
   * used: `; it does not repeat the key, which may have to be redacted.
   */
  checkKey?(finalKey: string): void;

  /** Resolves with the holds of a key, of any kind; null when the key is free, also while callers wait for it. */
  inspect(finalKey: string): Promise<KeyState | null>;

  /**
   * Resolves with one page of the keys that have a holder, or callers in a wait queue, for people. The work for one page is
   * bounded. While nothing changes, the pages together have each key once. A store without this method cannot list its locks.
   *
   * @throws {LockConfigurationError} for a cursor that the store did not return, and when it cannot list in this setup
   */
  list?(request: ListRequest): Promise<ListReply>;

  /** Permits of a key; null when the store has no number for it. A store without this method keeps no permits. */
  permits?(finalKey: string): Promise<PermitState | null>;

  /** Ends all holds of a key, of any kind, and wakes waiters. Resolves with true when there was one. */
  forceUnlock(finalKey: string): Promise<boolean>;

  /**
   * Asks the holders of a key, in any process, to release it: see `StoreHost.revocationRequested`. Resolves with true
   * when there was one. A store without this method cannot ask.
   */
  revoke?(finalKey: string): Promise<boolean>;

  /** Resolves when the store replies. */
  ping(): Promise<void>;

  /**
   * Resolves with warnings about a setup that endangers or slows locks, as sentences for the log. Empty when all is well,
   * or when the store cannot find out.
   *
   * @throws {LockConfigurationError} when locks cannot work with this setup
   */
  diagnose?(): Promise<readonly string[]>;

  /**
   * Sends the releases that wait, for one command time-out at most, and fails other unsent requests. Then closes what the
   * store opened, and nothing else. Holds that are still there end by their lease or their session's
   * time-out: their sections may still run. May be called twice, and by each service that shares the store.
   */
  close(): Promise<void>;
}

/**
 * The start of the app that uses a store. Until it is over, an idle connection must not keep the process alive, and the
 * store tries to connect only while it is needed. The reason: an app that fails to start never closes its store.
 */
export interface AppStart {
  /** Whether a caller waits for the store now. */
  readonly isNeeded: boolean;
  /** Calls the listener when the app has started. */
  whenOver(listener: () => void): void;
}

/** A lock service, as its store sees it. */
export interface StoreHost {
  /** The only clock, timers and ids of the store. */
  readonly runtime: Runtime;
  /** Beginning of the names of all its keys: its option of this name. */
  readonly keyPrefix: string;
  /** Time to live of renewed holds, in ms. A store with sessions requests this as its session time-out. */
  readonly watchdogMs: number;
  /** The start of the app; undefined when the app has started, and for a store that is passed as an option. */
  readonly starting?: AppStart | undefined;
  /** Logs a fact about the store that its users should know, as a sentence. The store gives each one once. */
  log(sentence: string): void;
  /** Logs a warning about the setup of the store, as a sentence. The store gives each warning once. */
  warn(sentence: string): void;
  /**
   * Reports that something may have ended the holds of a key, or of all keys if none is passed. The core then checks
   * them at once instead of at the next renewal.
   */
  atRisk(finalKey?: string): void;
  /** Reports that another client asks an owner to release its hold. The hold stays valid. */
  revocationRequested(finalKey: string, owner: string): void;
}
