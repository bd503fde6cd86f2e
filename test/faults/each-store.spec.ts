import { beforeAll, describe, expect, it } from 'vitest';
import type { Only } from './laboratory.js';
import { SingleRounds } from './single-rounds.js';

const few = (...among: string[]): Only => ({ among, faults: among.length, forMs: 2_000 });

/**
 * A short round on each store, with the faults that cost its users most. `npm run test:laboratory` has all faults, and
 * `npm run test:faults` many rounds.
 */
const ROUNDS: Readonly<Record<string, Only>> = {
  'with AOF': few('SIGSTOP Redis', 'cut', 'blocked event loop'),
  'quorum of 3, with AOF': few(
    'SIGKILL Redis, data kept',
    'client cut off from a minority',
    'SIGKILL worker',
  ),
  Sentinel: few('promotion', 'SIGSTOP worker'),
  Cluster: few('a master is killed', 'slot moves'),
  MySQL: few('SIGKILL database', 'rows locked', 'swallow reply'),
  PostgreSQL: few('SIGKILL database', 'rows locked', 'half-open'),
  ZooKeeper: few('leader killed', 'client cut off beyond its session'),
};
const TIMEOUT_MS = 400_000;

const rounds = new SingleRounds('1', 'each-store.spec.ts', ROUNDS);
const NAMES = rounds.names;

beforeAll(() => rounds.run(), TIMEOUT_MS);

describe('the lock on each store, while its servers, its workers and the network between fail', () => {
  it.each(NAMES)('keeps every promise: %s', (name) => rounds.expectKept(name));

  it('has met every fault', () => {
    expect(new Set(rounds.inflicted())).toEqual(new Set(Object.values(ROUNDS).flatMap(({ among }) => among)));
    rounds.expectAllInflicted();
  });

  it.each(NAMES)('was at work meanwhile: %s', (name) => rounds.expectAtWork(name));
});
