import { beforeAll, describe, expect, it } from 'vitest';
import type { EventType } from '../checker/history.js';
import { AFTERWARDS } from '../checker/rules/afterwards.rule.js';
import { failureOf, kindsNamed, runLaboratory, type Only } from './laboratory.js';
import { reportOf } from './report/report.js';
import type { RoundResult } from './round.js';
import { APPLIED } from './rules/applied.js';

const TIMEOUT_MS = 400_000;

/** Tests of a short round on each of some topologies, with the faults that cost its users most. */
export const describeShortRounds = (
  file: string,
  among: Readonly<Record<string, readonly string[]>>,
): void => {
  const few = Object.entries(among).map(([name, faults]) => [
    name,
    { among: faults, faults: faults.length, forMs: 2_000 },
  ]);
  const rounds = new SingleRounds('1', file, Object.fromEntries(few) as Readonly<Record<string, Only>>);
  const { names } = rounds;

  beforeAll(() => rounds.run(), TIMEOUT_MS);

  describe('the lock, while its servers, its workers and the network between fail', () => {
    it.each(names)('keeps every promise: %s', (name) => rounds.expectKept(name));

    it('has met every fault', () => {
      expect(new Set(rounds.inflicted())).toEqual(new Set(Object.values(among).flat()));
      rounds.expectAllInflicted();
    });

    it.each(names)('was at work meanwhile: %s', (name) => rounds.expectAtWork(name));
  });
};

/** One round on each of some topologies, which the tests of a file share. */
export class SingleRounds {
  private readonly results = new Map<string, RoundResult>();

  /**
   * @param file the tests that run it
   * @param rounds the topologies by their names, each with its faults
   */
  constructor(
    private readonly seed: string,
    private readonly file: string,
    private readonly rounds: Readonly<Record<string, Only>>,
  ) {}

  get names(): readonly string[] {
    return Object.keys(this.rounds);
  }

  async run(): Promise<void> {
    const { seed, rounds: only } = this;
    console.log(`seed ${seed}`);
    for (const name of this.names) {
      const kinds = { [name]: kindsNamed([name])[name]! };
      for await (const result of runLaboratory({ seed, kinds, rounds: [0], only }))
        this.results.set(name, result);
    }
  }

  named(name: string): RoundResult {
    return this.results.get(name)!;
  }

  /** The faults of all rounds. */
  inflicted(): string[] {
    return [...this.results.values()].flatMap(({ inflicted }) =>
      inflicted.map(({ planned }) => planned.fault),
    );
  }

  /** Expects that each fault of the rounds was inflicted. */
  expectAllInflicted(): void {
    const planned = Object.values(this.rounds).reduce((sum, { faults }) => sum + faults, 0);
    expect(this.inflicted()).toHaveLength(planned);
  }

  /** Throws the report when a promise was broken. */
  expectKept(name: string): void {
    const result = this.named(name);
    const failure = failureOf(this.seed, 0, result);
    const again = `${failure.title}: npx vitest run test/faults/${this.file}`;
    if (result.violations.length > 0) throw new Error(reportOf({ ...failure, again }));
  }

  /** Expects that callers were served meanwhile and afterwards. */
  expectAtWork(name: string): void {
    const { events, shape } = this.named(name);
    const count = (type: EventType): number => events.filter((event) => event.type === type).length;
    expect(count('granted')).toBeGreaterThan(100);
    const isJudgedAfterwards = APPLIED.some(({ rule, on }) => rule === 'dead key' && on.includes(shape));
    expect(events.some((event) => event.type === 'call' && event.style === AFTERWARDS)).toBe(
      isJudgedAfterwards,
    );
    expect(
      events.filter((event) => event.type === 'register' && event.what === 'write').length,
    ).toBeGreaterThan(100);
  }

  /** Expects that the history has what each rule needs that applies there. */
  expectJudged(name: string): void {
    const { events, shape } = this.named(name);
    const written = new Set(events.map(({ type }) => type));
    for (const { rule, on, needs } of APPLIED) {
      const has = needs.filter((type) => written.has(type));
      // A rule that does not apply has nothing to go by.
      expect([rule, has]).toEqual([rule, on.includes(shape) ? needs : has]);
      if (!on.includes(shape) && needs.includes('hold')) expect([rule, has]).toEqual([rule, []]);
    }
  }
}
