import type { LockKind } from '../kinds/kinds.js';
import type { Claim, ClaimOf } from './claim.js';
import type { LatchStore, SemaphoreStore } from './object-stores.js';
import type { AcquireReply, ExtendReply, KeyState, PermitState, PlaceReply, ReleaseReply } from './reply.js';
import type { StoreFailure } from './store-failure.js';
import type { Watch, WatchListener } from './watch.js';

export type { Watch, WatchListener } from './watch.js';

/** How a hold is released; see {@link KindStore.release}. */
export interface ReleaseOptions {
  /**
   * The failure that left this owner's acquire unknown. With it the answer is final: when the store cannot exclude
   * that the acquire still arrives, it throws, and the core asks again.
   */
  readonly doubt?: StoreFailure | undefined;
  /**
   * The hold is to stay for so many more ms, and then to end by itself: its time to live becomes just that, be it more
   * or less than what is left. Waiters get a hint all the same, since they were told another time.
   */
  readonly keepForMs?: number | undefined;
  /**
   * With `keepForMs`: only the time to live changes. The owner has the hold on, and renews and releases it later.
   */
  readonly continues?: boolean;
}

/**
 * How a store keeps one kind of lock.
 *
 * Every method that talks to the store ends within the store's own command time-out: with an answer, or with
 * a {@link StoreFailure}. Requests of one store instance are sent in the order of the calls; one that has to be sent once more comes later.
 */
export interface KindStore<C extends Claim = Claim> {
  /**
   * Takes the key for the claim's owner, or says who is in the way, or puts the claim in line. When the owner has it
   * already, the hold is re-armed to `leaseMs` and a new, larger token is returned: asking twice takes nothing twice.
   */
  acquire(claim: C): Promise<AcquireReply>;

  /**
   * Lengthens each hold to `leaseMs`, never shortens one, never creates one. One bad key harms no other.
   * Throws only when nothing at all could be asked.
   */
  extendMany(claims: readonly C[]): Promise<readonly ExtendReply[]>;

  /**
   * Keeps the places of claims in the store's line alive, and tells how they stand. Never makes a place, never takes a
   * hold. Only of stores whose places end when nobody keeps them. Throws only when nothing at all could be asked.
   */
  keepPlaces?(claims: readonly C[]): Promise<readonly PlaceReply[]>;

  /**
   * Turns the owner's hold into one of the kind that its own becomes (see `Kind.becomes`), valid for `leaseMs` at least,
   * and wakes waiters that go in beside that. Nobody else has the key in between. Done already, it answers the same
   * again. From then on claims of either kind name that hold, for whoever renews or releases it. Only of kinds that have
   * one to become.
   */
  downgrade?(claim: C): Promise<ExtendReply>;

  /**
   * Makes every token that is given for the key from now on larger than this one, if the claim's owner has the key at this
   * moment: true when it has. For a store that is one of several, which give the key together: see `QuorumStore`.
   */
  commit?(claim: C, token: number): Promise<boolean>;

  /** Ends the owner's hold if it is there, and wakes waiters. Idempotent: what is not there any more is not ended again. */
  release(claim: C, how?: ReleaseOptions): Promise<ReleaseReply>;

  /**
   * Gives a hint whenever the claim's key may have become free: on each release elsewhere, when the subscription
   * becomes live, when it stays interrupted (the store may have failed: waiters have to find out), and each time
   * it becomes live again.
   */
  watch(claim: C, listener: WatchListener): Watch;
}

/** How a store keeps the kinds that it has. */
export type KindStores = { readonly [K in LockKind]?: KindStore<ClaimOf<K>> };

/** The same for a store that has all kinds: the compiler names the one that is missing. */
export type AllKindStores = Required<KindStores>;

/** What a server says of its own times. */
export interface ServerTimes {
  /** For how long it has been up at least, in ms: what it was told before that it may have forgotten. */
  readonly upForMs: number;
  /** Its wall clock, in ms since 1970. */
  readonly clockMs: number;
  /** Names this run of the server: two stores with the same one are on one server. */
  readonly serverId?: string | undefined;
  /**
   * Its fencing tokens are of its wall clock, so many for each ms: a token that is further ahead tells that the clock has been
   * set, or that a larger one was known already. Left out where tokens have nothing to do with the clock.
   */
  readonly tokensPerMs?: number | undefined;
}

/** The seam between the core and a place that keeps holds. An implementation imports only `core`. */
export interface LockStore {
  /** The kinds this store can keep. Asking for another one is refused by name. */
  readonly kinds: KindStores;

  /** How it keeps counting semaphores. A store without it refuses them by name. */
  readonly semaphores?: SemaphoreStore;

  /** How it keeps countdown latches. A store without it refuses them by name. */
  readonly latches?: LatchStore;

  /** Throws `LockKeyError` when the store can never keep a hold of this name; returns at once. */
  checkKey?(finalKey: string): void;

  /** What is there, of whatever kind; null when nobody holds the key. */
  inspect(finalKey: string): Promise<KeyState | null>;

  /** The permits of a key; null when the store has no number for it. A store without it keeps no permits. */
  permits?(finalKey: string): Promise<PermitState | null>;

  /** Ends whatever holds are there, of whatever kind, and wakes waiters. True when there was one. */
  forceUnlock(finalKey: string): Promise<boolean>;

  /**
   * Something happened to the holds of a key (of all, without one) that may have ended them, as far as the store was
   * told. The core then looks at once, instead of at the next renewal. At most one listener, given once.
   */
  onRisk?(listener: (finalKey?: string) => void): void;

  /** Since when the server is up, and what its clock says. For a store that is one of several: see `QuorumStore`. */
  serverTimes?(): Promise<ServerTimes>;

  /** Resolves when the store answers. */
  ping(): Promise<void>;

  /**
   * What endangers or slows locks in the way the store is set up, as sentences for the log; asked when the app starts. Empty
   * when all is well, or when it cannot be found out.
   */
  diagnose?(): Promise<readonly string[]>;

  /**
   * What {@link diagnose} does not tell, as sentences for the log, each once: at once what the options show, later what is
   * found out only while locks are taken. At most one listener, given once.
   */
  onWarning?(listener: (warning: string) => void): void;

  /**
   * The app that made the store begins to start. Until the returned function is called, an idle connection does not keep the
   * process alive, and attempts to connect go on only while `isNeeded`. An app that fails to start never closes its store. At
   * most once, before the first request.
   */
  startsWithApp?(isNeeded: () => boolean): () => void;

  /** Ends what the store opened, and nothing else. Safe to call twice. */
  close(): Promise<void>;
}
