import { isTaken } from '../errors/lock.errors.js';

/** Limit of all waits of a service, for tests: a wait for a lock that is never released then fails soon. */
export class WaitCap {
  /** @param maxWaitMs limit in ms; `Infinity`: none */
  constructor(private readonly maxWaitMs: number) {}

  /** Returns how long a caller may wait, in ms. */
  of(waitMs: number): number {
    return Math.min(waitMs, this.maxWaitMs);
  }

  /** Adds to the error of a capped wait that the limit ended it, and returns the error. */
  explain<E>(error: E, waitMs: number): E {
    if (waitMs > this.maxWaitMs && isTaken(error) && error.code === 'LOCK_TAKEN') {
      error.message +=
        ` The wait was capped: maxWaitMs of the testing module is ${this.maxWaitMs}, and the call has waitMs: ` +
        `${waitMs}. End the hold first, or raise maxWaitMs.`;
    }
    return error;
  }
}
