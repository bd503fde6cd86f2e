import type { Violation } from '../../checker/violation.js';
import { CORE } from '../core-api.js';
import { makePlan } from '../plan/make-plan.js';
import type { Plan } from '../plan/plan.js';
import { CALM_PLAN, plansForEachStep } from '../plan/step-plans.js';
import { judge } from '../run/judge.js';
import { simulate, type Variation } from '../run/simulate.js';
import type { Breakage } from './breakage.js';
import { loadPatchedCore } from './patched-core.js';

/** How many seeds may pass a mistake by. */
export const MOST_SEEDS = 4_000;

/** How a mistake was noticed. */
export interface Catch {
  readonly rule: string;
  readonly violation: Violation;
  readonly plan: Plan;
  /** How many runs it took. */
  readonly runs: number;
}

async function* plansFor({ atEachStep }: Breakage, variation: Variation): AsyncGenerator<Plan> {
  if (atEachStep) yield* plansForEachStep(CALM_PLAN, (await simulate(CALM_PLAN, variation)).steps);
  else for (let seed = 1; seed <= MOST_SEEDS; seed++) yield makePlan(seed);
}

/** Lends out the core or the store with the mistake in it. */
export const withBreakage = async <T>(
  { patches, quirks }: Breakage,
  use: (variation: Variation) => Promise<T>,
): Promise<T> => {
  const patched = patches && (await loadPatchedCore(patches));
  try {
    return await use({ core: patched?.core ?? CORE, quirks });
  } finally {
    patched?.dispose();
  }
};

/** Runs plans with the mistake in place until one of the rules that are to notice it does. */
export const catchBreakage = (breakage: Breakage): Promise<Catch | undefined> =>
  withBreakage(breakage, async (variation) => {
    let runs = 0;
    for await (const plan of plansFor(breakage, variation)) {
      runs++;
      const { violations } = await judge(plan, variation);
      const violation = violations.find(({ rule }) => breakage.rules.includes(rule));
      if (violation) return { rule: violation.rule, violation, plan, runs };
    }
    return undefined;
  });
