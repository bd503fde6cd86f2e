import { readFile, writeFile } from 'node:fs/promises';
import { format, resolveConfig } from 'prettier';
import { OURS } from '../contenders.js';
import { cellOf } from './cell.js';
import { bestOther } from './overview.js';
import type { Report } from './report.js';

const BEGIN = '<!-- bench:begin -->';
const END = '<!-- bench:end -->';

/** The workload of README, and its metrics: of what users have. */
const LEAD = 'hot-key';
const METRICS = ['share', 'jain', 'longest', 'commands'];

/** What README says of a run: one sentence and one chart. */
export const readmeBlock = ({ machine, rounds, workloads }: Report): string => {
  const { title, comparison } = workloads.find(({ name }) => name === LEAD)!;
  const values = METRICS.map((key) => {
    const metric = comparison!.metrics.find((one) => one.key === key)!;
    const own = cellOf(comparison!, OURS.name, metric, undefined);
    return `${metric.what} ${own}, best other ${bestOther(comparison!, metric, undefined)}`;
  });
  return [
    `**Benchmark:** ${title}.`,
    ...values.map((value) => `${value.charAt(0).toUpperCase()}${value.slice(1)}.`),
    `Medians of ${rounds} rounds on ${machine.cpu}, Node ${machine.node.replace(/^v/, '')}, Redis ${machine.redis}; all workloads: \`docs/benchmarks\`.`,
    `![${title}, by library](docs/benchmarks/hot-key.svg)`,
  ].join(' ');
};

/** Puts the block between its marks in a Markdown file. */
export const updateReadme = async (file: string, report: Report): Promise<void> => {
  const text = await readFile(file, 'utf8');
  const [from, to] = [text.indexOf(BEGIN), text.indexOf(END)];
  if (from < 0 || to < from) throw new Error(`${file} has no ${BEGIN} … ${END}`);
  const whole = `${text.slice(0, from + BEGIN.length)}\n\n${readmeBlock(report)}\n\n${text.slice(to)}`;
  await writeFile(file, await format(whole, { ...(await resolveConfig(file)), filepath: file }));
};
