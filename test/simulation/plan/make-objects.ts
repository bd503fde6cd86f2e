import type { Random } from '../engine/random.js';
import type { CallerPlan, Step } from './plan.js';

/** In how many plans callers use semaphores and latches beside their locks. */
const USED = 0.25;

/** One semaphore, and one place to meet, for all of a plan. */
export interface Objects {
  readonly of: number;
  readonly count: number;
}

const GATE = 'gate';
const DOOR = 'door';

/** What the semaphores and latches of a plan are, if there are some. */
export const chooseObjects = (random: Random, callers: number): Objects | undefined =>
  random.chance(USED) ? { of: random.whole(1, 3), count: random.whole(1, Math.max(2, callers)) } : undefined;

const makeStep = (random: Random, { of, count }: Objects): Step => {
  const waitMs = random.pick([0, random.whole(1, 60), random.whole(100, 900), 3_000]);
  const abortAfterMs = random.chance(0.15) ? random.whole(0, 300) : undefined;
  if (random.chance(0.25)) return { do: 'meet', key: DOOR, count, waitMs, abortAfterMs };
  const permits = random.whole(1, of);
  return { do: 'work', key: GATE, of, permits, waitMs, abortAfterMs, workMs: random.whole(0, 150) };
};

/** The same caller, who uses them in between. */
export const usingObjects = (
  random: Random,
  objects: Objects,
  { startAt, steps }: CallerPlan,
): CallerPlan => {
  const mixed = [...steps];
  for (let i = random.whole(0, 3); i > 0; i--) {
    mixed.splice(random.whole(0, mixed.length), 0, makeStep(random, objects));
  }
  return { startAt, steps: mixed };
};
