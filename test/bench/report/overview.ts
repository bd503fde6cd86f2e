import { medianOf, type Comparison, type Metric } from '../comparison.js';
import { OURS, READ_WRITE, SEMAPHORE, UNFENCED } from '../contenders.js';
import { median } from '../measure/statistics.js';
import { cellOf } from './cell.js';
import { show } from './format.js';
import { markdownOf } from './grid.js';
import type { Report } from './report.js';

/** One number of each further workload: ours, and the best of the others. */
const FURTHER: readonly {
  readonly workload: string;
  /** Which of ours; default: the one of the decorator. */
  readonly contender?: string;
  readonly metric: string;
  readonly what: string;
}[] = [
  { workload: 'paced', metric: 'p99', what: '200 calls per second for one key: 99 % get the lock within' },
  { workload: 'callers', metric: 'cpu', what: '10,000 callers want one key: CPU time per lock' },
  { workload: 'leases', metric: 'commands', what: '10,000 leases of 3 s: Redis commands per second' },
  { workload: 'processes', metric: 'jain', what: "8 processes want one key: Jain's index" },
  { workload: 'memory', metric: 'cpu', what: '10,000 callers only wait: CPU time per second' },
  { workload: 'memory', metric: 'heap', what: '10,000 callers only wait: heap per caller' },
  {
    workload: 'free-keys',
    metric: 'ratio-1',
    what: 'free keys, nothing inside, 1 caller: locks, relative to the floor',
  },
  {
    workload: 'free-keys',
    metric: 'ratio-100',
    what: 'free keys, nothing inside, 100 callers: locks, relative to the floor',
  },
  {
    workload: 'free-keys',
    metric: 'cpu-ratio-100',
    what: 'the same: CPU time per lock, relative to the floor',
  },
  {
    workload: 'read-write',
    contender: READ_WRITE.name,
    metric: 'rate',
    what: '2 processes, each with 1 writer and 7 readers of one key: sections',
  },
  {
    workload: 'read-write',
    contender: READ_WRITE.name,
    metric: 'longest',
    what: 'the same: the longest wait of a caller',
  },
  {
    workload: 'semaphore',
    contender: SEMAPHORE.name,
    metric: 'rate',
    what: '2 processes, each with 8 callers for 3 permits: sections',
  },
  {
    workload: 'semaphore',
    contender: SEMAPHORE.name,
    metric: 'longest',
    what: 'the same: the longest wait of a caller',
  },
  ...(
    [
      ['quorum-free', 'time-1', 'a quorum of 5 servers, free keys, 1 caller: a lock and its release'],
      ['quorum-free', 'rate-50', 'the same, 50 callers: locks'],
      ['quorum-hot', 'rate', 'a quorum of 5 servers, 2 processes × 10 callers want one key: locks'],
      ['quorum-hot', 'longest', 'the same: the longest wait of a caller'],
      ['quorum-far', 'far', 'a quorum of 5 servers, one of them 20 ms away: a lock and its release'],
      ['quorum-dead', 'rate-dead', 'a quorum of 5 servers, one of them dead, 50 callers: locks'],
    ] as const
  ).map(([workload, metric, what]) => ({ workload, contender: UNFENCED.name, metric, what })),
];

/** Of this library alone: the first findings of a workload. */
const OWN = [
  { workload: 'decorator', findings: 1 },
  { workload: 'cycles', findings: 1 },
];

/** The best value of another library that never broke exclusion, with its name. */
export const bestOther = ({ rows }: Comparison, metric: Metric, at: number | undefined): string => {
  const others = rows
    .filter(({ contender }) => !contender.ours && contender.subject !== 'floor')
    .filter((row) => row.at === at && row.violations === 0)
    .map((row) => ({ name: row.contender.name, value: medianOf(row, metric.key) }))
    .filter((one): one is { name: string; value: number } => one.value !== undefined)
    .sort((a, b) => (metric.better === 'more' ? b.value - a.value : a.value - b.value));
  return others[0] ? `${show(others[0].value, metric.unit)} (${others[0].name})` : 'none';
};

const furtherRows = (report: Report): string[][] =>
  FURTHER.flatMap(({ workload, contender = OURS.name, metric: key, what }) => {
    const comparison = report.workloads.find(({ name }) => name === workload)?.comparison;
    const metric = comparison?.metrics.find((one) => one.key === key);
    if (!comparison || !metric) return [];
    const at = comparison.axis?.points.at(-1);
    return [[what, cellOf(comparison, contender, metric, at), bestOther(comparison, metric, at)]];
  });

const ownRows = (report: Report): string[][] =>
  OWN.flatMap(({ workload, findings }) =>
    (report.workloads.find(({ name }) => name === workload)?.findings ?? [])
      .slice(0, findings)
      .map(({ what, values, unit }) => [what, show(median(values), unit), '']),
  );

/** One line of each workload beside the one that README shows; undefined when none was measured. */
export const overviewOf = (report: Report): string | undefined => {
  const rows = [...furtherRows(report), ...ownRows(report)];
  if (rows.length === 0) return undefined;
  const head = ['', 'nest-redis-lock', 'best of the others'];
  return [
    '## Summary',
    'The best other library differs from row to row.',
    markdownOf({ caption: undefined, head, rows }),
  ].join('\n\n');
};
