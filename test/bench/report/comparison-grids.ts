import { medianOf, troubleOf, type Comparison, type Metric, type Row } from '../comparison.js';
import { show, showSpread } from './format.js';
import type { Grid } from './grid.js';

const MISSING = '–';

const nameOf = ({ contender }: Row): string => contender.name;

const cell = (row: Row, { key, unit }: Metric, spread: boolean): string => {
  const middle = medianOf(row, key);
  if (middle === undefined) return MISSING;
  const range = spread ? showSpread(row.values[key]!, unit) : '';
  return show(middle, unit) + (range && ` (${range})`);
};

const withoutAxis = ({ metrics, rows }: Comparison, spread: boolean): Grid[] => [
  {
    caption: undefined,
    head: ['', ...metrics.map(({ what }) => what)],
    rows: rows.map((row) => [nameOf(row), ...metrics.map((metric) => cell(row, metric, spread))]),
  },
];

const alongAxis = ({ metrics, rows, axis }: Comparison, spread: boolean): Grid[] =>
  metrics.map((metric) => ({
    caption: metric.what,
    head: [axis!.what, ...axis!.points.map((point) => point.toLocaleString('en'))],
    rows: [...new Set(rows.map(nameOf))].map((name) => [
      name,
      ...axis!.points.map((point) =>
        cell(
          rows.find((row) => nameOf(row) === name && row.at === point)!,
          metric,
          spread,
        ),
      ),
    ]),
  }));

/** The tables of a comparison: one, or with an axis one for each metric. Medians, with the spread when it is asked for. */
export const gridsOf = (comparison: Comparison, { spread }: { readonly spread: boolean }): readonly Grid[] =>
  comparison.axis ? alongAxis(comparison, spread) : withoutAxis(comparison, spread);

/** A line for each contender with which something was wrong. */
export const troublesOf = ({ rows, axis }: Comparison): readonly string[] =>
  rows.flatMap((row) => {
    const trouble = troubleOf(row);
    if (trouble === undefined) return [];
    const where = row.at === undefined ? '' : `, ${axis!.what} ${row.at.toLocaleString('en')}`;
    return [`${nameOf(row)}${where}: ${trouble}`];
  });
