import type { Unit } from '../comparison.js';

const SUFFIX: Record<Unit, string> = {
  '': '',
  ratio: '',
  '/s': '/s',
  µs: ' µs',
  ms: ' ms',
  '%': ' %',
  MB: ' MB',
  kB: ' kB',
};

const digitsOf = (value: number, unit: Unit): number => {
  const size = Math.abs(value);
  if (unit === 'ratio') return size < 1 ? 3 : size < 10 ? 2 : size < 100 ? 1 : 0;
  return Number.isInteger(value) || size >= 100 ? 0 : 1;
};

/** From here on microseconds are easier to read as milliseconds. */
const MANY_US = 10_000;

/** A number for people, with its unit. */
export const show = (value: number, unit: Unit): string => {
  if (unit === 'µs' && value >= MANY_US) return show(value / 1_000, 'ms');
  const digits = digitsOf(value, unit);
  // Without the sign that a little less than nothing would have.
  const rounded = Number(value.toFixed(digits)) || 0;
  const text = rounded.toLocaleString('en', { minimumFractionDigits: digits, maximumFractionDigits: digits });
  return text + SUFFIX[unit];
};

/** From the least to the greatest; empty for fewer than two. */
export const showSpread = (values: readonly number[], unit: Unit): string =>
  values.length < 2 ? '' : `${show(Math.min(...values), unit)} to ${show(Math.max(...values), unit)}`;

/** A mark of a scale: no digits that say nothing. */
export const showTick = (value: number, unit: Unit): string =>
  unit === 'µs' && value >= MANY_US
    ? showTick(value / 1_000, 'ms')
    : value.toLocaleString('en', { maximumSignificantDigits: 3 }) + SUFFIX[unit];
