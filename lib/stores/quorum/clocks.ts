/** How far the clock of a node may be from those of the others, in ms. Fencing tokens begin with it. */
const MOST_APART_MS = 1_000;

/** What is known of the clock of one node: how far it is ahead of this process's, and how exactly that is known. */
export interface ClockSeen {
  readonly aheadMs: number;
  readonly uncertainMs: number;
}

/** By how much a clock is certainly off from the middle of all, in ms; undefined when that is not too much. */
export const clockOff = (own: ClockSeen, all: readonly ClockSeen[]): number | undefined => {
  if (all.length < 3) return undefined;
  const sorted = all.map(({ aheadMs }) => aheadMs).sort((a, b) => a - b);
  const middle = sorted.length / 2;
  const median = (sorted[Math.ceil(middle) - 1]! + sorted[Math.floor(middle)]!) / 2;
  const off = own.aheadMs - median;
  return Math.abs(off) - own.uncertainMs > MOST_APART_MS ? off : undefined;
};
