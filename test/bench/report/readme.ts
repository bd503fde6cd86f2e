import { readFile, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { format, resolveConfig } from 'prettier';
import { OURS } from '../contenders.js';
import { cellOf } from './cell.js';
import { chartSvg } from './chart/index.js';
import { bestOther } from './overview.js';
import type { Report } from './report.js';

const BEGIN = '<!-- bench:begin -->';
const END = '<!-- bench:end -->';

/** The workload of README, and its metrics: of what users have. */
const LEAD = 'hot-key';
const CHART = 'docs/pictures/hot-key.svg';
const METRICS = ['share', 'jain', 'longest', 'commands'];
/** Names of metrics for readers who do not know them. */
const NAMES: Readonly<Record<string, string>> = {
  share: 'work was running for',
  jain: "fairness (Jain's index, 1 is equal)",
  commands: 'a process passes a lock to its next caller without Redis. Redis commands per lock',
};

/** What README says of a run: one sentence and one chart. */
export const readmeBlock = ({ machine, rounds, workloads }: Report): string => {
  const { title, comparison } = workloads.find(({ name }) => name === LEAD)!;
  const values = METRICS.map((key) => {
    const metric = comparison!.metrics.find((one) => one.key === key)!;
    const own = cellOf(comparison!, OURS.name, metric, undefined);
    return `${NAMES[key] ?? metric.what} ${own}, best other ${bestOther(comparison!, metric, undefined)}`;
  });
  return [
    `**Benchmark:** ${title}.`,
    ...values.map((value) => `${value.charAt(0).toUpperCase()}${value.slice(1)}.`),
    `Medians of ${rounds} rounds on ${machine.cpu}, Node ${machine.node.replace(/^v/, '')}, Redis ${machine.redis}; all workloads: \`docs/benchmarks\`.`,
    `![${title}, by library](${CHART})`,
  ].join(' ');
};

/** Puts the block between its marks in a Markdown file, and draws the chart beside it. */
export const updateReadme = async (file: string, report: Report): Promise<void> => {
  const text = await readFile(file, 'utf8');
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${file} has no ${BEGIN} … ${END}`);
  const whole = `${text.slice(0, from + BEGIN.length)}\n\n${readmeBlock(report)}\n\n${text.slice(to)}`;
  const { charts, comparison } = report.workloads.find(({ name }) => name === LEAD)!;
  await writeFile(join(dirname(file), CHART), chartSvg(charts![0]!, comparison!));
  await writeFile(file, await format(whole, { ...(await resolveConfig(file)), filepath: file }));
};
