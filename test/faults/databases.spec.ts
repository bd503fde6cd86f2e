import { beforeAll, describe, expect, it } from 'vitest';
import { FAULTS } from './catalogue/index.js';
import type { Only } from './laboratory.js';
import { overlapsIn } from './rules/overlaps.js';
import { SingleRounds } from './single-rounds.js';
import { ON_DATABASES } from './topology/on-databases.js';
import { ON_ONE } from './topology/on-one.js';

/** What no Redis server has. */
const ON_SERVER = FAULTS.filter(
  (fault) =>
    ON_DATABASES.some((fitness) => fault.fits(fitness)) && !ON_ONE.some((fitness) => fault.fits(fitness)),
).map(({ name }) => name);
const CLOCK = 'clock of the database jumps';
const WITHOUT_CLOCK: Only = {
  among: ON_SERVER.filter((name) => name !== CLOCK),
  faults: ON_SERVER.length - 1,
  forMs: 8_000,
};
/** A round on each of these. Faults of workers and of the network between: npm run test:faults -- --topology MySQL. */
const ROUNDS: Readonly<Record<string, Only>> = {
  MySQL: WITHOUT_CLOCK,
  PostgreSQL: WITHOUT_CLOCK,
  'MySQL, with a clock that is set': { among: [CLOCK, 'cut'], faults: 2, forMs: 1_000 },
};
const TIMEOUT_MS = 400_000;

const rounds = new SingleRounds('1', 'databases.spec.ts', ROUNDS);
const NAMES = rounds.names;

beforeAll(() => rounds.run(), TIMEOUT_MS);

describe('the lock in a database, while its server fails', () => {
  it.each(NAMES)('keeps every promise: %s', (name) => rounds.expectKept(name));

  it('has met every kind of fault of a database', () => {
    expect(ON_SERVER.filter((name) => !rounds.inflicted().includes(name))).toEqual([]);
    rounds.expectAllInflicted();
  });

  it.each(NAMES)('was at work meanwhile: %s', (name) => rounds.expectAtWork(name));

  it.each(NAMES)('was judged by every rule that applies there, and has what it needs: %s', (name) =>
    rounds.expectJudged(name),
  );

  it.each(['MySQL', 'PostgreSQL'])('never saw two holders where no clock was set: %s', (name) => {
    expect(overlapsIn(rounds.named(name).events)).toBe(0);
  });
});
