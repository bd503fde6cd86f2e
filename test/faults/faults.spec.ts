import { beforeAll, describe, expect, it } from 'vitest';
import { FAULTS } from './catalogue/index.js';
import { failureOf, KINDS, runLaboratory } from './laboratory.js';
import { reportOf } from './report/report.js';
import type { RoundResult } from './round.js';
import { ON_ONE } from './topology/on-one.js';

/** Chosen so that these few rounds have every kind of fault. More: npm run test:faults. */
const SEED = '1';
const ROUNDS = [0, 1, 2, 4, 5];
const TIMEOUT_MS = 400_000;

const results = new Map<number, RoundResult>();

beforeAll(async () => {
  let i = 0;
  for await (const result of runLaboratory({ seed: SEED, kinds: KINDS, rounds: ROUNDS }))
    results.set(ROUNDS[i++]!, result);
}, TIMEOUT_MS);

describe('the lock while servers, workers and the network between them fail', () => {
  it.each(ROUNDS)('keeps every promise in round %i', (round) => {
    const result = results.get(round)!;
    if (result.violations.length > 0) throw new Error(reportOf(failureOf(SEED, round, result)));
  });

  it('has met every kind of fault, on every topology', () => {
    const met = [...results.values()].flatMap(({ inflicted }) =>
      inflicted.map(({ planned }) => planned.fault),
    );
    const fitting = FAULTS.filter((fault) => ON_ONE.some((fitness) => fault.fits(fitness)));
    expect(new Set(met)).toEqual(new Set(fitting.map(({ name }) => name)));
    expect(new Set([...results.values()].map(({ topology }) => topology)).size).toBe(
      Object.keys(KINDS).length,
    );
  });

  it('was at work meanwhile: locks were given, and callers of every style came', () => {
    for (const { events } of results.values()) {
      const styles = new Set(events.map((event) => (event.type === 'call' ? event.style : '')));
      for (const style of [
        'withLock',
        'acquire',
        'tryAcquire',
        'locked',
        'locked, fixed',
        'locked, skip',
        'locked, two keys',
        'withLock, fair',
        'acquire, fair',
        'tryAcquire, fair',
        'locked, fair',
        'withPermit',
        'acquirePermit',
        'tryAcquirePermit',
      ]) {
        expect(styles).toContain(style);
      }
      const modes = new Set(events.map((event) => (event.type === 'call' ? event.mode : undefined)));
      expect(modes).toEqual(new Set(['read', 'write', undefined]));
      const granted = events.filter(({ type }) => type === 'granted').length;
      const written = events.filter((event) => event.type === 'register' && event.what === 'write').length;
      expect(granted).toBeGreaterThan(100);
      expect(written).toBeGreaterThan(100);
    }
  });
});
