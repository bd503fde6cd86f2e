import { describe, expect, it } from 'vitest';
import { breakLibrary } from '../../mistakes/source/broken-library.js';
import {
  ZOOKEEPER_SIMULATED_MISTAKES,
  type ZooKeeperSimulatedMistake,
} from '../../mistakes/table/zookeeper-simulated.mistakes.js';
import { simulateZooKeeper, ZK_PARTS, type ZkParts } from './simulate-zookeeper.js';
import { zkPlan } from './zk-plan.js';

/** How many seeds may pass a mistake by. */
const MAX_SEEDS = 1_500;

const PART_NAMES = Object.keys(ZK_PARTS) as (keyof ZkParts)[];

/** The first seed in which one of the rules sees it. */
const seedThatSees = async ({
  name,
  edits,
  rules,
}: ZooKeeperSimulatedMistake): Promise<number | undefined> => {
  using library = breakLibrary(name, edits);
  const parts = await library.load<ZkParts>(...PART_NAMES);
  for (let seed = 1; seed <= MAX_SEEDS; seed++) {
    const { broken } = await simulateZooKeeper(zkPlan(seed), parts);
    if (broken.some(({ rule }) => rules.includes(rule))) return seed;
  }
  return undefined;
};

describe('a deliberate mistake in the store on ZooKeeper is noticed', () => {
  it.each(ZOOKEEPER_SIMULATED_MISTAKES)('$name', { timeout: 600_000 }, async (mistake) => {
    const seed = await seedThatSees(mistake);
    expect(seed, 'no rule noticed it').toBeDefined();
    const { broken } = await simulateZooKeeper(zkPlan(seed!));
    expect(broken, 'without the mistake nothing is wrong').toEqual([]);
  });
});
