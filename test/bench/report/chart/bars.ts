import { medianOf, type Comparison, type Metric, type Row } from '../../comparison.js';
import { show } from '../format.js';
import type { Chart } from './chart.js';
import { element, image, line, text } from '../../../support/svg.js';

const NAMES = 190;
const COLUMN = 142;
const LABEL = 66;
const TOP = 92;
const ROW = 26;
const BAR = 12;
const MARGIN = 20;

const GOOD: Record<Metric['better'], string> = { more: 'more is better', less: 'less is better' };

const twoLines = (what: string): readonly [string, string] => {
  if (what.length <= 18) return ['', what];
  const words = what.split(' ');
  const middle = words.findIndex((_word, at) => words.slice(0, at + 1).join(' ').length >= what.length / 2);
  return [words.slice(0, middle + 1).join(' '), words.slice(middle + 1).join(' ')];
};

const oneBar = (row: Row, { key, unit }: Metric, max: number, x: number, y: number): string => {
  const value = medianOf(row, key);
  const width = COLUMN - LABEL;
  if (value === undefined) return text(x, y + 4, 'did not finish', { class: 'bad small' });
  const at = (one: number): number => x + (max > 0 ? (one / max) * width : 0);
  const values = row.values[key]!;
  const [least, greatest] = [Math.min(...values), Math.max(...values)];
  const kind = row.contender.ours ? 'ours' : undefined;
  return [
    element('rect', { x, y: y - BAR / 2, width, height: BAR, class: 'track', rx: 2 }),
    element('rect', {
      x,
      y: y - BAR / 2,
      width: Math.max(1, at(value) - x),
      height: BAR,
      class: kind ? 'bar-ours' : 'bar',
      rx: 2,
    }),
    ...(greatest > least ? [line(at(least), y, at(greatest), y, 'spread')] : []),
    text(x + width + 5, y + 4, show(value, unit), { class: kind ? 'ours small' : 'small' }),
  ].join('');
};

/** A row for each contender, a column for each metric, every column on a scale of its own from 0. */
export const bars = (chart: Extract<Chart, { kind: 'bars' }>, { metrics, rows }: Comparison): string => {
  const shown = chart.metrics.map((key) => metrics.find((metric) => metric.key === key)!);
  const width = MARGIN + NAMES + shown.length * COLUMN + MARGIN;
  const height = TOP + rows.length * ROW + MARGIN;
  const columns = shown.flatMap((metric, column) => {
    const x = MARGIN + NAMES + column * COLUMN;
    const max = Math.max(...rows.flatMap((row) => row.values[metric.key] ?? []), 0);
    const [first, second] = twoLines(metric.what);
    return [
      text(x, 52, first, { class: 'strong small' }),
      text(x, 66, second, { class: 'strong small' }),
      text(x, 80, GOOD[metric.better], { class: 'small' }),
      ...rows.map((row, at) => oneBar(row, metric, max, x, TOP + at * ROW + ROW / 2)),
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
