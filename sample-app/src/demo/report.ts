import type { SaleReport } from './run-sale.js';
import { table } from './table.js';

const HEAD = [
  'strategy',
  'sold',
  'oversold',
  'double orders',
  'charged twice',
  'refused',
  'stale writes refused',
  'p50 ms',
  'p99 ms',
  'longest outage ms',
];

/** The table of all sales. */
export const reportTable = (reports: readonly SaleReport[]): string =>
  table(
    HEAD,
    reports.map(({ strategy, facts, refused, p50Ms, p99Ms }) => [
      strategy,
      facts.sold,
      facts.oversold,
      facts.doubleOrders,
      strategy === 'sql' ? `${facts.chargedTwice}*` : facts.chargedTwice,
      refused,
      facts.staleWritesRefused,
      p50Ms,
      p99Ms,
      facts.longestOutageMs,
    ]),
  );

const SQL_NOTE =
  '* sql makes no promise about payments: a crash between order and charge leaves an order nobody knows to be paid.';

/** What the table shows, in two sentences at most; and what went wrong, if anything did. */
export const reportText = (reports: readonly SaleReport[], items: number): string => {
  const of = (strategy: string) => reports.find((report) => report.strategy === strategy);
  const none = of('none');
  const locked = of('locked');
  return [
    ...(of('sql') ? [SQL_NOTE] : []),
    '',
    ...(none
      ? [
          `Without a lock three instances sold ${none.facts.sold} of ${items} items and charged ` +
            `${none.facts.chargedTwice} customers more than once.`,
        ]
      : []),
    ...(locked
      ? [
          `With @Locked they sold ${locked.facts.sold} of ${items} and charged ` +
            `${locked.facts.chargedTwice || 'nobody'} twice, although ${count(locked.faults.killed)} was killed and ` +
            `${count(locked.faults.stopped)} stopped while holding the lock: the sale stood still for ` +
            `${locked.facts.longestOutageMs} ms, until the lease was over, and the fence refused ` +
            `${locked.facts.staleWritesRefused} stale write(s) of the one that came back.`,
        ]
      : []),
    ...reports.flatMap(({ strategy, complaints }) =>
      complaints.map((text) => `BROKEN: ${strategy} ${text}.`),
    ),
    ...reports
      .filter((report) => report.gaveUp > 0)
      .map(
        ({ strategy, gaveUp, failure }) => `Note: with ${strategy} ${gaveUp} clicks gave up (${failure}).`,
      ),
  ].join('\n');
};

const count = (instances: number): string => (instances === 1 ? 'one instance' : `${instances} instances`);
