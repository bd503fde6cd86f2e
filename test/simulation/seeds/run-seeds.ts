import { makePlan } from '../plan/make-plan.js';
import { judge } from '../run/judge.js';
import { noteworthy } from '../run/noteworthy.js';

/** What a seed that fails broke. */
export interface FailedSeed {
  readonly seed: number;
  readonly rules: readonly string[];
}

/** What came of many seeds. */
export interface SeedsDone {
  readonly failed: FailedSeed[];
  /** What their histories have shown, see `noteworthy`. */
  readonly seen: Set<string>;
}

/** Runs the seeds from `from` up to but not including `to`. */
export const runSeeds = async (
  from: number,
  to: number,
  onDone: (seed: number) => void = () => undefined,
): Promise<SeedsDone> => {
  const failed: FailedSeed[] = [];
  const seen = new Set<string>();
  for (let seed = from; seed < to; seed++) {
    const { events, violations } = await judge(makePlan(seed));
    for (const event of events) seen.add(noteworthy(event));
    if (violations.length > 0) failed.push({ seed, rules: [...new Set(violations.map(({ rule }) => rule))] });
    onDone(seed);
  }
  return { failed, seen };
};
