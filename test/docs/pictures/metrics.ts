import { readFileSync } from 'node:fs';
import { groupedBy, selected, type Panel } from '../../support/dashboard.js';

/** Samples of a rate: as `$__rate_interval`, four times the time between two. */
const RATE = 4;
const recorded = JSON.parse(readFileSync(new URL('./metrics.json', import.meta.url), 'utf8')) as {
  readonly everyS: number;
  readonly changes: Readonly<Record<string, string>>;
};

interface Series {
  readonly name: string;
  readonly labels: Readonly<Record<string, string>>;
  /** Changes since the sample before. */
  readonly changes: readonly number[];
}

const ALL: readonly Series[] = Object.entries(recorded.changes).map(([series, changes]) => ({
  name: series.split('{')[0]!,
  labels: Object.fromEntries(
    [...series.matchAll(/(\w+)="([^"]*)"/g)].map(([, label, value]) => [label, value]),
  ),
  changes: changes.split(' ').map(Number),
}));
/** Number of samples, at the same distance, and their time. */
export const SAMPLES = ALL[0]!.changes.length;
export const MINUTES = (SAMPLES * recorded.everyS) / 60;

const sum = (values: readonly number[]): number => values.reduce((total, value) => total + value, 0);
/** Sums of all values up to each sample, or of the last ones. */
const sums = (changes: readonly number[], last = SAMPLES): readonly number[] =>
  changes.map((_, at) => sum(changes.slice(Math.max(0, at + 1 - last), at + 1)));

/** Quantile of one sample, in a straight line within its bucket, as in Prometheus; NaN without an observation. */
const quantileOf = (quantile: number, buckets: readonly (readonly [le: number, count: number])[]): number => {
  const rank = quantile * buckets.at(-1)![1];
  const at = buckets.findIndex(([, count]) => count >= rank && count > 0);
  if (at < 0) return NaN;
  const [le, count] = buckets[at]!;
  const [lower, before] = buckets[at - 1] ?? [0, 0];
  return le === Infinity ? lower : lower + ((le - lower) * (rank - before)) / (count - before);
};

/** A line of a panel: a value for each sample. */
export interface Line {
  readonly legend: string;
  readonly values: readonly number[];
}

const grouped = (
  all: readonly Series[],
  keyOf: (series: Series) => string,
): ReadonlyMap<string, Series[]> => {
  const groups = new Map<string, Series[]>();
  for (const series of all) groups.set(keyOf(series), [...(groups.get(keyOf(series)) ?? []), series]);
  return groups;
};

/** Sums of series at each sample: all of what they have counted, or the last samples alone. */
const total = (some: readonly Series[], last?: number): readonly number[] =>
  sums(
    Array.from({ length: SAMPLES }, (_, at) => sum(some.map(({ changes }) => changes[at]!))),
    last,
  );

const quantilesOf = (quantile: number, series: readonly Series[]): readonly number[] => {
  const buckets = [...grouped(series, ({ labels }) => labels['le']!.replace('+Inf', 'Infinity'))]
    .map(([le, some]) => [Number(le), total(some, RATE)] as const)
    .sort(([a], [b]) => a - b);
  return Array.from({ length: SAMPLES }, (_, at) =>
    quantileOf(
      quantile,
      buckets.map(([le, counts]) => [le, counts[at]!] as const),
    ),
  );
};

/** Evaluates an expression of the dashboard: a sum of gauges, an increase, or a quantile of a histogram. */
export const linesOf = ({ expr, legendFormat }: Panel['targets'][number]): readonly Line[] => {
  const name = new RegExp(`^(?:${selected(expr)[0]!})$`);
  const by = groupedBy(expr).filter((label) => label !== 'le');
  const found = ALL.filter((series) => name.test(series.name));
  const groups = grouped(found, ({ labels }) => JSON.stringify(by.map((label) => labels[label])));
  const quantile = /histogram_quantile\(([\d.]+)/.exec(expr)?.[1];
  return [...groups.values()].map((series) => ({
    legend: legendFormat.replace(/\{\{(\w+)\}\}/g, (_, label: string) => series[0]!.labels[label] ?? ''),
    values: quantile
      ? quantilesOf(Number(quantile), series)
      : total(series, expr.includes('increase(') ? RATE : undefined),
  }));
};
