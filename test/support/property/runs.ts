import type { Parameters } from 'fast-check';

/** Time-out of a test with a property: many times what it takes, because a busy machine is no counterexample. */
export const PROPERTY_TIMEOUT_MS = 120_000;
/** Before the test runner gives up, which would not say what was found. */
const LIMIT_MS = 100_000;

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
