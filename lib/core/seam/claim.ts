import type { LockKind } from '../kinds/kinds.js';

/** Common fields of all claims: one owner requests one final key. */
interface BaseClaim {
  /** Prefix and key: the exact name in the store. */
  readonly finalKey: string;
  /** Unique name of one hold. It is not reused after a grant, an undo, or a release that ends the hold. */
  readonly owner: string;
  /** Time to live of the hold without renewal, in whole ms; at least 1. */
  readonly leaseMs: number;
  /** Number of fencing tokens to reserve; 0: none. The grant returns the first of them. */
  readonly tokens: number;
  /**
   * Whether tokens come from a per-key counter, which starts at 1 and never expires. Other clients of the store use the
   * same counter, if they use one. Default: false, tokens of the store's own series.
   */
  readonly perKeyCounter?: boolean;
  /**
   * Whether the caller waits when the key is taken. Only then a store with a wait queue enqueues the claim; other
   * claims cost no write.
   */
  readonly waits: boolean;
  /**
   * Whether the owner already has the hold, and `leaseMs` may be shorter than the rest of it. Waiters then get a
   * wake-up, because they expect a later end.
   */
  readonly reacquires?: boolean;
  /**
   * Until when an acquire or a renewal may be sent, on the runtime's clock: the end of the wait, or of the lease. An unsent
   * request fails then, as not executed. Default, also for a time that is over: the command time-out after the call.
   */
  readonly until?: number | undefined;
  /** Signals that withdraw an unsent acquire. */
  readonly withdrawnBy?: readonly AbortSignal[] | undefined;
}

/** Terms of a queued claim, which the store may grant between two requests of its process. */
export interface QueueEntryTerms {
  /** Time to live of the queue entry without a refresh, in ms. */
  readonly aliveMs: number;
  /** Provisional lease of such a grant, in ms: it lasts until the process has been notified and renews it. */
  readonly provisionalLeaseMs: number;
  /** Number of fencing tokens to reserve at the grant. More callers of the process may wait by then. */
  readonly tokens: number;
}

/** A claim that a store may enqueue. */
interface QueuedClaim extends BaseClaim {
  /** Terms of its queue entry, for a claim that waits. */
  readonly entryTerms?: QueueEntryTerms | undefined;
}

/** Claim of a lock with at most one owner. */
export interface ExclusiveClaim extends QueuedClaim {
  readonly kind: 'exclusive';
}

/** Claim of a lock with at most one owner, granted in the order of the requests. */
export interface FairClaim extends QueuedClaim {
  readonly kind: 'fair';
}

/** Claim of a read lock: any number of owners, while there is no writer. */
export interface ReadClaim extends QueuedClaim {
  readonly kind: 'read';
}

/** Claim of a write lock: one owner, and no readers. */
export interface WriteClaim extends QueuedClaim {
  readonly kind: 'write';
}

/** Claim of one of a number of permits. */
export interface PermitClaim extends BaseClaim {
  readonly kind: 'permit';
  /** Number of permits of the key; undefined: the number in the store applies. */
  readonly of: number | undefined;
}

/** One owner's request for one key, with what its kind of lock needs. */
export type Claim = ExclusiveClaim | FairClaim | PermitClaim | ReadClaim | WriteClaim;

/** Returns the terms of the claim's queue entry; undefined for a claim that cannot be queued. */
export const queueEntryTermsOf = (claim: Claim): QueueEntryTerms | undefined =>
  claim.kind === 'permit' ? undefined : claim.entryTerms;

/**
 * Returns how long the store may keep the hold after a request, in ms, including the time in the wait queue. A fair
 * entry behind a Java thread may live longer. No process refreshes such an entry, so it expires like that of a crashed
 * process.
 */
export const mayLastMs = (claim: Claim): number => {
  const terms = queueEntryTermsOf(claim);
  return terms ? terms.aliveMs + Math.max(terms.provisionalLeaseMs, claim.leaseMs) : claim.leaseMs;
};

/** Returns the claim with another time to live of its queue entry. */
export const livingFor = <C extends Claim>(claim: C, aliveMs: number): C => {
  const terms = queueEntryTermsOf(claim);
  return terms ? { ...claim, entryTerms: { ...terms, aliveMs } } : claim;
};

export type ClaimOf<K extends LockKind> = Extract<Claim, { readonly kind: K }>;
