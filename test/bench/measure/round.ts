import type { LoadResult } from '../processes/load.js';
import { median, sum } from './statistics.js';

/** What one contender came to in one round. */
export interface RoundResult {
  /** Sections for each second, in the middle one of the slices. */
  readonly rate: number;
  /** CPU time of the process for each section, in µs, in the middle one of the slices. */
  readonly cpuUs: number;
  /** CPU time of the server for each section, in µs; 0 unless the slices say it. */
  readonly serverUs: number;
  /** How long each call took, in ms, ascending; empty unless the loads note it. */
  readonly callsMs: readonly number[];
  readonly violations: number;
}

/** What one slice came to. */
export type Slice = LoadResult & { readonly serverUs?: number };

const SLICE_MS = 50;
const TURNS = 8;
/** Locks after which V8 has compiled what runs in a lock. A subject that takes fewer is slower by up to a quarter. */
const WARM_LOCKS = 5_000;
const WARM_SLICE_MS = 500;

/** Sections for each second. */
export const rateOf = ({ sections, elapsedMs }: LoadResult): number => (sections / elapsedMs) * 1_000;

const cpuOf = ({ sections, cpuMs }: LoadResult): number => (cpuMs / sections) * 1_000;

/** Has each contender take `WARM_LOCKS` before it is measured. */
export const warmUp = async <C>(
  contenders: readonly C[],
  slice: (contender: C, forMs: number) => Promise<LoadResult>,
  { quick }: { readonly quick: boolean },
): Promise<void> => {
  const enough = quick ? WARM_LOCKS / 10 : WARM_LOCKS;
  for (const contender of contenders) {
    for (let locks = 0, more = 1; more > 0 && locks < enough; locks += more) {
      more = (await slice(contender, quick ? WARM_SLICE_MS / 5 : WARM_SLICE_MS)).sections;
    }
  }
};

/**
 * Runs one round: short slices of all contenders in turn, forward and backward, so that a drift affects all of them.
 * The middle slice counts, so that slices on a busy machine do not.
 */
export const runRound = async <C>(
  contenders: readonly C[],
  pace: number,
  slice: (contender: C, forMs: number) => Promise<Slice>,
): Promise<readonly RoundResult[]> => {
  const slices = new Map<C, Slice[]>(contenders.map((contender) => [contender, []]));
  const back = [...contenders].reverse();
  for (let turn = 0; turn < TURNS * pace; turn++) {
    for (const contender of [...contenders, ...back]) {
      slices.get(contender)!.push(await slice(contender, SLICE_MS));
    }
  }
  return [...slices.values()].map((results) => ({
    rate: median(results.map(rateOf)),
    cpuUs: median(results.map(cpuOf)),
    serverUs: sum(results.map(({ serverUs = 0 }) => serverUs)) / sum(results.map(({ sections }) => sections)),
    callsMs: results.flatMap(({ callsMs }) => callsMs).sort((a, b) => a - b),
    violations: sum(results.map(({ violations }) => violations)),
  }));
};
