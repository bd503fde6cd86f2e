/**
 * What the core asks of a store, and what it gets back. Plain data: nothing in here knows Redis or Nest.
 */

/** The kinds of lock there are. Later kinds are added here, and the compiler lists what they still need. */
export type LockKind = 'exclusive';

/** What the core has to know about a kind. It asks these, never the kind's name. */
export interface KindTraits {
  /** At most one owner at a time, so one local queue with one contender per process is enough. */
  readonly exclusive: boolean;
  /** A hold may pass from one local lease to the next without asking the store. */
  readonly handOver: boolean;
  /** The store keeps its own order of waiters; the core must not reorder or sit out. */
  readonly ordered: boolean;
  /** A grant carries a fencing token. */
  readonly fenced: boolean;
  /** Repeating an acquire with the same owner cannot take twice. */
  readonly idempotent: boolean;
}

export const KIND_TRAITS: Readonly<Record<LockKind, KindTraits>> = {
  exclusive: { exclusive: true, handOver: true, ordered: false, fenced: true, idempotent: true },
};

/** One owner asking for one key. */
export interface Claim {
  readonly kind: LockKind;
  /** The final key: prefix and key, exactly as the store shall name it. */
  readonly key: string;
  /** Names one hold. Used once, and never again after a release or undo of it was sent. */
  readonly owner: string;
  /** How long the hold lives without renewal, in ms: a whole number, at least 1. */
  readonly leaseMs: number;
  /** How many fencing tokens to reserve; 0 takes none. The grant returns the first of them. */
  readonly fenceBlock: number;
  /**
   * The owner has the hold already, and `leaseMs` may be shorter than what is left of it. Then those who wait for the
   * key get a hint: they were told to look again only when it would have ended.
   */
  readonly rearms?: boolean;
}

/** The store gave the hold to the claim's owner. */
export interface Grant {
  readonly status: 'granted';
  /** How long the hold is valid, in ms, counted from before the request was sent. */
  readonly validForMs: number;
  /** Greater than every token given for this key before; undefined when none was asked for. */
  readonly token?: number;
}

/** Somebody else has it. */
export interface Taken {
  readonly status: 'taken';
  /** Look again after this many ms at the latest: what is left of the hold in the way. */
  readonly retryInMs: number;
}

export type AcquireReply = Grant | Taken;

/** One answer for each claim of an `extendMany`, in the order of the claims. */
export type ExtendReply =
  | { readonly status: 'held'; /** What is left, in ms, from before the send. */ readonly validForMs: number }
  | { readonly status: 'lost' }
  /** This key could not be asked; the others are not affected by it. */
  | { readonly status: 'failed'; readonly cause: unknown };

export interface ReleaseReply {
  /** True when the hold was still the claim's and is gone now. */
  readonly wasHeld: boolean;
  /** True when somebody outside this process is waiting for the key. */
  readonly othersWaiting: boolean;
}

/** What the store knows about a key at this moment. */
export interface HoldInfo {
  readonly owner: string;
  /** How often the owner has entered; always 1 for holds of this library. */
  readonly count: number;
  /** What is left of the lease in ms; Infinity for a foreign hold without an end. */
  readonly remainingMs: number;
}
