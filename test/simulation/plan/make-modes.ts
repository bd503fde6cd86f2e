import type { Random } from '../engine/random.js';
import type { CallerPlan, LockStep, Step } from './plan.js';

/** How many callers read; and of how many calls for several keys each key has a mode of its own. */
const READERS = 0.6;
const OF_THEIR_OWN = 0.5;
/** How many of those who write read on. */
const READ_ON = 0.2;

/** Somewhere in between. */
const readingOn = (random: Random, inside: readonly Step[]): Step[] => {
  const from = random.whole(0, inside.length);
  const reads: Step = { do: 'sleep', ms: random.whole(0, 60) };
  return [...inside.slice(0, from), { do: 'downgrade' }, reads, ...inside.slice(from)];
};

const inLock = (random: Random, step: LockStep): LockStep => {
  if (step.permits !== undefined) return step;
  const mode = random.chance(READERS) ? 'read' : 'write';
  if (step.keys.length === 1 || !random.chance(OF_THEIR_OWN)) return { ...step, mode };
  return { ...step, mode, modes: step.keys.map(() => (random.chance(READERS) ? 'read' : 'write')) };
};

const inStep = (random: Random, step: Step): Step => {
  const within = (steps: readonly Step[]): Step[] => steps.map((one) => inStep(random, one));
  switch (step.do) {
    case 'lock': {
      const taken = inLock(random, step);
      const inside = within(step.inside);
      const readsOn = taken.mode === 'write' && !taken.modes && random.chance(READ_ON);
      return {
        ...taken,
        inside: readsOn ? readingOn(random, inside) : inside,
        after: step.after && within(step.after),
      };
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

/** The same caller, who reads or writes. With dice of its own: all else stays as it was. */
export const readingAndWriting = (random: Random, { startAt, steps }: CallerPlan): CallerPlan => ({
  startAt,
  steps: steps.map((step) => inStep(random, step)),
});
