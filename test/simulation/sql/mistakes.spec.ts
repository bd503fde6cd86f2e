import { describe, expect, it } from 'vitest';
import { breakLibrary } from '../../mistakes/source/broken-library.js';
import {
  SQL_SIMULATED_MISTAKES,
  type SqlSimulatedMistake,
} from '../../mistakes/table/sql-simulated.mistakes.js';
import { SQL_PARTS, simulateSql, type SqlParts } from './simulate-sql.js';
import { sqlPlan } from './sql-plan.js';

/** How many seeds may pass a mistake by. */
const MAX_SEEDS = 500;

const PART_NAMES = Object.keys(SQL_PARTS) as (keyof SqlParts)[];

/** The first seed in which one of the rules sees it. */
const seedThatSees = async ({ name, edits, rules }: SqlSimulatedMistake): Promise<number | undefined> => {
  using library = breakLibrary(name, edits);
  const parts = await library.load<SqlParts>(...PART_NAMES);
  for (let seed = 1; seed <= MAX_SEEDS; seed++) {
    const { broken } = await simulateSql(sqlPlan(seed), parts);
    if (broken.some(({ rule }) => rules.includes(rule))) return seed;
  }
  return undefined;
};

describe('a deliberate mistake in a store on a database is noticed', () => {
  it.each(SQL_SIMULATED_MISTAKES)('$name', { timeout: 600_000 }, async (mistake) => {
    const seed = await seedThatSees(mistake);
    expect(seed, 'no rule noticed it').toBeDefined();
    const { broken } = await simulateSql(sqlPlan(seed!));
    expect(broken, 'without the mistake nothing is wrong').toEqual([]);
  });
});
