import { describe, expect, it } from 'vitest';
import { simulateSql } from './simulate-sql.js';
import { sqlPlan } from './sql-plan.js';

/** `SQL_SEEDS=100000 npx vitest run test/simulation/sql/sql.spec.ts` runs more of them, from `SQL_FROM` on. */
const SEEDS = Number(process.env['SQL_SEEDS'] ?? 200);
const FROM = Number(process.env['SQL_FROM'] ?? 1);
/** A seed takes some 20 ms. */
const TIMEOUT_MS = 120_000 + SEEDS * 150;

/** What has to happen in 600 seeds. */
const STATES = [
  'a connection is refused',
  'a head misses its turn',
  'a restart commits a statement without a reply',
  'a session does not end at once',
  'a session is ended with a statement under way',
  'a statement comes after the end of its session',
  'a statement commits after its client has gone',
  ...['acquire', 'release'].flatMap((name) => [`several: ${name}`, `a batch skips a locked row: ${name}`]),
  'a waiter is woken at once',
  'a waiter polls',
  'an undo is not certain',
  ...['acquire', 'extend', 'leave', 'peek', 'release', 'settle', 'wake-up'].map(
    (name) => `lost reply: ${name}`,
  ),
  ...['acquire', 'release', 'settle'].map((name) => `lost request: ${name}`),
  'row locked',
  'several new rows',
  'the head of a wait queue gets the key',
  'too slow',
];

describe('the simulation of stores on a database', () => {
  it('is the same run for the same seed', async () => {
    for (let seed = 1; seed <= 20; seed++) {
      const [once, again] = [await simulateSql(sqlPlan(seed)), await simulateSql(sqlPlan(seed))];
      expect(again, `seed ${seed}`).toEqual(once);
    }
  });

  it('plans contain every kind of fault', () => {
    const plans = Array.from({ length: 300 }, (_, i) => sqlPlan(i + 1));
    const faults = plans.flatMap((plan) => plan.faults);
    expect([...new Set(faults.map(({ kind }) => kind))].sort()).toEqual([
      'clock',
      'crash',
      'cut',
      'lost-reply',
      'lost-request',
      'mute',
      'pause',
      'refuse',
      'restart',
      'row-lock',
      'silence',
      'slow',
      'slow-statement',
      'stubborn',
    ]);
    const steps = faults.flatMap((fault) => (fault.kind === 'clock' ? [Math.sign(fault.aheadMs)] : []));
    expect([...new Set(steps)].sort()).toEqual([-1, 1]);
    for (const kind of ['pause', 'crash'])
      expect(faults.some((fault) => fault.kind === kind && 'step' in fault)).toBe(true);
    expect([...new Set(plans.map(({ mode, pooled }) => `${mode}, pooled: ${pooled}`))].sort()).toEqual([
      'notifications, pooled: false',
      'notifications, pooled: true',
      'polling, pooled: false',
      'polling, pooled: true',
    ]);
    const visits = plans.flatMap(({ processes }) => processes.flatMap(({ callers }) => callers.flat()));
    expect([...new Set(visits.map(({ key }) => key))].sort()).toEqual([
      ...['a', 'b', 'c', 'd', 'e', 'f', 'permits'],
    ]);
  });

  it(`no promise is broken in ${SEEDS} seeds from ${FROM}`, { timeout: TIMEOUT_MS }, async () => {
    const reported = new Map<string, number>();
    const seen = new Set<string>();
    let grants = 0;
    for (let seed = FROM; seed < FROM + SEEDS; seed++) {
      const run = await simulateSql(sqlPlan(seed));
      expect(run.broken, `seed ${seed}`).toEqual([]);
      grants += run.grants;
      for (const [code, count] of run.reported) reported.set(code, (reported.get(code) ?? 0) + count);
      for (const what of run.seen) seen.add(what);
    }
    expect(grants).toBeGreaterThan(SEEDS * 10);
    expect([...reported.keys()].sort()).toEqual(
      expect.arrayContaining(['failed, not-executed', 'failed, unknown', 'lost', 'released', 'taken']),
    );
    if (SEEDS >= 600) expect(STATES.filter((state) => !seen.has(state))).toEqual([]);
  });
});
