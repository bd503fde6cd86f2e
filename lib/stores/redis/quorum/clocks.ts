/** Maximum distance of a node's clock from the median of all, in ms. Fencing tokens begin with that clock. */
const MAX_APART_MS = 1_000;

/** Clocks that are known less exactly propose no token, in ms. So the way of a request takes 100 ms at most. */
export const MAX_UNCERTAIN_MS = 50;

/** Allowance of a proposed token for a request that takes longer than the last look, and for drift since then, in ms. */
export const MARGIN_MS = 20;

/** Maximum distance of a proposed token from the latest clock, in ms. */
const MAX_LEAD_MS = 2 * MAX_UNCERTAIN_MS + MARGIN_MS;

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

/** Returns by how many ms a token is too far ahead of the median of all clocks; undefined when it is not. */
export const leadOff = (aheadMs: number, all: readonly ClockSeen[]): number | undefined => {
  const off = clockOff({ aheadMs, uncertainMs: MAX_LEAD_MS }, all);
  return off !== undefined && off > 0 ? off : undefined;
};
