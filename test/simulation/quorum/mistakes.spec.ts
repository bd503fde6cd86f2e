import { describe, expect, it } from 'vitest';
import { breakLibrary } from '../../mistakes/source/broken-library.js';
import { QUORUM_MISTAKES, type QuorumMistake } from '../../mistakes/table/quorum.mistakes.js';
import { quorumPlan } from './quorum-plan.js';
import { QUORUM_PARTS, simulateQuorum, type QuorumParts } from './simulate-quorum.js';

/** How many seeds may pass a mistake by. */
const MAX_SEEDS = 4_000;

const PART_NAMES = Object.keys(QUORUM_PARTS) as (keyof QuorumParts)[];

/** The first seed in which one of the rules sees it. */
const seedThatSees = async ({ name, edits, rules }: QuorumMistake): Promise<number | undefined> => {
  using library = breakLibrary(name, edits);
  const parts = await library.load<QuorumParts>(...PART_NAMES);
  for (let seed = 1; seed <= MAX_SEEDS; seed++) {
    const { broken } = await simulateQuorum(quorumPlan(seed), parts);
    if (broken.some(({ rule }) => rules.includes(rule))) return seed;
  }
  return undefined;
};

describe('a deliberate mistake in the quorum is noticed', () => {
  it.each(QUORUM_MISTAKES)('$name', { timeout: 600_000 }, async (mistake) => {
    const seed = await seedThatSees(mistake);
    expect(seed, 'no rule noticed it').toBeDefined();
    const { broken } = await simulateQuorum(quorumPlan(seed!));
    expect(broken, 'without the mistake nothing is wrong').toEqual([]);
  });
});
