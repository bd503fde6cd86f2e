import type { Violation } from '../../checker/violation.js';
import type { SimulatedMistake } from '../../mistakes/mistake.js';
import { breakLibrary } from '../../mistakes/source/broken-library.js';
import { CORE, type Core } from '../core-api.js';
import { makePlan } from '../plan/make-plan.js';
import type { Plan } from '../plan/plan.js';
import {
  CALM_OBJECT_PLAN,
  CALM_PERMIT_PLAN,
  CALM_PLAN,
  CALM_READ_WRITE_PLAN,
  plansForEachStep,
} from '../plan/step-plans.js';
import { judge } from '../run/judge.js';
import { simulate, type Variation } from '../run/simulate.js';

/** How many seeds may pass a mistake by. */
export const MAX_SEEDS = 2_000;

/** How a mistake was noticed. */
export interface Catch {
  readonly rule: string;
  readonly violation: Violation;
  readonly plan: Plan;
  /** How many runs it took. */
  readonly runs: number;
}

const STEP_PLANS = {
  locks: CALM_PLAN,
  permits: CALM_PERMIT_PLAN,
  readWrite: CALM_READ_WRITE_PLAN,
  objects: CALM_OBJECT_PLAN,
};
const CORE_NAMES = Object.keys(CORE) as (keyof Core)[];

async function* plansFor(
  { simulation: { atEachStep, faults, locks } }: SimulatedMistake,
  variation: Variation,
): AsyncGenerator<Plan> {
  const plan = atEachStep && STEP_PLANS[atEachStep];
  if (plan) return yield* plansForEachStep(plan, (await simulate(plan, variation)).steps);
  for (let seed = 1, count = 0; count < MAX_SEEDS; seed++) {
    const made = makePlan(seed);
    if (faults && !made.faults.some(({ kind }) => faults.includes(kind))) continue;
    if (locks && !made.settings[locks]) continue;
    count++;
    yield made;
  }
}

/** Lends out the core or the store with the mistake in it. */
export const withMistake = async <T>(
  { name, edits = [], simulation: { quirks } }: SimulatedMistake,
  use: (variation: Variation) => Promise<T>,
): Promise<T> => {
  if (quirks) return use({ quirks });
  using library = breakLibrary(name, edits);
  return await use({ core: await library.load<Core>(...CORE_NAMES) });
};

/** Runs plans with the mistake in place until one of the rules that are to notice it does. */
export const catchMistake = (mistake: SimulatedMistake): Promise<Catch | undefined> =>
  withMistake(mistake, async (variation) => {
    let runs = 0;
    for await (const plan of plansFor(mistake, variation)) {
      runs++;
      const { violations } = await judge(plan, variation);
      const violation = violations.find(({ rule }) => mistake.simulation.rules.includes(rule));
      if (violation) return { rule: violation.rule, violation, plan, runs };
    }
    return undefined;
  });
