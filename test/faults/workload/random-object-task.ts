import type { Random } from '../../simulation/engine/random.js';
import type { ObjectTask } from './worker-messages.js';

/**
 * How long one semaphore and one latch are used, in ms. New ones soon come after what a fault left of them: permits
 * that nobody can tell of, and a latch that somebody did not come to.
 */
const USED_FOR_MS = 1_500;
const PERMITS = 3;
/** Fewer than there are workers' callers, so that it opens. */
const TO_COME = 3;

/** What the final keys of semaphores and latches look like. */
export const isObject = (finalKey: string): boolean => /:(gate|door)-\d+(-\d)?$/.test(finalKey);

/** Something with the semaphore or the latch of this moment. */
export const objectTask = (random: Random, now: number): ObjectTask => {
  const number = Math.floor(now / USED_FOR_MS);
  const abortAfterMs = random.chance(0.15) ? random.whole(0, 200) : undefined;
  if (random.chance(0.3)) {
    const waitMs = random.pick([200, 800, 1_500]);
    return { do: 'meet', key: `door-${number}-${random.whole(1, 3)}`, count: TO_COME, waitMs, abortAfterMs };
  }
  const waitMs = random.pick([0, 100, 700, 1_500]);
  const permits = random.pick([1, 1, 2]);
  return {
    do: 'work',
    key: `gate-${number}`,
    of: PERMITS,
    permits,
    waitMs,
    abortAfterMs,
    workMs: random.whole(0, 60),
  };
};
