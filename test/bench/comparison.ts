import type { Contender } from './contenders.js';
import { median } from './measure/statistics.js';

/** `''` is a count. */
export type Unit = '' | 'ratio' | '/s' | 'µs' | 'ms' | '%' | 'MB' | 'kB';

/** Something that was measured of each contender. */
export interface Metric {
  /** For programs. */
  readonly key: string;
  /** For people: the head of a column. */
  readonly what: string;
  readonly unit: Unit;
  readonly better: 'more' | 'less';
}

/** What grows from point to point: callers, keys, milliseconds of delay. */
export interface Axis {
  readonly what: string;
  readonly points: readonly number[];
}

/** What one contender came to, at one point, in one round. */
export interface Sample {
  /** By the key of the metric. A metric without a value could not be measured. */
  readonly values: Readonly<Record<string, number | undefined>>;
  readonly violations: number;
  readonly failures: number;
  readonly firstFailure?: string | undefined;
}

/** What one contender came to at one point, over all rounds. */
export interface Row {
  readonly contender: Contender;
  readonly at: number | undefined;
  /** By the key of the metric, one value for each round in which there was one. */
  readonly values: Readonly<Record<string, number[]>>;
  /** Sections that were not alone. */
  violations: number;
  /** Calls that ended with an error. */
  failures: number;
  /** Why it could not be measured, or what its first error said. */
  trouble: string | undefined;
  /** No sample in some round: it did not finish. */
  broke: boolean;
}

export interface Comparison {
  readonly metrics: readonly Metric[];
  readonly axis: Axis | undefined;
  readonly rows: readonly Row[];
}

export const medianOf = (row: Row | undefined, metric: string): number | undefined => {
  const values = row?.values[metric] ?? [];
  return values.length > 0 ? median(values) : undefined;
};

export const rowOf = ({ rows }: Comparison, name: string, at?: number): Row | undefined =>
  rows.find((row) => row.contender.name === name && row.at === at);

/** In words what is wrong with a row; undefined when nothing is. */
export const troubleOf = (row: Row): string | undefined => {
  const parts: string[] = [];
  if (row.violations > 0) parts.push(`VIOLATES EXCLUSION (${row.violations.toLocaleString('en')} sections)`);
  if (row.broke) parts.push('did not finish');
  if (row.failures > 0) parts.push(`${row.failures.toLocaleString('en')} calls failed`);
  if (parts.length === 0) return undefined;
  return parts.join(', ') + (row.trouble === undefined ? '' : `: ${row.trouble}`);
};
