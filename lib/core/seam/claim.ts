import type { LockKind } from '../kinds/kinds.js';

/** What every claim has: one owner asking for one final key. */
interface BaseClaim {
  /** Prefix and key, exactly as the store shall name it. */
  readonly finalKey: string;
  /** Names one hold. Never used again after a grant, or after a release or undo of it was sent. */
  readonly owner: string;
  /** How long the hold lives without renewal, in ms: a whole number, at least 1. */
  readonly leaseMs: number;
  /** How many fencing tokens to reserve; 0 takes none. The grant returns the first of them. */
  readonly tokens: number;
  /**
   * Whether its caller waits when the key is taken. A store that keeps a line of waiters puts only those into it, and
   * a caller who does not wait costs it no write.
   */
  readonly waits: boolean;
  /**
   * The owner has the hold already, and `leaseMs` may be shorter than what is left of it. Then those who wait for the
   * key get a hint: they were told to look again only when it would have ended.
   */
  readonly rearms?: boolean;
}

/** At most one owner at a time. */
export interface ExclusiveClaim extends BaseClaim {
  readonly kind: 'exclusive';
}

/** One of a number of permits; each claim takes one. */
export interface PermitClaim extends BaseClaim {
  readonly kind: 'permit';
  /** How many owners there may be at once; undefined leaves that to the number that the store has. */
  readonly of: number | undefined;
}

/** One owner asking for one key, with what its kind of lock needs to know beside that. */
export type Claim = ExclusiveClaim | PermitClaim;

/** The claims of one kind. */
export type ClaimOf<K extends LockKind> = Extract<Claim, { readonly kind: K }>;
