import type { Hold } from '../lease/hold.js';
import type { Wait } from './wait.js';

/** A caller in a local queue. */
export interface Waiter {
  readonly wait: Wait;
  /** See `KeyOutage.arrive`. */
  readonly number: number;
  /**
   * Its time is over while the head's request is under way. The outcome of that decides its error: a failed store must not be
   * reported as a taken lock.
   */
  due: boolean;
  /** Its question is under way beside the head's. It keeps its place in the order, for when it is refused. */
  asking: boolean;
  /** It may have the hold of the one before if the watchdog renews that with this lease; undefined: it may not. */
  readonly watchdogMs: number | undefined;
  admit: (passed?: Hold) => void;
  refuse: (error: Error) => void;
}
