import { readFile, writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { medianOf, rowOf, type Comparison, type Metric } from '../comparison.js';
import { OURS } from '../contenders.js';
import { median } from '../measure/statistics.js';
import { show } from './format.js';
import { markdownOf } from './grid.js';
import type { Report, Reported } from './report.js';

const BEGIN = '<!-- bench:begin -->';
const END = '<!-- bench:end -->';

/** The metrics of the lead table: of what users have. */
const LEAD = { workload: 'hot-key', metrics: ['share', 'jain', 'unserved', 'longest', 'commands'] };

/** One number of each further workload: ours, and the best of the others. */
const FURTHER = [
  { workload: 'paced', metric: 'p99', what: '200 calls a second for one key: 99 % are inside within' },
  { workload: 'callers', metric: 'cpu', what: '10,000 callers want one key: CPU time per lock' },
  { workload: 'leases', metric: 'commands', what: '10,000 leases of 3 s: Redis commands for each second' },
  { workload: 'processes', metric: 'jain', what: "8 processes want one key: Jain's index" },
  { workload: 'memory', metric: 'cpu', what: '10,000 callers only wait: CPU time for each second' },
  { workload: 'memory', metric: 'heap', what: '10,000 callers only wait: heap for each' },
  { workload: 'free-keys', metric: 'ratio-1', what: 'free keys, nothing inside, 1 caller: of the floor' },
  {
    workload: 'free-keys',
    metric: 'ratio-100',
    what: 'free keys, nothing inside, 100 callers: of the floor',
  },
];

/** Of this library alone: the first findings of a workload. */
const OWN = [
  { workload: 'decorator', findings: 1 },
  { workload: 'cycles', findings: 1 },
];

const cellOf = (comparison: Comparison, name: string, metric: Metric, at: number | undefined): string => {
  const value = medianOf(rowOf(comparison, name, at), metric.key);
  return value === undefined ? 'did not finish' : show(value, metric.unit);
};

const leadTable = ({ comparison }: Reported): string => {
  const metrics = LEAD.metrics.map((key) => comparison!.metrics.find((metric) => metric.key === key)!);
  return markdownOf({
    caption: undefined,
    head: ['', ...metrics.map(({ what }) => what)],
    rows: comparison!.rows.map(({ contender, violations }) => [
      contender.name + (violations > 0 ? ' (violates exclusion)' : ''),
      ...metrics.map((metric) => cellOf(comparison!, contender.name, metric, undefined)),
    ]),
  });
};

const bestOther = ({ rows }: Comparison, metric: Metric, at: number | undefined): string => {
  const others = rows
    .filter(({ contender }) => !contender.ours && contender.subject !== 'floor')
    .filter((row) => row.at === at && row.violations === 0)
    .map((row) => ({ name: row.contender.name, value: medianOf(row, metric.key) }))
    .filter((one): one is { name: string; value: number } => one.value !== undefined)
    .sort((a, b) => (metric.better === 'more' ? b.value - a.value : a.value - b.value));
  return others[0] ? `${show(others[0].value, metric.unit)} (${others[0].name})` : 'none';
};

const furtherRows = (report: Report): string[][] =>
  FURTHER.flatMap(({ workload, metric: key, what }) => {
    const comparison = report.workloads.find(({ name }) => name === workload)?.comparison;
    const metric = comparison?.metrics.find((one) => one.key === key);
    if (!comparison || !metric) return [];
    const at = comparison.axis?.points.at(-1);
    return [[what, cellOf(comparison, OURS.name, metric, at), bestOther(comparison, metric, at)]];
  });

const ownRows = (report: Report): string[][] =>
  OWN.flatMap(({ workload, findings }) =>
    (report.workloads.find(({ name }) => name === workload)?.findings ?? [])
      .slice(0, findings)
      .map(({ what, values, unit }) => [what, show(median(values), unit), '']),
  );

/** What README says of a run, with everything else behind a link. */
export const readmeBlock = (report: Report): string => {
  const { machine, rounds, workloads } = report;
  const lead = workloads.find(({ name }) => name === LEAD.workload)!;
  return [
    `\`npm run bench\`: ${machine.cpu}, Redis ${machine.redis} on loopback, medians of ${rounds} interleaved rounds. Every
workload checks exclusion while it measures. Charts, spreads, versions and what is not shown:
[docs/benchmarks](docs/benchmarks/README.md).`,
    `${lead.title}:`,
    leadTable(lead),
    'Everything else in one line each; the best of the others is another one each time:',
    markdownOf({
      caption: undefined,
      head: ['', 'nest-redis-lock', 'best of the others'],
      rows: [...furtherRows(report), ...ownRows(report)],
    }),
  ].join('\n\n');
};

/** Puts the block between its marks in a Markdown file. */
export const updateReadme = async (file: string, report: Report): Promise<void> => {
  const text = await readFile(file, 'utf8');
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${file} has no ${BEGIN} … ${END}`);
  const whole = `${text.slice(0, from + BEGIN.length)}\n\n${readmeBlock(report)}\n\n${text.slice(to)}`;
  await writeFile(file, await format(whole, { ...(await resolveConfig(file)), filepath: file }));
};
