import { kindOf, type LockKind } from '../kinds/kinds.js';

/** How often the core asks a store about keys that callers wait for, in ms. Each pause varies by a quarter. */
export interface PollTraits {
  /** First pause, and the pause after a change. Each further pause is longer by a third. */
  readonly minMs: number;
  /** Longest pause. */
  readonly maxMs: number;
  /** Longest pause while the watch of the store is live. */
  readonly liveMaxMs: number;
}

/** How a store keeps one kind of lock, where stores differ. */
export interface KindTraits {
  /** Whether grants have fencing tokens. */
  readonly fenced: boolean;
  /**
   * Whether each caller has its own entry in the store's wait queue, and sends its requests as the same owner when it is
   * notified. Otherwise the callers of a process share one entry, if there is a wait queue, and wait in the local queue.
   */
  readonly eachQueued: boolean;
  /**
   * Whether a hold may be handed off from one local lease to the next: as far as its tokens reach, or up to 64 times
   * when no tokens were requested. A store may only switch this off.
   */
  readonly handedOff: boolean;
  /** Set for a store that is asked at intervals. It has `peekMany`. */
  readonly poll?: PollTraits;
}

/** Returns the traits of a kind in a store. The store gives only the ones in which it differs from Redis. */
export const traitsOf = (kind: LockKind, ofStore: Partial<KindTraits> = {}): KindTraits => {
  const { fenced, eachQueued, handedOff } = kindOf(kind);
  return { fenced, eachQueued, handedOff, ...ofStore };
};
