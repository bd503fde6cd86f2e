import { beforeAll, describe, expect, it } from 'vitest';
import { FAULTS } from './catalogue/index.js';
import { ZOOKEEPER_FAULTS } from './catalogue/zookeeper.faults.js';
import type { Only } from './laboratory.js';
import { overlapsIn } from './rules/overlaps.js';
import { SingleRounds } from './single-rounds.js';
import { ON_DATABASES } from './topology/on-databases.js';
import { ON_ONE } from './topology/on-one.js';

/** A round on each of these, with these faults; together they have all that one server has not. More: npm run test:faults. */
const ROUNDS: Readonly<Record<string, Only>> = {
  'quorum of 3, with AOF': {
    among: [
      'clock of a node is wrong',
      'client cut off from a minority',
      'client cut off from a majority',
      'SIGKILL Redis, data kept',
      'SIGSTOP Redis',
    ],
    faults: 5,
    forMs: 4_000,
  },
  'quorum of 5': {
    among: ['a node comes back with a wrong clock', 'a node is slow', 'SIGKILL worker'],
    faults: 3,
    forMs: 3_000,
  },
  Sentinel: {
    among: [
      'promotion',
      'promotion of a replica that lags',
      'client cut off from a minority',
      'clock of a server is wrong',
      'a sentinel hangs',
      'all sentinels restart',
    ],
    faults: 6,
    forMs: 5_000,
  },
  Cluster: {
    among: [
      'slot moves',
      'a master is killed',
      'a master is stopped',
      'partition between nodes',
      'a master comes back empty',
      'promotion of a replica that lags',
      'client cut off from a majority',
    ],
    faults: 7,
    forMs: 5_000,
  },
};
const TIMEOUT_MS = 400_000;

const rounds = new SingleRounds('1', 'many.spec.ts', ROUNDS);
const NAMES = rounds.names;

beforeAll(() => rounds.run(), TIMEOUT_MS);

describe('the lock on several servers, while they and what is between them fail', () => {
  it.each(NAMES)('keeps every promise: %s', (name) => rounds.expectKept(name));

  it('has met every kind of fault that neither one server, a database nor ZooKeeper has', () => {
    const met = new Set(rounds.inflicted());
    const elsewhere = [...ON_ONE, ...ON_DATABASES];
    const ofServers = FAULTS.filter((fault) => !ZOOKEEPER_FAULTS.includes(fault));
    const left = ofServers.filter(
      (fault) => !elsewhere.some((fitness) => fault.fits(fitness)) && !met.has(fault.name),
    );
    expect(left.map(({ name }) => name)).toEqual([]);
    rounds.expectAllInflicted();
  });

  it.each(NAMES)('was at work meanwhile: %s', (name) => rounds.expectAtWork(name));

  it.each(NAMES)('was judged by every rule that says something there, and has what those need: %s', (name) =>
    rounds.expectJudged(name),
  );

  it('never saw two holders in a quorum whose servers forgot nothing, or counted only when they had to know', () => {
    expect(overlapsIn(rounds.named('quorum of 5').events)).toBe(0);
  });
});
