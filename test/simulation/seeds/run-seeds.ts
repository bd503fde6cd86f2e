import { makePlan } from '../plan/make-plan.js';
import { judge } from '../run/judge.js';

/** What a seed that fails broke. */
export interface FailedSeed {
  readonly seed: number;
  readonly rules: readonly string[];
}

/** Runs the seeds from `from` up to but not including `to`. */
export const runSeeds = async (
  from: number,
  to: number,
  onDone: (seed: number) => void = () => undefined,
): Promise<FailedSeed[]> => {
  const failed: FailedSeed[] = [];
  for (let seed = from; seed < to; seed++) {
    const { violations } = await judge(makePlan(seed));
    if (violations.length > 0) failed.push({ seed, rules: [...new Set(violations.map(({ rule }) => rule))] });
    onDone(seed);
  }
  return failed;
};
