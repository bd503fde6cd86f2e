import type { LoadResult } from '../processes/load.js';
import { median, sum } from './statistics.js';

/** What one contender came to in one round. */
export interface RoundResult {
  /** Sections for each second, in the middle one of the slices. */
  readonly rate: number;
  /** CPU time of the process for each section, in µs, in the middle one of the slices. */
  readonly cpuUs: number;
  readonly violations: number;
}

const SLICE_MS = 50;
const TURNS = 8;

/** Sections for each second. */
export const rateOf = ({ sections, elapsedMs }: LoadResult): number => (sections / elapsedMs) * 1_000;

const cpuOf = ({ sections, cpuMs }: LoadResult): number => (cpuMs / sections) * 1_000;

/**
 * Runs one round: short slices of all contenders in turn, forward and backward, so that a drift affects all of them.
 * The middle slice counts, so that slices on a busy machine do not.
 */
export const runRound = async <C>(
  contenders: readonly C[],
  pace: number,
  slice: (contender: C, forMs: number) => Promise<LoadResult>,
): Promise<readonly RoundResult[]> => {
  const slices = new Map<C, LoadResult[]>(contenders.map((contender) => [contender, []]));
  const back = [...contenders].reverse();
  for (let turn = 0; turn < TURNS * pace; turn++) {
    for (const contender of [...contenders, ...back]) {
      slices.get(contender)!.push(await slice(contender, SLICE_MS));
    }
  }
  return [...slices.values()].map((results) => ({
    rate: median(results.map(rateOf)),
    cpuUs: median(results.map(cpuOf)),
    violations: sum(results.map(({ violations }) => violations)),
  }));
};
