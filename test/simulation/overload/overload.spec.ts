import { describe, expect, it } from 'vitest';
import type { OverloadPlan } from './overload.js';
import { SUBJECTS } from './subjects.js';

/** `OVERLOAD_CALLERS=10000 npx vitest run test/simulation/overload` has more of them. */
const CALLERS = Number(process.env['OVERLOAD_CALLERS'] ?? 400);
const TIMEOUT_MS = 60_000 + CALLERS * 100;

const LOOP = { callers: CALLERS, burst: 0, latencyMs: 0 };
const BURST = { callers: 2, burst: CALLERS, latencyMs: 5 };
const BOTH = { callers: CALLERS, burst: CALLERS, latencyMs: 5 };

/**
 * The databases have four connections, and serve up to 64 requests in a statement, unless they are slow. Redis serves up to
 * 16 runs in a request, and ZooKeeper has several for a lock.
 */
const PLANS: readonly (readonly [string, OverloadPlan])[] = [
  ['PostgreSQL', { ...LOOP, latencyMs: 300, serviceMs: 0 }],
  ['PostgreSQL', { ...BURST, serviceMs: 150, locksRows: true }],
  ['MySQL', { ...LOOP, serviceMs: 150 }],
  ['MySQL', { ...BOTH, serviceMs: 150, locksRows: true }],
  ['Redis', { ...LOOP, callers: 2 * CALLERS, serviceMs: 100 }],
  ['Redis', { ...BOTH, serviceMs: 100 }],
  ['a quorum', { ...BOTH, serviceMs: 100 }],
  ['ZooKeeper', { ...LOOP, serviceMs: 5 }],
  ['ZooKeeper', { ...BOTH, serviceMs: 5 }],
];

describe('a process that asks for more than its store serves', () => {
  it.each(PLANS)(
    'loses no lock, and ends no call before its time: %s, %o',
    { timeout: TIMEOUT_MS },
    async (name, plan) => {
      const run = await SUBJECTS[name]!(plan);
      expect(run).toMatchObject({ lost: [], wrong: [], events: [], left: [] });
      expect(run.granted).toBeGreaterThan(150);
      expect(run.overloaded, 'the server is too slow').toBeGreaterThan(0);
    },
  );

  it.each(['Redis', 'a quorum'])(
    'loses no lock when the server turns slow under what it was sent: %s',
    { timeout: TIMEOUT_MS },
    async (name) => {
      const burst = { callers: 20, burst: Math.min(5 * CALLERS, 4_000), latencyMs: 5 };
      const run = await SUBJECTS[name]!({ ...burst, serviceMs: 30, slowAfterMs: 5_080 });
      expect(run).toMatchObject({ lost: [], left: [] });
      expect(run.events, 'its connection ended').toContain('store-down');
    },
  );

  it.each(['PostgreSQL', 'MySQL'])(
    'free keys do not wait for locked rows of held locks: %s',
    { timeout: TIMEOUT_MS },
    async (name) => {
      const plan = { callers: 4, burst: 0, latencyMs: 10, serviceMs: 0, locksRows: true };
      const run = await SUBJECTS[name]!(plan);
      expect(run).toMatchObject({ lost: [], wrong: [], events: [], left: [], overloaded: 0 });
      expect(run.longestMs).toBeLessThan(500);
    },
  );
});
