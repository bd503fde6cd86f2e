import type { Hold } from '../lease/hold.js';
import type { Wait } from '../wait/wait.js';

/** Caller in a local queue. */
export interface Waiter {
  readonly wait: Wait;
  /** See `KeyOutage.arrive`. */
  readonly number: number;
  /** Whether it is a concurrent contender. It keeps its position in the queue in case that its request is rejected. */
  requesting: boolean;
  /** Lease length with which it may take over the hold of the caller before it; undefined: it may not. */
  readonly watchdogMs: number | undefined;
  admit: (passed?: Hold) => void;
  reject: (error: Error) => void;
}
