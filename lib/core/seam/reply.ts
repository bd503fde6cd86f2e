import type { LockKind } from '../kinds/kinds.js';
import type { Grant } from './grant.js';
import type { Place } from './place.js';

/** As what somebody has a key: the kind of lock, of this library or of another client of the store. */
export type HeldAs = LockKind;

/** Somebody else has it. */
export interface Taken {
  readonly status: 'taken';
  /**
   * As what, where that is another kind of lock than the one that was asked for, and the store can tell. Both halves of a
   * read-write lock are one kind in this.
   */
  readonly heldAs?: HeldAs;
  /** Look again after this many ms at the latest: what is left of the hold in the way. May be `Infinity`. */
  readonly retryInMs: number;
  /** See `Grant.limitBefore`. */
  readonly limitBefore?: number;
}

/** How a claim stands in the store's line. */
export interface Standing {
  /** About how many stand before it. */
  readonly position: number;
  /** Look again after this many ms at the latest, if it is among the first: what is left of the hold in the way. */
  readonly retryInMs: number;
  /** See {@link Taken.heldAs}. */
  readonly heldAs?: HeldAs;
}

/** Somebody else has it, and the store remembers that this owner waits: it says when it is its turn. */
export interface Queued extends Standing {
  readonly status: 'queued';
  readonly place: Place;
}

/** One answer for each claim of a `keepPlaces`, in the order of the claims. */
export type PlaceReply =
  | ({ readonly status: 'queued' } & Standing)
  /** Its turn came: the hold is the claim's. */
  | { readonly status: 'held' }
  /** It is not there any more, and never comes back: who still wants the key asks as another owner. */
  | { readonly status: 'gone' }
  /** This place could not be asked about; the others are not affected by it. */
  | { readonly status: 'failed'; readonly cause: unknown };

export type AcquireReply = Grant | Taken | Queued;

/** One answer for each claim of an `extendMany`, in the order of the claims. */
export type ExtendReply =
  | { readonly status: 'held'; /** What is left, in ms, from before the send. */ readonly validForMs: number }
  /** `entered`: see {@link ReleaseReply}. */
  | { readonly status: 'lost'; readonly entered?: boolean }
  /** This key could not be asked; the others are not affected by it. */
  | { readonly status: 'failed'; readonly cause: unknown };

export interface ReleaseReply {
  /** True when the hold was still the claim's and is gone now. */
  readonly wasHeld: boolean;
  /**
   * Another client's lock of another kind was in the hold as well, which that client's protocol allows: the claim's owner had
   * it no longer alone, so it is lost. Only its part has ended.
   */
  readonly entered?: boolean;
  /**
   * True when somebody outside this process is waiting for the key. The core asks it of kinds with several owners only:
   * who waits for one with one owner asks behind the release at once, and the store, if it keeps a line,
   * has the order. So it has for readers, and then this is false.
   */
  readonly othersWaiting: boolean;
}

/** One who holds a key. */
export interface Holder {
  readonly owner: string;
  /** How often the owner has entered; always 1 for holds of this library. */
  readonly count: number;
  /** What is left of the lease in whole ms; Infinity for a foreign hold without an end. */
  readonly remainingMs: number;
}

/** The permits of a key at this moment. */
export interface PermitState {
  /** How many there are. */
  readonly permits: number;
  /** How many of them are free. */
  readonly free: number;
  /** The holders of the others: the first 100. */
  readonly holders: readonly Holder[];
}

/** What the store knows about a key at this moment. */
export interface KeyState {
  readonly kind: HeldAs;
  /** Who holds it: at least one. */
  readonly holders: readonly Holder[];
  /** The owners that wait, in order. Empty when the store keeps no line of waiters. */
  readonly waiting: readonly string[];
}
