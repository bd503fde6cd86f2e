import { median } from '../measure/statistics.js';
import type { Finding } from '../workload.js';
import { show } from './format.js';

/** Whether the median is what it should be; undefined when nothing was asked for, or nothing measured. */
export const isMet = ({ target, values }: Finding): boolean | undefined => {
  if (!target || values.length === 0) return undefined;
  const measured = median(values);
  return 'atLeast' in target ? measured >= target.atLeast : measured <= target.atMost;
};

export const targetText = ({ target, unit }: Finding): string => {
  if (!target) return '';
  return 'atLeast' in target ? `≥ ${show(target.atLeast, unit)}` : `≤ ${show(target.atMost, unit)}`;
};
