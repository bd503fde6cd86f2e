/** How much a clock of a node may run ahead: a hundredth of the lease, and 2 ms for what is counted in whole ones. */
const DRIFT_PART = 0.01;
const DRIFT_MS = 2;

/** What is left of a lease that every node counts by a clock of its own. */
export const withoutDrift = (ms: number): number => Math.floor(ms * (1 - DRIFT_PART)) - DRIFT_MS;

/** What at least so many have: the largest number that so many of these reach. */
export const reachedBy = (count: number, numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => b - a)[count - 1]!;
