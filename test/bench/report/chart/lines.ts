import { medianOf, type Comparison, type Row } from '../../comparison.js';
import { show, showTick } from '../format.js';
import type { Chart } from './chart.js';
import { spreadOut } from './labels.js';
import { linear, scaleFor, type Scale } from './scale.js';
import { circle, cross, element, image, line, text } from '../../../support/svg.js';

const WIDTH = 860;
const HEIGHT = 440;
const LEFT = 84;
const RIGHT = 250;
const TOP = 72;
const BOTTOM = 62;
const LABEL_GAP = 16;

interface Point {
  readonly x: number;
  readonly y: number;
  readonly value: number;
}

interface Line {
  readonly name: string;
  readonly ours: boolean;
  readonly points: readonly Point[];
  /** It has no value at the last point. */
  readonly ended: boolean;
}

const END = WIDTH - RIGHT;
const GROUND = HEIGHT - BOTTOM;

/** Along the axis: logarithmic where that is possible, so that each step is as wide as it is large. */
const across = (points: readonly number[]): ((point: number) => number) => {
  if (points.length === 1) return () => (LEFT + END) / 2;
  const position = points.every((point) => point > 0) ? Math.log10 : (point: number) => point;
  const [first, last] = [position(points[0]!), position(points.at(-1)!)];
  return (point) => LEFT + 14 + ((position(point) - first) / (last - first)) * (END - LEFT - 28);
};

const lineOf = (
  rows: readonly Row[],
  metric: string,
  x: (point: number) => number,
  scale: Scale,
): Line | undefined => {
  const points = rows.flatMap((row): Point[] => {
    const value = medianOf(row, metric);
    return value === undefined ? [] : [{ x: x(row.at!), y: scale.at(value), value }];
  });
  if (points.length === 0) return undefined;
  const { contender, at } = rows[0]!;
  return {
    name: contender.name,
    ours: contender.ours ?? false,
    points,
    ended: at !== undefined && medianOf(rows.at(-1), metric) === undefined,
  };
};

const drawn = ({ points, ours, ended }: Line): string => {
  const kind = ours ? 'line-ours' : 'line';
  const path = points
    .map(({ x, y }, at) => `${at === 0 ? 'M' : 'L'}${x.toFixed(1)} ${y.toFixed(1)}`)
    .join('');
  const last = points.at(-1)!;
  return [
    element('path', { d: path, class: kind }),
    ...points.map(({ x, y }) => circle(x, y, ours ? 4.5 : 3, ours ? 'dot-ours' : 'dot')),
    ...(ended ? [cross(last.x, last.y)] : []),
  ].join('');
};

/** One line for each contender, named where it ends. */
export const lines = (
  chart: Extract<Chart, { kind: 'lines' }>,
  { metrics, rows, axis }: Comparison,
): string => {
  const metric = metrics.find(({ key }) => key === chart.metric)!;
  const values = rows.map((row) => medianOf(row, metric.key)).filter((value) => value !== undefined);
  const isShare = metric.unit === '%' || metric.key === 'jain';
  const scale = isShare ? linear(metric.unit === '%' ? 100 : 1, GROUND, TOP) : scaleFor(values, GROUND, TOP);
  const x = across(axis!.points);

  const ticks = scale.ticks.flatMap((tick) => [
    line(LEFT, scale.at(tick), END, scale.at(tick), 'grid'),
    text(LEFT - 8, scale.at(tick) + 4, showTick(tick, metric.unit), { 'text-anchor': 'end', class: 'small' }),
  ]);
  const marks = axis!.points.map((point) =>
    text(x(point), GROUND + 20, point.toLocaleString('en'), { 'text-anchor': 'middle', class: 'small' }),
  );
  const names = [...new Set(rows.map(({ contender }) => contender.name))];
  const all = names
    .map((name) =>
      lineOf(
        rows.filter(({ contender }) => contender.name === name),
        metric.key,
        x,
        scale,
      ),
    )
    .filter((one) => one !== undefined)
    // Ours last: on top of the others.
    .sort((a, b) => Number(a.ours) - Number(b.ours));
  const labels = spreadOut(
    all.map((one) => ({ ...one, wanted: one.points.at(-1)!.y })),
    LABEL_GAP,
    TOP,
    GROUND,
  ).flatMap(({ label, y }) => {
    const last = label.points.at(-1)!;
    const said = label.ended ? 'did not finish' : show(last.value, metric.unit);
    const kind = label.ended ? 'bad small' : label.ours ? 'ours small' : 'small';
    return [
      element('path', { d: `M${last.x + 6} ${last.y}L${END + 10} ${y}`, class: 'leader' }),
      text(END + 14, y + 4, `${label.name}  ${said}`, { class: kind }),
    ];
  });
  const better = metric.better === 'more' ? 'more is better' : 'less is better';
  const parts = [
    text(20, 52, `${metric.what}: ${better}${scale.isLogarithmic ? '; logarithmic' : ''}`, {
      class: 'small',
    }),
    ...ticks,
    line(LEFT, GROUND, END, GROUND, 'axis'),
    ...marks,
    text((LEFT + END) / 2, GROUND + 44, axis!.what, { 'text-anchor': 'middle' }),
    ...labels,
    ...all.map(drawn),
  ];
  const description = all
    .map(({ name, points }) => `${name}: ${points.map(({ value }) => show(value, metric.unit)).join(', ')}`)
    .join('; ');
  return image(
    WIDTH,
    HEIGHT,
    chart.title,
    `${metric.what} at ${axis!.what} ${axis!.points.join(', ')}. ${description}`,
    parts,
  );
};
