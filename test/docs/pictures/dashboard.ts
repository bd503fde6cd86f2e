import { dashboard, type Panel } from '../../support/dashboard.js';
import { element, image, rounded, text } from '../../support/svg.js';
import { linesOf, MINUTES, SAMPLES } from './metrics.js';

const WIDTH = 720;
const MARGIN = 20;
const TOP = 46;
const GAP = 8;
/** A unit of Grafana's grid: 24 of them are the width. */
const [UNIT_X, UNIT_Y] = [(WIDTH - 2 * MARGIN + GAP) / 24, 22];
/** Free space around the lines of a panel. */
const [LEFT, RIGHT, ABOVE, BELOW] = [50, 16, 30, 28];
/** Legends: height of a row, width of a column, and columns. */
const [LEGEND, LEGEND_WIDTH, LEGENDS_IN_A_ROW] = [15, 176, 2];
/** Every second sample is drawn: a rate has several. */
const DRAWN = 2;

/** A round distance of grid lines, of which two or three reach the greatest value. */
const stepFor = (max: number): number => {
  const power = 10 ** Math.floor(Math.log10(max));
  return [0.2, 0.5, 1, 2, 5].map((factor) => factor * power).find((step) => max / step <= 3)!;
};

const shown = (value: number, unit: string): string =>
  unit !== 's' || value === 0 ? String(value) : value < 1 ? `${Math.round(value * 1_000)} ms` : `${value} s`;

const numberAt = (x: number, y: number, number: string): string =>
  text(x, y, number, { class: 'small', 'text-anchor': 'end' });

/** A line through whole pixels. A sample without a value is a gap. */
const pathOf = (points: readonly (readonly [x: number, y: number])[]): string => {
  let from: readonly [x: number, y: number] | undefined;
  const steps = points.map(([x, y]) => {
    const [before, to] = [from, [rounded(x), rounded(y)] as const];
    from = Number.isNaN(y) ? undefined : to;
    if (!from) return '';
    return before ? ` ${to[0] - before[0]} ${to[1] - before[1]}` : `M${to[0]} ${to[1]}l0 0`;
  });
  return steps.join('').replaceAll(' -', '-');
};

const panelOf = ({ title, gridPos, fieldConfig, targets }: Panel): readonly string[] => {
  const { unit } = fieldConfig.defaults;
  const lines = targets.flatMap(linesOf);
  const [x, y] = [MARGIN + gridPos.x * UNIT_X, TOP + gridPos.y * UNIT_Y];
  const [width, height] = [gridPos.w * UNIT_X - GAP, gridPos.h * UNIT_Y - GAP];
  const legendRows = Math.ceil(lines.length / LEGENDS_IN_A_ROW);
  const [left, right] = [x + LEFT, x + width - RIGHT];
  const [top, bottom] = [y + ABOVE, y + height - BELOW - legendRows * LEGEND];
  const max = Math.max(0, ...lines.flatMap(({ values }) => values.filter((value) => value > 0))) || 1;
  const step = stepFor(max);
  const ceiling = step * Math.ceil(max / step);
  const atValue = (value: number): number => bottom - (value / ceiling) * (bottom - top);
  const atSample = (at: number): number => left + ((at + 1) / SAMPLES) * (right - left);
  const ticks = Array.from({ length: Math.round(ceiling / step) + 1 }, (_, at) =>
    Number((at * step).toPrecision(3)),
  );
  return [
    element('rect', { x, y, width, height, rx: 3, class: 'box' }),
    text(x + 12, y + 19, title, { class: 'strong' }),
    element('path', {
      d: ticks.map((tick) => `M${rounded(left)} ${rounded(atValue(tick))}H${rounded(right)}`).join(''),
      class: 'grid',
    }),
    ...ticks.map((tick) => numberAt(left - 6, atValue(tick) + 4, shown(tick, unit))),
    numberAt(left + 4, bottom + 15, '0'),
    numberAt(right, bottom + 15, `${MINUTES} min`),
    ...lines.flatMap(({ legend, values }, at) => {
      const legendX = x + 12 + (at % LEGENDS_IN_A_ROW) * LEGEND_WIDTH;
      const legendY = y + height - 10 - (legendRows - 1 - Math.floor(at / LEGENDS_IN_A_ROW)) * LEGEND;
      const points = values
        .map((value, sample) => [atSample(sample), atValue(value)] as const)
        .filter((_, sample) => sample % DRAWN === DRAWN - 1);
      const mark = legend === '' ? '' : `M${rounded(legendX)} ${legendY - 4}h10`;
      return [
        element('path', { d: pathOf(points) + mark, class: `series s${at}` }),
        ...(legend === '' ? [] : [text(legendX + 14, legendY, legend, { class: 'small' })]),
      ];
    }),
  ];
};

/** Draws the dashboard: its panels on Grafana's grid, with the recorded metrics. */
export const dashboardSvg = (): string => {
  const height = Math.max(...dashboard.panels.map(({ gridPos }) => gridPos.y + gridPos.h)) * UNIT_Y;
  return image(
    WIDTH,
    TOP + height + MARGIN - GAP,
    dashboard.title,
    'Seven panels: waits, holds, held locks, waiting calls, taken locks, lost locks and outages, over ten minutes of two labels.',
    dashboard.panels.flatMap(panelOf),
  );
};
