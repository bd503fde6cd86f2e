/** Allowance for the drift of a node's clock: a hundredth of the lease, and 2 ms for rounding to whole ms. */
const DRIFT_PART = 0.01;
const DRIFT_MS = 2;

/** Returns what certainly remains of a lease that every node measures with its own clock, in ms. */
export const withoutDrift = (ms: number): number => Math.floor(ms * (1 - DRIFT_PART)) - DRIFT_MS;

/** Returns the lease to request from every node so that this much remains without drift, in ms. */
export const withDrift = (ms: number): number => Math.ceil((ms + DRIFT_MS + 1) / (1 - DRIFT_PART));

/** Returns the largest number that at least `count` of these numbers reach. */
export const reachedBy = (count: number, numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => b - a)[count - 1]!;
