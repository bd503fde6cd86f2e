import type { Axis, Comparison, Metric, Row, Sample } from '../comparison.js';
import type { Contender } from '../contenders.js';
import type { Bench } from '../workload.js';

export interface Plan {
  readonly title: string;
  readonly metrics: readonly Metric[];
  readonly contenders: readonly Contender[];
  readonly axis?: Axis;
  readonly rounds: number;
  /** Measures one contender at one point; an error says that it did not finish. */
  measure(contender: Contender, at: number, round: number): Promise<Sample>;
  /** After all points of a contender in a round. */
  done?(contender: Contender): Promise<void>;
}

/** What nothing is known of yet. */
export const emptyRow = (contender: Contender, at: number | undefined, metrics: readonly Metric[]): Row => ({
  contender,
  at,
  values: Object.fromEntries(metrics.map(({ key }) => [key, []])),
  violations: 0,
  failures: 0,
  trouble: undefined,
  broke: false,
});

const firstLineOf = (error: unknown): string => String((error as Error).message ?? error).split('\n', 1)[0]!;

const note = (row: Row, { values, violations, failures, firstFailure }: Sample): void => {
  for (const [key, value] of Object.entries(values)) {
    if (value !== undefined && Number.isFinite(value)) row.values[key]!.push(value);
  }
  row.violations += violations;
  row.failures += failures;
  row.trouble ??= firstFailure;
};

/**
 * Measures all contenders, interleaved in rounds: there in one round and back in the next, so that what drifts does so
 * for all. A contender that breaks at a point is left out of it, and of the larger ones, from then on.
 */
export const compare = async ({ progress, crew }: Bench, plan: Plan): Promise<Comparison> => {
  const { contenders, metrics, axis, rounds } = plan;
  const points: readonly (number | undefined)[] = axis?.points ?? [undefined];
  const rows = contenders.map((contender) => points.map((at) => emptyRow(contender, at, metrics)));
  progress.begin(plan.title, rounds * contenders.length * points.length);
  for (let round = 0; round < rounds; round++) {
    for (let turn = 0; turn < rows.length; turn++) {
      const its = rows[round % 2 === 0 ? turn : rows.length - 1 - turn]!;
      const { contender } = its[0]!;
      for (const row of its) {
        if (its.some(({ broke }) => broke)) row.broke = true;
        else {
          try {
            note(row, await plan.measure(contender, row.at ?? 0, round));
          } catch (error) {
            row.broke = true;
            row.trouble = firstLineOf(error);
            await crew.dismissAllOf(contender);
          }
        }
        progress.step();
      }
      await plan.done?.(contender);
    }
  }
  return { metrics, axis, rows: rows.flat() };
};

/** Sections that were not alone, of those contenders that this repository answers for. */
export const ownViolations = ({ rows }: Comparison): number =>
  rows
    .filter(({ contender }) => contender.ours ?? contender.subject === 'floor')
    .reduce((total, row) => total + row.violations, 0);
