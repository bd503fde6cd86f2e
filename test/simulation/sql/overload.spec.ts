import { describe, expect, it } from 'vitest';
import { simulateOverload, type OverloadPlan } from './overload.js';

/** `SQL_CALLERS=10000 npx vitest run test/simulation/sql/overload.spec.ts` has more of them. */
const CALLERS = Number(process.env['SQL_CALLERS'] ?? 400);
const TIMEOUT_MS = 60_000 + CALLERS * 100;

const plans: readonly OverloadPlan[] = [
  { mode: 'notifications', callers: CALLERS, burst: 0, latencyMs: 20, serviceMs: 0, locksRows: false },
  { mode: 'polling', callers: CALLERS, burst: 0, latencyMs: 0, serviceMs: 20, locksRows: false },
  { mode: 'notifications', callers: 2, burst: CALLERS, latencyMs: 5, serviceMs: 20, locksRows: true },
  { mode: 'polling', callers: CALLERS, burst: CALLERS, latencyMs: 5, serviceMs: 20, locksRows: true },
];

describe('a process that asks for more than its database serves', () => {
  it.each(plans)(
    'loses no lock, and ends no call before its time: $mode, $callers callers, bursts of $burst, rows locked: $locksRows',
    { timeout: TIMEOUT_MS },
    async (plan) => {
      const run = await simulateOverload(plan);
      expect(run).toMatchObject({ lost: [], wrong: [], events: [], left: [] });
      expect(run.granted).toBeGreaterThan(500);
      expect(run.overloaded, 'the database is too slow').toBeGreaterThan(0);
    },
  );

  it.each(['notifications', 'polling'] as const)(
    'free keys do not wait for locked rows of held locks: %s',
    { timeout: TIMEOUT_MS },
    async (mode) => {
      const run = await simulateOverload({
        ...{ mode, callers: 4, burst: 0, latencyMs: 10, serviceMs: 0, locksRows: true },
      });
      expect(run).toMatchObject({ lost: [], wrong: [], events: [], left: [], overloaded: 0 });
      expect(run.longestMs).toBeLessThan(500);
    },
  );
});
