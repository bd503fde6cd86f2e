import { readFile, writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { cellOf } from './cell.js';
import { markdownOf } from './grid.js';
import type { Report, Reported } from './report.js';

const BEGIN = '<!-- bench:begin -->';
const END = '<!-- bench:end -->';

/** The metrics of the lead table: of what users have. */
const LEAD = { workload: 'hot-key', metrics: ['share', 'jain', 'unserved', 'longest', 'commands'] };

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

/** What README says of a run, with everything else behind a link. */
export const readmeBlock = (report: Report): string => {
  const { machine, rounds, workloads } = report;
  const lead = workloads.find(({ name }) => name === LEAD.workload)!;
  return [
    `\`npm run bench\`: ${machine.cpu}, Node ${machine.node.replace(/^v/, '')}, Redis ${machine.redis} on loopback, medians of ${rounds} rounds. Jain's
index is 1 when all callers are served equally often. Every workload checks exclusion while it measures. All workloads, and what
is not shown: [docs/benchmarks](https://github.com/OWNER/nest-redis-lock/blob/main/docs/benchmarks/README.md).`,
    `${lead.title}:`,
    leadTable(lead),
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
