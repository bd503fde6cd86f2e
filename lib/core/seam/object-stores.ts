import type { Watch, WatchListener } from './watch.js';

/*
 * Objects without a holder: the store keeps a number under the final key. Every method settles within the store's
 * command time-out, with a reply or a `StoreFailure`. Requests of one store instance are sent in the order of the
 * calls. Any other value under the key is rejected, and not changed.
 */

/** Operations on counting semaphores. The number is that of the free permits, and may be negative. */
export interface SemaphoreStore {
  /**
   * Takes `permits` permits, all or none. Resolves with true when it took them, with false also where no number is set.
   */
  take(finalKey: string, permits: number): Promise<boolean>;
  /** Sets the number and wakes waiters, unless a number is set. Resolves with true when it set it. */
  set(finalKey: string, permits: number): Promise<boolean>;
  /**
   * Adds `permits`, which may be negative, and wakes waiters. Where no number is set, this one is set. Throws when the
   * number would be more than 2,147,483,647, or less than -2,147,483,647.
   */
  add(finalKey: string, permits: number): Promise<void>;
  /** Resolves with the number of free permits; 0 where no number is set. */
  free(finalKey: string): Promise<number>;
  /** Takes all free permits, and resolves with their number. A negative number becomes zero. */
  drain(finalKey: string): Promise<number>;
  /** Removes the number. Resolves with true when there was one. */
  remove(finalKey: string): Promise<boolean>;
  /** Like `KindStore.watch`: calls `listener` whenever there may be more permits than before. */
  watch(finalKey: string, listener: WatchListener): Watch;
}

/** Operations on countdown latches. The number is the remaining count; at zero it does not exist. */
export interface LatchStore {
  /** Sets the count, unless one is set. Resolves with true when it set it. */
  set(finalKey: string, count: number): Promise<boolean>;
  /** Decreases the count by one; at zero it wakes waiters. Does nothing where no count is set. */
  countDown(finalKey: string): Promise<void>;
  /** Resolves with the remaining count; 0 where none is set. */
  count(finalKey: string): Promise<number>;
  /** Removes the count and wakes waiters, for which the latch is then open. Resolves with true when there was one. */
  remove(finalKey: string): Promise<boolean>;
  /** Like `KindStore.watch`: calls `listener` whenever the count may have become zero. */
  watch(finalKey: string, listener: WatchListener): Watch;
}
