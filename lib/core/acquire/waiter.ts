import type { Hold } from '../lease/hold.js';
import type { Wait } from './wait.js';

/** Caller in a local queue. */
export interface Waiter {
  readonly wait: Wait;
  /** See `KeyOutage.arrive`. */
  readonly number: number;
  /**
   * Whether its time ended while the contender's request is in progress. The outcome of that decides its error: a
   * failed store must not be reported as a taken lock.
   */
  due: boolean;
  /** Whether it is a concurrent contender. It keeps its position in the queue in case that its request is rejected. */
  requesting: boolean;
  /** Lease length with which it may take over the hold of the caller before it; undefined: it may not. */
  readonly watchdogMs: number | undefined;
  admit: (passed?: Hold) => void;
  reject: (error: Error) => void;
}
