import { describe, expect, it } from 'vitest';
import type { OverloadPlan } from '../overload.js';
import { ON_SERVERS, type Isolation } from './servers.js';

/** `npm run test:overload` has more of them. */
const CALLERS = Number(process.env['OVERLOAD_CALLERS'] ?? 1_000);
/** Three leases, and the waits that go on after them. */
const TIMEOUT_MS = 240_000;

const ISOLATIONS: readonly Isolation[] = ['READ COMMITTED', 'REPEATABLE READ'];

describe('a process that asks a real server for more than it serves', { timeout: TIMEOUT_MS }, () => {
  const plan: OverloadPlan = { callers: CALLERS / 2, burst: CALLERS / 2, latencyMs: 5, serviceMs: 0 };

  it.each(Object.keys(ON_SERVERS))('loses no lock, and ends no call before its time: %s', async (name) => {
    const locksRows = name === 'PostgreSQL' || name === 'MySQL';
    const run = await ON_SERVERS[name]!({ ...plan, locksRows });
    console.log(`${name}: ${run.granted} granted, ${run.overloaded} overloaded`);
    expect(run).toMatchObject({ lost: [], wrong: [], events: [], left: [] });
    expect(run.granted).toBeGreaterThan(1_000);
  });

  it.each(
    ['PostgreSQL', 'MySQL'].flatMap((name) => ISOLATIONS.map((isolation) => [name, isolation] as const)),
  )(
    'free keys do not wait for rows of held locks that another transaction has locked: %s, %s',
    async (name, isolation) => {
      const few = { callers: 4, burst: 0, latencyMs: 0, serviceMs: 0, locksRows: true };
      const run = await ON_SERVERS[name]!(few, isolation);
      expect(run).toMatchObject({ lost: [], wrong: [], events: [], left: [], overloaded: 0 });
      expect(run.longestMs).toBeLessThan(500);
    },
  );
});
