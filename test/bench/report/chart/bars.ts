import { medianOf, type Comparison, type Metric, type Row } from '../../comparison.js';
import { show } from '../format.js';
import type { Chart } from './chart.js';
import { element, image, rounded, text } from '../../../support/svg.js';

const NAMES = 190;
const COLUMN = 142;
const LABEL = 66;
const TOP = 92;
const ROW = 26;
const MARGIN = 20;

const GOOD: Record<Metric['better'], string> = { more: 'more is better', less: 'less is better' };

const twoLines = (what: string): readonly [string, string] => {
  if (what.length <= 18) return ['', what];
  const words = what.split(' ');
  const middle = words.findIndex((_word, at) => words.slice(0, at + 1).join(' ').length >= what.length / 2);
  return [words.slice(0, middle + 1).join(' '), words.slice(middle + 1).join(' ')];
};

/** A bar of each row in a column, on a scale from 0: all bars of one class are one element. */
const barsOf = (rows: readonly Row[], { key, unit }: Metric, x: number): readonly string[] => {
  const width = COLUMN - LABEL;
  const max = Math.max(...rows.flatMap((row) => row.values[key] ?? []), 0);
  const at = (value: number): number => x + (max > 0 ? (value / max) * width : 0);
  const cells = rows.map((row, index) => ({
    ...{ y: TOP + index * ROW + ROW / 2, value: medianOf(row, key), ours: row.contender.ours },
    values: row.values[key] ?? [],
  }));
  type Cell = (typeof cells)[number] & { readonly value: number };
  const measured = cells.filter((cell): cell is Cell => cell.value !== undefined);
  const lines = (kind: string, some: readonly Cell[], ends: (cell: Cell) => readonly number[]): string[] => {
    const d = some.map((cell) => {
      const [from, to] = ends(cell).map(rounded);
      return `M${from} ${cell.y}H${to}`;
    });
    return d.length === 0 ? [] : [element('path', { d: d.join(''), class: kind })];
  };
  const bar = ({ value }: Cell): readonly number[] => [x, Math.max(x + 1, at(value))];
  const least = ({ values }: Cell): number => Math.min(...values);
  const greatest = ({ values }: Cell): number => Math.max(...values);
  return [
    ...lines('track', measured, () => [x, x + width]),
    ...lines(
      'bar',
      measured.filter(({ ours }) => !ours),
      bar,
    ),
    ...lines(
      'bar-ours',
      measured.filter(({ ours }) => ours),
      bar,
    ),
    ...lines(
      'spread',
      measured.filter((cell) => greatest(cell) > least(cell)),
      (cell) => [at(least(cell)), at(greatest(cell))],
    ),
    ...cells.map(({ y, value, ours }) =>
      value === undefined
        ? text(x, y + 4, 'did not finish', { class: 'bad small' })
        : text(x + width + 5, y + 4, show(value, unit), { class: ours ? 'ours small' : 'small' }),
    ),
  ];
};

/** A row for each contender, a column for each metric, every column on a scale of its own from 0. */
export const bars = (chart: Extract<Chart, { kind: 'bars' }>, { metrics, rows }: Comparison): string => {
  const shown = chart.metrics.map((key) => metrics.find((metric) => metric.key === key)!);
  const width = MARGIN + NAMES + shown.length * COLUMN + MARGIN;
  const height = TOP + rows.length * ROW + MARGIN;
  const columns = shown.flatMap((metric, column) => {
    const x = MARGIN + NAMES + column * COLUMN;
    const [first, second] = twoLines(metric.what);
    return [
      ...(first === '' ? [] : [text(x, 52, first, { class: 'strong small' })]),
      text(x, 66, second, { class: 'strong small' }),
      text(x, 80, GOOD[metric.better], { class: 'small' }),
      ...barsOf(rows, metric, x),
    ];
  });
  const names = rows.flatMap((row, at) => {
    const y = TOP + at * ROW + ROW / 2;
    const name = text(MARGIN, y + 4, row.contender.name, { class: row.contender.ours ? 'ours' : 'strong' });
    return row.violations > 0
      ? [name, text(MARGIN, y + 16, 'violates exclusion', { class: 'bad small' })]
      : [name];
  });
  const description = rows
    .map((row) => {
      const values = shown.map((metric) => {
        const value = medianOf(row, metric.key);
        return `${metric.what} ${value === undefined ? 'not measured' : show(value, metric.unit)}`;
      });
      return `${row.contender.name}: ${values.join(', ')}`;
    })
    .join('; ');
  return image(width, height, chart.title, description, [...columns, ...names]);
};
