import type { SaleReport } from './run-sale.js';
import { table } from './table.js';

const TITLES = [
  'strategy',
  'sold',
  'over-\nsold',
  'double\norders',
  'paid\ntwice',
  'refused',
  'stale\nwrites\nrefused',
  'p50\nms',
  'p99\nms',
  'longest\noutage\nms',
];

/** The table of all sales. */
export const reportTable = (reports: readonly SaleReport[]): string =>
  table(
    TITLES,
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

/** What the table shows, in two sentences; and what went wrong, if anything did. */
export const reportText = (reports: readonly SaleReport[], items: number): string => {
  const of = (strategy: string) => reports.filter((report) => report.strategy === strategy);
  return [
    ...of('sql').map(() => SQL_NOTE),
    '',
    ...of('none').map((none) => noneSentence(none, items)),
    ...of('locked').map((locked) => lockedSentence(locked, items)),
    ...reports.flatMap(({ strategy, complaints }) =>
      complaints.map((text) => `BROKEN: ${strategy} ${text}.`),
    ),
    ...reports
      .filter((report) => report.gaveUp > 0)
      .map(({ strategy, gaveUp, failure }) => `Note: ${gaveUp} clicks on ${strategy} gave up (${failure}).`),
  ].join('\n');
};

const noneSentence = ({ facts }: SaleReport, items: number): string =>
  `Without a lock three instances sold ${facts.sold} of ${items} items and charged ` +
  `${facts.chargedTwice} customers more than once.`;

const lockedSentence = ({ facts, faults }: SaleReport, items: number): string => {
  const result = `With @Locked they sold ${facts.sold} of ${items} and charged ${facts.chargedTwice || 'nobody'} twice`;
  if (faults.killed === 0 || faults.stopped === 0) return `${result}.`;
  return (
    `${result}, though ${faults.killed} instance was killed and ${faults.stopped} stopped while holding the lock: ` +
    `the sale stood still for ${facts.longestOutageMs} ms, until the lease was over, and the database ` +
    `refused ${facts.staleWritesRefused} stale write of the one that came back.`
  );
};
