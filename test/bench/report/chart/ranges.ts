import { medianOf, type Comparison } from '../../comparison.js';
import { show, showTick } from '../format.js';
import type { Chart } from './chart.js';
import { scaleFor } from './scale.js';
import { circle, image, line, text } from '../../../support/svg.js';

const WIDTH = 860;
const NAMES = 210;
const RIGHT = 80;
const TOP = 84;
const ROW = 32;
const BOTTOM = 44;
const MARGIN = 20;

/** A row for each contender: from the least to the greatest of the metrics, with a dot at each. */
export const ranges = (chart: Extract<Chart, { kind: 'ranges' }>, { metrics, rows }: Comparison): string => {
  const shown = chart.metrics.map((key) => metrics.find((metric) => metric.key === key)!);
  const { unit } = shown[0]!;
  const all = rows.flatMap((row) => shown.map(({ key }) => medianOf(row, key) ?? 0));
  const scale = scaleFor(all, NAMES, WIDTH - RIGHT);
  const bottom = TOP + rows.length * ROW;
  const ticks = scale.ticks.flatMap((tick) => [
    line(scale.at(tick), TOP - 8, scale.at(tick), bottom, 'grid'),
    text(scale.at(tick), bottom + 18, showTick(tick, unit), { 'text-anchor': 'middle', class: 'small' }),
  ]);
  const drawn = rows.flatMap((row, at) => {
    const y = TOP + at * ROW + ROW / 2;
    const values = shown.map(({ key }) => medianOf(row, key)).filter((value) => value !== undefined);
    const { ours, name } = row.contender;
    const label = text(MARGIN, y + 4, name, { class: ours ? 'ours' : 'strong' });
    const last = values.at(-1);
    if (last === undefined)
      return [label, text(NAMES, y + 4, row.trouble ?? 'did not finish', { class: 'bad small' })];
    return [
      label,
      line(scale.at(values[0]!), y, scale.at(last), y, ours ? 'line-ours' : 'line'),
      ...values.map((value) => circle(scale.at(value), y, ours ? 5 : 4, ours ? 'dot-ours' : 'dot')),
      text(scale.at(last) + 10, y + 4, show(last, unit), { class: ours ? 'ours small' : 'small' }),
    ];
  });
  const legend = text(
    NAMES,
    54,
    `Dots: ${shown.map(({ what }) => what).join(', ')} of the calls at most so long; less is better${scale.isLogarithmic ? '; logarithmic' : ''}`.replace(
      'half of the calls',
      'half',
    ),
    { class: 'small' },
  );
  const description = rows
    .map((row) => {
      const values = shown.map(({ key, what }) => {
        const value = medianOf(row, key);
        return `${what} ${value === undefined ? 'not measured' : show(value, unit)}`;
      });
      return `${row.contender.name}: ${values.join(', ')}`;
    })
    .join('; ');
  return image(WIDTH, bottom + BOTTOM, chart.title, description, [...ticks, ...drawn, legend]);
};
