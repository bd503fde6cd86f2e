import type { Plan } from '../plan/plan.js';
import { judge } from '../run/judge.js';
import type { Variation } from '../run/simulate.js';
import { simplerPlans } from './simpler-plans.js';

/** After this many runs the plan is small enough. */
const MAX_RUNS = 3_000;

/** Makes a plan smaller for as long as the same promise is broken in it. */
export const shrink = async (plan: Plan, rule: string, variation?: Variation): Promise<Plan> => {
  const breaks = async (candidate: Plan): Promise<boolean> =>
    (await judge(candidate, variation)).violations.some((violation) => violation.rule === rule);
  let smallest = plan;
  for (let runs = 0, simpler = true; simpler && runs < MAX_RUNS;) {
    simpler = false;
    for (const candidate of simplerPlans(smallest)) {
      if (++runs >= MAX_RUNS) break;
      if (!(await breaks(candidate))) continue;
      smallest = candidate;
      simpler = true;
      break;
    }
  }
  return smallest;
};
