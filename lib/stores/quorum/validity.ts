/** How much a clock of a node may run ahead: a hundredth of the lease, and 2 ms for what is counted in whole ones. */
const DRIFT_PART = 0.01;
const DRIFT_MS = 2;

/** What is left of a lease that every node counts by a clock of its own. */
export const withoutDrift = (ms: number): number => Math.floor(ms * (1 - DRIFT_PART)) - DRIFT_MS;

/** What every node has to be asked for so that so much is left without drift. */
export const withDrift = (ms: number): number => Math.ceil((ms + DRIFT_MS + 1) / (1 - DRIFT_PART));

/** What at least so many have: the largest number that so many of these reach. */
export const reachedBy = (count: number, numbers: readonly number[]): number =>
  [...numbers].sort((a, b) => b - a)[count - 1]!;
