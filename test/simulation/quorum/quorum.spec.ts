import { describe, expect, it } from 'vitest';
import { quorumPlan } from './quorum-plan.js';
import { isFarOff } from './sim-node.js';
import { simulateQuorum } from './simulate-quorum.js';

/** `QUORUM_SEEDS=100000 npx vitest run test/simulation/quorum` runs more of them, from `QUORUM_FROM` on. */
const SEEDS = Number(process.env['QUORUM_SEEDS'] ?? 300);
const FROM = Number(process.env['QUORUM_FROM'] ?? 1);
/** A seed takes some 20 ms. */
const TIMEOUT_MS = 120_000 + SEEDS * 150;

describe('the simulation of quorums', () => {
  it('is the same run for the same seed', async () => {
    for (let seed = 1; seed <= 40; seed++) {
      const [once, again] = [await simulateQuorum(quorumPlan(seed)), await simulateQuorum(quorumPlan(seed))];
      expect(again, `seed ${seed}`).toEqual(once);
    }
  });

  it('makes all go wrong that can', () => {
    const plans = Array.from({ length: 300 }, (_, i) => quorumPlan(i + 1));
    const faults = plans.flatMap((plan) => plan.faults);
    expect([...new Set(faults.map(({ kind }) => kind))].sort()).toEqual([
      'clock',
      'crash',
      'cut',
      'isolation',
      'lost-answer',
      'lost-request',
      'node-restart',
      'partition',
      'pause',
      'repeat',
      'slow',
    ]);
    expect(faults.some((fault) => fault.kind === 'node-restart' && fault.forgets)).toBe(true);
    expect(faults.some((fault) => fault.kind === 'clock' && isFarOff(fault.aheadMs))).toBe(true);
    const keys = plans.flatMap(({ processes }) => processes.flatMap(({ callers }) => callers.flat()));
    expect([...new Set(keys.map(({ key }) => key))].sort()).toEqual(['a', 'alone', 'b', 'jump', 'race']);
    expect([...new Set(plans.map(({ nodes }) => nodes))].sort()).toEqual([2, 3, 4, 5]);
  });

  it(`breaks no promise in ${SEEDS} seeds from ${FROM}`, { timeout: TIMEOUT_MS }, async () => {
    const reported = new Map<string, number>();
    let [grants, commits] = [0, 0];
    for (let seed = FROM; seed < FROM + SEEDS; seed++) {
      const run = await simulateQuorum(quorumPlan(seed));
      expect(run.broken, `seed ${seed}`).toEqual([]);
      grants += run.grants;
      commits += run.commits;
      for (const [code, count] of run.reported) reported.set(code, (reported.get(code) ?? 0) + count);
    }
    expect(grants).toBeGreaterThan(SEEDS * 10);
    // Most nodes give the proposed token: without proposals there are about two commits for each grant.
    expect(commits / grants).toBeLessThan(1);
    expect([...reported.keys()].sort()).toEqual(
      expect.arrayContaining(['failed, not-executed', 'failed, unknown', 'lost', 'released', 'taken']),
    );
  });
});
