import type { Random } from '../engine/random.js';
import type { CallerPlan, Step } from './plan.js';

/** How many sections have callers that do not wait for the release. */
const SHARE = 0.25;

const inStep = (random: Random, step: Step): Step => {
  const within = (steps: readonly Step[]): Step[] => steps.map((one) => inStep(random, one));
  switch (step.do) {
    case 'lock': {
      const isSection = step.style === 'withLock' || step.style === 'tryWithLock';
      const awaitRelease = isSection && random.chance(SHARE) ? false : undefined;
      return { ...step, awaitRelease, inside: within(step.inside), after: step.after && within(step.after) };
    }
    case 'siblings':
      return { ...step, steps: within(step.steps) };
    case 'run':
      return { ...step, inside: within(step.inside) };
    case 'fork':
    case 'later':
      return { ...step, step: inStep(random, step.step) };
    default:
      return step;
  }
};

/** The same caller, who now and then does not wait for a release. With dice of its own: all else stays as it was. */
export const sometimesUnawaited = (random: Random, { startAt, steps }: CallerPlan): CallerPlan => ({
  startAt,
  steps: steps.map((step) => inStep(random, step)),
});
