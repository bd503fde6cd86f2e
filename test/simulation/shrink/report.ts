import { timelineOf } from '../../checker/timeline.js';
import type { Plan } from '../plan/plan.js';
import { judge } from '../run/judge.js';
import type { Variation } from '../run/simulate.js';
import { shrink } from './shrink.js';

const COMMAND = 'node --import ./test/support/typescript/register-with-source.mjs test/simulation/main.ts';

/** Shrinks a plan that fails and tells a person about it: the promise, the plan, and what happened, line by line. */
export const reportOn = async (plan: Plan, variation?: Variation): Promise<string> => {
  const [violation] = (await judge(plan, variation)).violations;
  if (!violation) return `Seed ${plan.seed} breaks no promise.`;
  const smallest = await shrink(plan, violation.rule, variation);
  const { events, violations } = await judge(smallest, variation);
  return [
    `Seed ${plan.seed} breaks the promise "${violation.rule}": ${violation.text}.`,
    `To see it again: ${COMMAND} --seed ${plan.seed}`,
    '',
    'The smallest plan that breaks the same promise:',
    JSON.stringify(smallest),
    '',
    'What happens in it:',
    timelineOf(
      events,
      violations.filter(({ rule }) => rule === violation.rule),
    ),
  ].join('\n');
};
