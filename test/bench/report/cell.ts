import { medianOf, rowOf, type Comparison, type Metric } from '../comparison.js';
import { show } from './format.js';

/** The median of a contender in one metric, as a reader sees it. */
export const cellOf = (
  comparison: Comparison,
  name: string,
  metric: Metric,
  at: number | undefined,
): string => {
  const value = medianOf(rowOf(comparison, name, at), metric.key);
  return value === undefined ? 'did not finish' : show(value, metric.unit);
};
