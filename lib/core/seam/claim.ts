import type { LockKind } from '../kinds/kinds.js';

/** What every claim has: one owner asking for one final key. */
interface BaseClaim {
  /** Prefix and key, exactly as the store shall name it. */
  readonly finalKey: string;
  /** Names one hold. Never used again after a grant, or after a release (that does not continue) or undo of it was sent. */
  readonly owner: string;
  /** How long the hold lives without renewal, in ms: a whole number, at least 1. */
  readonly leaseMs: number;
  /** How many fencing tokens to reserve; 0 takes none. The grant returns the first of them. */
  readonly tokens: number;
  /**
   * Its tokens are the next ones of a counter that the key has for itself, from 1 on, and that never ends: the one that
   * other clients of the store count on, where there are some. Else they are of the store's own series.
   */
  readonly counted?: boolean;
  /**
   * Whether its caller waits when the key is taken. A store that keeps a line of waiters puts only those into it, and
   * a caller who does not wait costs it no write.
   */
  readonly waits: boolean;
  /** The store is one of several that have to agree: nobody stands in a line of it, and it gives a key to nobody else. */
  readonly unlined?: boolean;
  /**
   * The owner has the hold already, and `leaseMs` may be shorter than what is left of it. Then those who wait for the
   * key get a hint: they were told to look again only when it would have ended.
   */
  readonly rearms?: boolean;
}

/** What a store has to know about a claim that it puts in line, since it may grant it while nobody asks. */
export interface PlaceTerms {
  /** For how long its place lives without being kept, in ms. */
  readonly aliveMs: number;
  /** How long the hold lives that it is granted then, in ms: until its process has heard of it, and renews it. */
  readonly firstLeaseMs: number;
  /** How many fencing tokens to reserve then: by that time more callers of the process may wait than now. */
  readonly tokens: number;
}

/** A claim that a store may put in line. */
interface LinedClaim extends BaseClaim {
  /** When it waits: how it stands in a line, if the store keeps one. */
  readonly place?: PlaceTerms | undefined;
}

/** At most one owner at a time. */
export interface ExclusiveClaim extends LinedClaim {
  readonly kind: 'exclusive';
}

/** At most one owner at a time, in the order in which they came. */
export interface FairClaim extends LinedClaim {
  readonly kind: 'fair';
}

/** Any number of owners at a time, while none writes. */
export interface ReadClaim extends LinedClaim {
  readonly kind: 'read';
}

/** At most one owner at a time, and none that reads beside it. */
export interface WriteClaim extends LinedClaim {
  readonly kind: 'write';
}

/** One of a number of permits; each claim takes one. */
export interface PermitClaim extends BaseClaim {
  readonly kind: 'permit';
  /** How many owners there may be at once; undefined leaves that to the number that the store has. */
  readonly of: number | undefined;
}

/** One owner asking for one key, with what its kind of lock needs to know beside that. */
export type Claim = ExclusiveClaim | FairClaim | PermitClaim | ReadClaim | WriteClaim;

/** How the claim stands in a line, if it may. */
export const placeTermsOf = (claim: Claim): PlaceTerms | undefined =>
  claim.kind === 'permit' ? undefined : claim.place;

/**
 * For how long the store may have the hold at most once it was asked for it, in ms: the claim may stand in line first. A
 * place of a fair lock behind a thread of Java may live longer: nobody asks for it any more, and it counts until its time is
 * over, as that of a process that has crashed.
 */
export const mayLastMs = (claim: Claim): number => {
  const terms = placeTermsOf(claim);
  return terms ? terms.aliveMs + Math.max(terms.firstLeaseMs, claim.leaseMs) : claim.leaseMs;
};

/** The same claim, with a place that lives for so long. */
export const livingFor = <C extends Claim>(claim: C, aliveMs: number): C => {
  const terms = placeTermsOf(claim);
  return terms ? { ...claim, place: { ...terms, aliveMs } } : claim;
};

/** The claims of one kind. */
export type ClaimOf<K extends LockKind> = Extract<Claim, { readonly kind: K }>;
