import type { Random } from '../engine/random.js';
import type { LockStep, PermitKey, PlanSettings } from './plan.js';

const makePermitKey = (random: Random, key: string): PermitKey => {
  const limit = random.whole(1, 3);
  const says = random.pick<readonly (number | null)[]>([
    [limit],
    [limit],
    // Most leave the number to the store.
    [limit, null, null],
    // Some are a version ahead.
    [limit, limit, limit + 1],
  ]);
  return { key, says };
};

/** The keys that are permits. In most plans there are none. */
export const makePermitKeys = (random: Random): PermitKey[] =>
  random.pick([[], [], [], ['x'], ['x', 'y']]).map((key) => makePermitKey(random, key));

/** The same step for a permit instead of a lock, now and then, where there are some. */
export const orPermit = (
  random: Random,
  { permits }: PlanSettings,
  chance: number,
  step: LockStep,
): LockStep => {
  if (permits.length === 0 || !random.chance(chance)) return step;
  const { key, says } = random.pick(permits);
  return { ...step, keys: [key], permits: random.pick(says), ordinary: undefined };
};
