import { beforeAll, describe, expect, it } from 'vitest';
import type { EventType } from '../checker/history.js';
import { AFTERWARDS } from '../checker/rules/afterwards.rule.js';
import { FAULTS } from './catalogue/index.js';
import { failureOf, kindsNamed, runLaboratory, type Only } from './laboratory.js';
import { reportOf } from './report/report.js';
import type { RoundResult } from './round.js';
import { APPLIED } from './rules/applied.js';
import { overlapsIn } from './rules/overlaps.js';
import { ON_ONE } from './topology/on-one.js';

/** A round on each of these, with these faults; together they have all that one server has not. More: npm run test:faults. */
const SEED = '1';
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
const NAMES = Object.keys(ROUNDS);
const TIMEOUT_MS = 400_000;

const results = new Map<string, RoundResult>();

beforeAll(async () => {
  for (const name of NAMES) {
    const kinds = { [name]: kindsNamed([name])[name]! };
    for await (const result of runLaboratory({ seed: SEED, kinds, rounds: [0], only: ROUNDS })) {
      results.set(name, result);
    }
  }
}, TIMEOUT_MS);

const named = (name: string): RoundResult => results.get(name)!;

describe('the lock on several servers, while they and what is between them fail', () => {
  it.each(NAMES)('keeps every promise: %s', (name) => {
    const result = named(name);
    const again = `${failureOf(SEED, 0, result).title}: npx vitest run test/faults/many.spec.ts`;
    const failure = { ...failureOf(SEED, 0, result), again };
    if (result.violations.length > 0) throw new Error(reportOf(failure));
  });

  it('has met every kind of fault that one server has not', () => {
    const met = new Set(
      [...results.values()].flatMap(({ inflicted }) => inflicted.map(({ planned }) => planned.fault)),
    );
    const left = FAULTS.filter(
      (fault) => !ON_ONE.some((fitness) => fault.fits(fitness)) && !met.has(fault.name),
    );
    expect(left.map(({ name }) => name)).toEqual([]);
    expect([...results.values()].flatMap(({ inflicted }) => inflicted)).toHaveLength(
      Object.values(ROUNDS).reduce((sum, { faults }) => sum + faults, 0),
    );
  });

  it.each(NAMES)('was at work meanwhile: %s', (name) => {
    const { events } = named(name);
    const count = (type: EventType): number => events.filter((event) => event.type === type).length;
    expect(count('granted')).toBeGreaterThan(100);
    expect(events.some((event) => event.type === 'call' && event.style === AFTERWARDS)).toBe(true);
    expect(
      events.filter((event) => event.type === 'register' && event.what === 'write').length,
    ).toBeGreaterThan(100);
  });

  it.each(NAMES)(
    'was judged by every rule that says something there, and has what those need: %s',
    (name) => {
      const { events, shape } = named(name);
      const written = new Set(events.map(({ type }) => type));
      for (const { rule, on, needs } of APPLIED) {
        const has = needs.filter((type) => written.has(type));
        // One that does not apply has nothing to go by.
        expect([rule, has]).toEqual([rule, on.includes(shape) ? needs : has]);
        if (!on.includes(shape) && needs.includes('hold')) expect([rule, has]).toEqual([rule, []]);
      }
    },
  );

  it('never saw two holders in a quorum whose servers forgot nothing, or counted only when they had to know', () => {
    expect(overlapsIn(named('quorum of 5').events)).toBe(0);
  });
});
