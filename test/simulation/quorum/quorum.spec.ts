import { describe, expect, it } from 'vitest';
import { breakLibrary } from '../../mistakes/source/broken-library.js';
import { QUORUM_MISTAKES, type QuorumMistake } from '../../mistakes/table/quorum.mistakes.js';
import { quorumPlan } from './quorum-plan.js';
import { isFarOff } from './sim-node.js';
import { QUORUM_PARTS, simulateQuorum, type QuorumParts } from './simulate-quorum.js';

/** `QUORUM_SEEDS=100000 npx vitest run test/simulation/quorum` runs more of them, from `QUORUM_FROM` on. */
const SEEDS = Number(process.env['QUORUM_SEEDS'] ?? 1_000);
const FROM = Number(process.env['QUORUM_FROM'] ?? 1);
/** A seed takes some 20 ms. */
const TIMEOUT_MS = 120_000 + SEEDS * 150;
/** How many seeds may pass a mistake by. */
const MOST_SEEDS = 4_000;

const PART_NAMES = Object.keys(QUORUM_PARTS) as (keyof QuorumParts)[];

/** The first seed in which one of the rules sees it. */
const seedThatSees = async ({ name, edits, rules }: QuorumMistake): Promise<number | undefined> => {
  using library = breakLibrary(name, edits);
  const parts = await library.load<QuorumParts>(...PART_NAMES);
  for (let seed = 1; seed <= MOST_SEEDS; seed++) {
    const { broken } = await simulateQuorum(quorumPlan(seed), parts);
    if (broken.some(({ rule }) => rules.includes(rule))) return seed;
  }
  return undefined;
};

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
    const told = new Map<string, number>();
    let grants = 0;
    for (let seed = FROM; seed < FROM + SEEDS; seed++) {
      const run = await simulateQuorum(quorumPlan(seed));
      expect(run.broken, `seed ${seed}`).toEqual([]);
      grants += run.grants;
      for (const [code, count] of run.told) told.set(code, (told.get(code) ?? 0) + count);
    }
    expect(grants).toBeGreaterThan(SEEDS * 10);
    expect([...told.keys()].sort()).toEqual(
      expect.arrayContaining(['failed, not-executed', 'failed, unknown', 'lost', 'released', 'taken']),
    );
  });
});

describe('a deliberate mistake in the quorum is noticed', () => {
  it.each(QUORUM_MISTAKES)('$name', { timeout: 600_000 }, async (mistake) => {
    const seed = await seedThatSees(mistake);
    expect(seed, 'no rule noticed it').toBeDefined();
    const { broken } = await simulateQuorum(quorumPlan(seed!));
    expect(broken, 'without the mistake nothing is wrong').toEqual([]);
  });
});
