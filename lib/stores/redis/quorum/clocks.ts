/** Maximum distance of a node's clock from the median of all, in ms. Fencing tokens begin with that clock. */
const MAX_APART_MS = 1_000;

/** A node's clock: its distance from this process's clock, and the uncertainty of that. */
export interface ClockSeen {
  readonly aheadMs: number;
  readonly uncertainMs: number;
}

/** Returns by how many ms a clock is off from the median of all; undefined while it is not certainly too far off. */
export const clockOff = (own: ClockSeen, all: readonly ClockSeen[]): number | undefined => {
  if (all.length < 3) return undefined;
  const sorted = all.map(({ aheadMs }) => aheadMs).sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
  const off = own.aheadMs - median;
  return Math.abs(off) - own.uncertainMs > MAX_APART_MS ? off : undefined;
};
