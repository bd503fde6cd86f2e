import type { StrategyName } from '../flash-sale/strategies/strategy-names.js';
import type { DemoOptions } from './options.js';
import type { Paint } from './paint.js';
import { INSTANCES, UNDER_FAULTS } from './run-sale.js';

/** Returns the number of instances in words. */
export const instancesOf = (count: number): string => `${count} instance${count === 1 ? '' : 's'}`;

/** What each strategy does, and its seconds for 2,000 buyers on two cores. */
const STRATEGIES: Readonly<Record<StrategyName, { readonly does: string; readonly seconds: number }>> = {
  none: { does: 'reads, then writes; nothing keeps two buyers apart', seconds: 18 },
  optimistic: { does: 'writes if nobody has written meanwhile, or reads again', seconds: 20 },
  sql: { does: 'takes a piece with one conditional UPDATE', seconds: 10 },
  locked: { does: '@Locked on the method', seconds: 28 },
  manual: { does: 'the same lock by hand, with LockService', seconds: 20 },
};

const USUAL_BUYERS = 2_000;
/** Minimum duration of a sale: three instances start and stop. */
const MIN_SECONDS = 3;
/** Two leases run out in the sale with faults. */
const FAULT_SECONDS = 5;

const WHY = `Why lock, when sql is as right, and faster? If all you change is in one database, do use
its UPDATE. Here each order is also paid, and no database takes a payment back: after a
crash between the order and the charge sql has an order, and nobody knows whether it is paid.
A lock makes one piece of both.`;

const FAULTS = '; one instance is stopped, one killed';

/** Returns what is about to happen, why, and how long it takes. */
export const introduction = (
  { buyers, items, strategies }: DemoOptions,
  instances: number,
  paint: Paint,
): string => {
  const hasFaults = (name: StrategyName): boolean => name === UNDER_FAULTS && instances >= INSTANCES;
  const secondsOf = (name: StrategyName): number => {
    const min = MIN_SECONDS + (hasFaults(name) ? FAULT_SECONDS : 0);
    return Math.round(min + ((STRATEGIES[name].seconds - min) * buyers) / USUAL_BUYERS);
  };
  const seconds = strategies.reduce((sum, name) => sum + secondsOf(name), 0);
  const whole = seconds < 90 ? `${seconds} seconds` : `${Math.round(seconds / 60)} minutes`;
  const width = Math.max(...strategies.map((name) => name.length));
  const lines = strategies.map((name) => {
    const time = paint('aside', `(${secondsOf(name)} s)`);
    const does = STRATEGIES[name].does + (hasFaults(name) ? FAULTS : '');
    return `  ${paint('name', name)}${' '.repeat(width - name.length)}  ${does} ${time}`;
  });
  const why = strategies.includes('sql') ? `\n${WHY.replaceAll('\n', ' ')}\n` : '';
  return `
${buyers} buyers want ${items} items; every tenth clicks five times. The app sells with ${instancesOf(instances)}, once with each strategy:
${lines.join('\n')}
${why}
It takes about ${whole} on two cores.
`;
};
