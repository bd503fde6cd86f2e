import type { Parameters } from 'fast-check';

/** Long before the test runner gives up, which would not say what was found. */
const LIMIT_MS = 20_000;

const seed = process.env['PROPERTY_SEED'];

/**
 * Settings for `fc.assert`. A failure names its seed; `PROPERTY_SEED=<seed> npx vitest run test/property` then runs the
 * same once more. When making the example smaller takes too long, it is reported as it is. A property whose runs take too
 * long fails: fast-check abandons the run under way, which would go on beside the next tests, on their fake timers.
 */
export const runs = <Ts>(numRuns: number): Parameters<Ts> => ({
  numRuns,
  interruptAfterTimeLimit: LIMIT_MS,
  markInterruptAsFailure: true,
  ...(seed !== undefined && { seed: Number(seed) }),
});
