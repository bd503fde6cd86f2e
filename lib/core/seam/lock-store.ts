import type { AcquireReply, Claim, ExtendReply, HoldInfo, LockKind, ReleaseReply } from './claim.js';

/** Whether a failed request can have changed anything in the store. */
export type StoreOutcome = 'not-executed' | 'unknown';

// A store made by one of the two builds can be given to a module of the other.
const BRAND = Symbol.for('nest-redis-lock:store-failure');

/**
 * The only thing a store throws. It means "the store failed", never "the key is taken".
 *
 * A store may subclass it to remember how the request was sent, and gets it back in {@link LockStore.release}.
 */
export class StoreFailure extends Error {
  override readonly name: string = 'StoreFailure';

  constructor(
    message: string,
    /** `not-executed`: certainly nothing happened. `unknown`: it may have happened, or may still happen. */
    readonly outcome: StoreOutcome,
    options?: {
      cause?: unknown;
      /** The store is up and asks to be tried again shortly, for example while a slot moves. */
      transient?: boolean;
      /** Only this key cannot be used (a foreign value has its name); the store itself works. */
      keyOnly?: boolean;
    },
  ) {
    super(message, { cause: options?.cause });
    this.transient = options?.transient ?? false;
    this.keyOnly = options?.keyOnly ?? false;
    Object.defineProperty(this, BRAND, { value: true });
  }

  readonly transient: boolean;
  readonly keyOnly: boolean;

  static override [Symbol.hasInstance](value: unknown): boolean {
    // A subclass is a store's own business; only its prototype chain can tell.
    if (Object.getPrototypeOf(this) !== Error)
      return Function.prototype[Symbol.hasInstance].call(this, value);
    return typeof value === 'object' && value !== null && BRAND in value;
  }
}

/** How a hold is released; see {@link LockStore.release}. */
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
}

/** A running wake-up subscription; see {@link LockStore.watch}. */
export interface Watch {
  /** Whether hints are flowing right now. While false, the waiter must look by itself from time to time. */
  readonly live: boolean;
  close(): void;
}

/**
 * The seam between the core and a place that keeps holds. An implementation imports only `core`.
 *
 * Every method that talks to the store ends within the store's own command time-out: with an answer, or with
 * a {@link StoreFailure}. Requests of one store instance are sent in the order of the calls.
 */
export interface LockStore {
  /** The kinds this store can keep. Asking for another one is refused at start-up. */
  readonly kinds: ReadonlySet<LockKind>;

  /** Throws `LockKeyError` when the store can never keep a hold of this name; returns at once. */
  checkKey?(key: string): void;

  /**
   * Takes the key for the claim's owner, or says who is in the way. When the owner has it already, the hold is
   * re-armed to `leaseMs` and a new, larger token is returned.
   */
  acquire(claim: Claim): Promise<AcquireReply>;

  /**
   * Lengthens each hold to `leaseMs`, never shortens one, never creates one. One bad key harms no other.
   * Throws only when nothing at all could be asked.
   */
  extendMany(claims: readonly Claim[]): Promise<readonly ExtendReply[]>;

  /** Ends the owner's hold if it is there, wakes waiters, and is also how a waiter leaves. Idempotent. */
  release(claim: Claim, how?: ReleaseOptions): Promise<ReleaseReply>;

  /**
   * Calls `onHint` whenever the key may have become free: on each release elsewhere, when the subscription
   * becomes live, when it stays interrupted (the store may have failed: waiters have to find out), and each time
   * it becomes live again. Hints may be spurious. `onFailure` is called when this subscription can never
   * become live (a missing permission).
   */
  watch(kind: LockKind, key: string, onHint: () => void, onFailure: (cause: StoreFailure) => void): Watch;

  /** Who holds the key now; null when nobody does. */
  inspect(kind: LockKind, key: string): Promise<HoldInfo | null>;

  /** Ends whatever hold is there and wakes waiters. True when there was one. */
  forceUnlock(kind: LockKind, key: string): Promise<boolean>;

  /** Resolves when the store answers. */
  ping(): Promise<void>;

  /**
   * What endangers locks in the way the store is set up, as sentences for the log; asked when the app starts. Empty
   * when all is well, or when it cannot be found out.
   */
  diagnose?(): Promise<readonly string[]>;

  /** Ends what the store opened, and nothing else. Safe to call twice. */
  close(): Promise<void>;
}
