import type { LockKind } from '../kinds/kinds.js';
import type { Grant } from './grant.js';
import type { Place } from './place.js';

/** Somebody else has it. */
export interface Taken {
  readonly status: 'taken';
  /** Look again after this many ms at the latest: what is left of the hold in the way. May be `Infinity`. */
  readonly retryInMs: number;
  /** See `Grant.limitBefore`. */
  readonly limitBefore?: number;
}

/** Somebody else has it, and the store remembers that this owner waits: it says when it is its turn. */
export interface Queued {
  readonly status: 'queued';
  readonly place: Place;
}

export type AcquireReply = Grant | Taken | Queued;

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

/** One who holds a key. */
export interface Holder {
  readonly owner: string;
  /** How often the owner has entered; always 1 for holds of this library. */
  readonly count: number;
  /** What is left of the lease in ms; Infinity for a foreign hold without an end. */
  readonly remainingMs: number;
}

/** What the store knows about a key at this moment. */
export interface KeyState {
  readonly kind: LockKind;
  /** Who holds it: at least one. */
  readonly holders: readonly Holder[];
  /** The owners that wait, in order. Empty when the store keeps no line of waiters. */
  readonly waiting: readonly string[];
}
