import type { Comparison } from '../../comparison.js';
import { bars } from './bars.js';
import type { Chart } from './chart.js';
import { lines } from './lines.js';
import { ranges } from './ranges.js';

/** The chart as an SVG file, for light and dark pages. */
export const chartSvg = (chart: Chart, comparison: Comparison): string => {
  switch (chart.kind) {
    case 'bars':
      return bars(chart, comparison);
    case 'ranges':
      return ranges(chart, comparison);
    case 'lines':
      return lines(chart, comparison);
  }
};
