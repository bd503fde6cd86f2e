import type { Snapshot } from '../demo/live/snapshot.js';

/** Returns a time in ms as seconds, with one digit behind the point. */
export const seconds = (ms: number): string => `${(Math.max(0, ms) / 1_000).toFixed(1)} s`;

/** Returns a number with its noun. */
export const times = (count: number, one: string, more = `${one}s`): string =>
  `${count} ${count === 1 ? one : more}`;

export const capital = (text: string): string => text.charAt(0).toUpperCase() + text.slice(1);

/** Returns what the page is about, in one line. */
export const about = ({ strategy, sales, lanes, store }: Snapshot): string => {
  const sale = sales.find((one) => one.strategy === strategy);
  if (!sale) return '';
  const crowd = sale.clicks > 0 ? `${times(sale.clicks, 'click')} want ` : '';
  return `${crowd}${times(sale.items, 'item')} · ${times(lanes.length, 'instance')} · locks in ${store}`;
};
