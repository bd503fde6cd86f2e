import type { Watch, WatchListener } from './watch.js';

/*
 * Objects without a holder: what the store keeps of one is a number under the final key. Every method ends within the
 * store's own command time-out, with an answer or with a `StoreFailure`; requests of one store instance are sent in the
 * order of the calls. A value that is no such number is refused, and left as it is.
 */

/** How a store keeps counting semaphores: the number is that of the permits that are free, and may be below zero. */
export interface SemaphoreStore {
  /** Takes so many permits, all or none. True when it took them; false also where nobody has set a number. */
  take(finalKey: string, permits: number): Promise<boolean>;
  /** Sets the number and wakes waiters, unless there is one already. True when it set it. */
  set(finalKey: string, permits: number): Promise<boolean>;
  /**
   * Makes it so many more, or fewer, and wakes waiters. Where nobody has set a number there is this one then. It throws
   * when there would be more than 2,147,483,647, or fewer than so many below zero.
   */
  add(finalKey: string, permits: number): Promise<void>;
  /** How many are free; 0 where nobody has set a number. */
  free(finalKey: string): Promise<number>;
  /** Takes all that are free, and says how many that were. A number below zero becomes zero. */
  drain(finalKey: string): Promise<number>;
  /** Removes the number. True when there was one. */
  remove(finalKey: string): Promise<boolean>;
  /** As `KindStore.watch`: a hint whenever there may be more permits than before. */
  watch(finalKey: string, listener: WatchListener): Watch;
}

/** How a store keeps countdown latches: the number is what is still to be counted down. None is there at zero. */
export interface LatchStore {
  /** Sets the number, unless there is one already. True when it set it. */
  set(finalKey: string, count: number): Promise<boolean>;
  /** Makes it one less; at zero it wakes waiters. Does nothing where there is none. */
  countDown(finalKey: string): Promise<void>;
  /** What is left to be counted down; 0 where there is none. */
  count(finalKey: string): Promise<number>;
  /** Removes the number and wakes waiters, for whom the latch is open then. True when there was one. */
  remove(finalKey: string): Promise<boolean>;
  /** As `KindStore.watch`: a hint whenever the number may have become zero. */
  watch(finalKey: string, listener: WatchListener): Watch;
}
