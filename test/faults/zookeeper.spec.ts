import { beforeAll, describe, expect, it } from 'vitest';
import { FAULTS } from './catalogue/index.js';
import type { Only } from './laboratory.js';
import { overlapsIn } from './rules/overlaps.js';
import { SingleRounds } from './single-rounds.js';
import { ON_ONE } from './topology/on-one.js';
import { ON_ZOOKEEPER } from './topology/on-zookeeper.js';

/** What no single Redis server has. */
const ON_SERVERS = FAULTS.filter(
  (fault) => fault.fits(ON_ZOOKEEPER) && !ON_ONE.some((fitness) => fault.fits(fitness)),
).map(({ name }) => name);
const ZOOKEEPER = 'ZooKeeper';
/** Faults of workers and of the network between: npm run test:faults -- --topology ZooKeeper. */
const ROUNDS: Readonly<Record<string, Only>> = {
  [ZOOKEEPER]: { among: ON_SERVERS, faults: ON_SERVERS.length, forMs: 8_000 },
};
const TIMEOUT_MS = 400_000;

const rounds = new SingleRounds('1', 'zookeeper.spec.ts', ROUNDS);

beforeAll(() => rounds.run(), TIMEOUT_MS);

describe('the lock in ZooKeeper, while its servers and the network fail', () => {
  it('keeps every promise', () => rounds.expectKept(ZOOKEEPER));

  it('has met every kind of fault of an ensemble', () => {
    expect(ON_SERVERS.filter((name) => !rounds.inflicted().includes(name))).toEqual([]);
    rounds.expectAllInflicted();
  });

  it('was at work meanwhile', () => rounds.expectAtWork(ZOOKEEPER));

  it('was judged by every rule that applies there, and has what it needs', () =>
    rounds.expectJudged(ZOOKEEPER));

  it('never saw two holders', () => {
    expect(overlapsIn(rounds.named(ZOOKEEPER).events)).toBe(0);
  });
});
