import type { LockKind } from '../kinds/kinds.js';
import type { Grant } from './grant.js';
import type { QueueEntry } from './queue-entry.js';

/** Kind of a blocking lock. `foreign`: a lock of another library, of which the store knows only the end. */
export type HeldAs = LockKind | 'foreign';

/** What the store reports about a blocking hold. */
export interface Blocking {
  /**
   * Kind of the blocking lock, if it is another kind than the requested one and the store can tell. Both halves of a
   * read-write lock count as one kind here.
   */
  readonly heldAs?: HeldAs;
  /** True for a foreign lock without an end: it stays until its holder or an operator removes it. */
  readonly endless?: boolean;
}

/** Reply: another owner has the key. */
export interface Taken extends Blocking {
  readonly status: 'taken';
  /** Remaining time of the blocking hold, in ms: retry after this time at the latest. May be `Infinity`. */
  readonly retryInMs: number;
  /** See `Grant.limitBefore`. */
  readonly limitBefore?: number;
}

/** State of a claim in the wait queue. */
export interface QueuePosition extends Blocking {
  /** Approximate number of entries before it. */
  readonly position: number;
  /** Remaining time of the blocking hold, in ms. The first entries retry after this time at the latest. */
  readonly retryInMs: number;
}

/** Reply: another owner has the key, and the store has enqueued the claim. It notifies the process of a grant. */
export interface Queued extends QueuePosition {
  readonly status: 'queued';
  readonly entry: QueueEntry;
}

/** Reply for each claim of a `refreshEntries`, in the order of the claims. */
export type QueueEntryReply =
  | ({ readonly status: 'queued' } & QueuePosition)
  /** The hold has been granted to the claim. */
  | { readonly status: 'held' }
  /**
   * The entry does not exist any more, and never comes back. A caller that still wants the key requests it as another
   * owner.
   */
  | { readonly status: 'gone' }
  /** The request for this entry failed; the others are not affected. */
  | { readonly status: 'failed'; readonly cause: unknown };

export type AcquireReply = Grant | Taken | Queued;

/** Reply for each claim of an `extendMany`, in the order of the claims. */
export type ExtendReply =
  | {
      readonly status: 'held';
      /** What is left in ms, from `since`. */
      readonly validForMs: number;
      /** When the request was sent at the earliest, on the runtime's clock. Default: when it was made. */
      readonly since?: number;
    }
  /** `intruder`: see {@link ReleaseReply}. */
  | { readonly status: 'lost'; readonly intruder?: boolean }
  /** The request for this key failed; the others are not affected. */
  | { readonly status: 'failed'; readonly cause: unknown };

export interface ReleaseReply {
  /** Whether the claim had the hold until now. */
  readonly wasHeld: boolean;
  /**
   * Whether another client's lock of another kind was acquired on the same key, which that client's protocol allows.
   * The claim's owner was then not alone, so its lock is lost. Only its own hold has ended.
   */
  readonly intruder?: boolean;
  /**
   * Whether processes elsewhere wait for the key. The core reads it only for kinds with several owners. For kinds with
   * one owner the next local caller sends its request right behind the release, and a wait queue has the order. The
   * same holds for readers, so it is false for them.
   */
  readonly othersWaiting: boolean;
}

export interface Holder {
  readonly owner: string;
  /** Number of times that the owner has entered; always 1 for holds of this library. */
  readonly count: number;
  /** Remaining lease in whole ms; Infinity for a foreign hold without an end. */
  readonly remainingMs: number;
}

/** State of a key's permits in the store at this moment. */
export interface PermitState {
  /** Number of permits. */
  readonly permits: number;
  /** Number of free permits. */
  readonly free: number;
  /** Holders of the other permits: the first 100. */
  readonly holders: readonly Holder[];
}

/** State of a key in the store at this moment. */
export interface KeyState {
  readonly kind: LockKind;
  /**
   * `foreign` for a lock of another library, with `foreignHold: 'taken'`. Its `kind` is then `exclusive`, and the owner of
   * its only holder is empty, because its text is a secret of that library.
   */
  readonly heldAs?: 'foreign';
  /** The holders; at least one. Only in a list, a key for which callers wait may have none. */
  readonly holders: readonly Holder[];
  /** Queued owners, in order; in a database one name for each process. Empty for a store without a wait queue. */
  readonly waiting: readonly string[];
}

/** Returns the state of a key that has a holder; null when callers only wait for it. */
export const heldState = (state: KeyState | null): KeyState | null =>
  state && state.holders.length > 0 ? state : null;
