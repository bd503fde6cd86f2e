import { instancesOf } from './introduction.js';
import { plain, type Paint } from './paint.js';
import type { SaleReport } from './run-sale.js';
import { table, type PaintCell } from './table.js';

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

/** Explanation of the columns whose titles are not clear. */
export const COLUMNS_TEXT = `refused: clicks without an order: all was sold, or the buyer had one already
stale writes refused: writes of an instance that had lost its lock; the database
  knew them by their fencing token
p50, p99: what a click took, in half and in 99 % of the cases; a hundred clicks
  queue for one article at any time
longest outage: the longest time without a sale; with faults that is the lease
  of an instance that was stopped or killed, two seconds here`;

/** First and last column with counts of what must not happen. */
const WRONGS = [2, 4] as const;

/** Paints what must not happen red. */
const paintCell =
  (paint: Paint): PaintCell =>
  (text, row, column) => {
    if (row < 0) return paint('head', text);
    if (column === 0) return paint('name', text);
    if (column < WRONGS[0] || column > WRONGS[1]) return text;
    return paint(text.startsWith('0') ? 'good' : 'bad', text);
  };

/** Returns the table of all sales. */
export const reportTable = (reports: readonly SaleReport[], paint: Paint = plain): string =>
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
    paintCell(paint),
  );

const SQL_NOTE =
  '* sql makes no promise about payments: a crash between order and charge leaves an order nobody knows to be paid.';

/** Returns what belongs under the table. */
export const reportNotes = (reports: readonly SaleReport[]): string =>
  reports.some(({ strategy }) => strategy === 'sql') ? `${SQL_NOTE}\n` : '';

/** Returns what the table shows, in two sentences, and what went wrong. */
export const reportText = (
  reports: readonly SaleReport[],
  { items, instances }: { readonly items: number; readonly instances: number },
  paint: Paint = plain,
): string => {
  const of = (strategy: string) => reports.filter((report) => report.strategy === strategy);
  return [
    ...of('none').map((none) => paint('bad', noneSentence(none, items, instances))),
    ...of('locked').map((locked) => paint('good', lockedSentence(locked, items))),
    ...reports.flatMap(({ strategy, complaints }) =>
      complaints.map((text) => `${paint('bad', 'BROKEN')}: ${strategy} ${text}.`),
    ),
    ...reports
      .filter((report) => report.gaveUp > 0)
      .map(({ strategy, gaveUp, failure }) => `Note: ${gaveUp} clicks on ${strategy} gave up (${failure}).`),
  ].join('\n');
};

const noneSentence = ({ facts }: SaleReport, items: number, instances: number): string =>
  `Without a lock ${instancesOf(instances)} sold ${facts.sold} of ${items} items and charged ` +
  `${facts.chargedTwice} customers more than once.`;

const lockedSentence = ({ facts, faults }: SaleReport, items: number): string => {
  const result = `With @Locked the app sold ${facts.sold} of ${items} and charged ${facts.chargedTwice || 'no customer'} twice`;
  if (faults.killed === 0 || faults.stopped === 0) return `${result}.`;
  return (
    `${result}, though ${faults.killed} instance was killed and ${faults.stopped} stopped while holding the lock: ` +
    `the sale stood still for ${facts.longestOutageMs} ms, until the lease was over, and the database ` +
    `refused ${facts.staleWritesRefused} stale write of the one that came back.`
  );
};
