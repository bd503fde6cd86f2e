import { fileURLToPath } from 'node:url';
import { parseArgs } from 'node:util';
import { targets, workloads } from './workloads/index.js';
import type { Workload } from './workload.js';

export interface BenchOptions {
  readonly workloads: readonly Workload[];
  readonly rounds: number;
  readonly growthRounds: number;
  readonly cycles: number;
  readonly pace: number;
  readonly quick: boolean;
  /** The folder that the pages go to, with their numbers and charts. */
  readonly out: string | undefined;
  /** The file whose block of figures is replaced. */
  readonly readme: string | undefined;
  /** Numbers of an earlier run: nothing is measured. */
  readonly from: string | undefined;
  /** What was typed. */
  readonly command: string;
}

export const USAGE = `npm run bench -- [--quick] [--only NAME[,NAME]] [--rounds N] [--growth-rounds N] [--cycles N] [--out FOLDER] [--from FILE] [--readme FILE]

  --quick   under two minutes: one round, shorter, fewer points
  --only    only these workloads, or all that begin with this name (quorum), or those of the project's targets (targets): ${workloads.map(({ name }) => name).join(', ')}
  --rounds  how many rounds, 5 by default
  --growth-rounds  how many for the workloads that grow; half as many by default
  --cycles  how many cycles, instead of a million
  --out     where the pages go, with results.json and charts; docs/benchmarks after a full run, else nowhere
  --from    measures nothing and reports the results.json of an earlier run
  --readme  a Markdown file whose block of figures is replaced; README.md after a full run, else none`;

const README = fileURLToPath(new URL('../../README.md', import.meta.url));
const DOCS = fileURLToPath(new URL('../../docs/benchmarks', import.meta.url));

const count = (name: string, text: string | undefined, least: number, otherwise: number): number => {
  if (text === undefined) return otherwise;
  const value = Number(text);
  if (!Number.isInteger(value) || value < least) {
    throw new Error(`--${name} must be a whole number from ${least}, but is "${text}"`);
  }
  return value;
};

const chosen = (names: string | undefined): readonly Workload[] => {
  if (names === undefined) return workloads;
  return names.split(',').flatMap((part) => {
    const name = part.trim();
    if (name === 'targets') return targets;
    const found = workloads.filter((one) => one.name === name || one.name.startsWith(`${name}-`));
    if (found.length > 0) return found;
    throw new Error(
      `there is no workload "${name}"; there are ${workloads.map((one) => one.name).join(', ')}`,
    );
  });
};

/** Reads the command line; undefined when only help was asked for. Throws an error that says what is wrong. */
export const readOptions = (args: readonly string[]): BenchOptions | undefined => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      quick: { type: 'boolean', default: false },
      only: { type: 'string' },
      rounds: { type: 'string' },
      'growth-rounds': { type: 'string' },
      cycles: { type: 'string' },
      out: { type: 'string' },
      from: { type: 'string' },
      readme: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const { quick, only, from } = values;
  const rounds = count('rounds', values.rounds, 1, quick ? 1 : 5);
  const isWhole = !quick && only === undefined && from === undefined;
  return {
    workloads: chosen(only),
    rounds,
    growthRounds: count('growth-rounds', values['growth-rounds'], 1, Math.ceil(rounds / 2)),
    cycles: count('cycles', values.cycles, 1_000, quick ? 10_000 : 1_000_000),
    pace: quick ? 0.15 : 1,
    quick,
    out: values.out ?? (isWhole ? DOCS : undefined),
    readme: values.readme ?? (isWhole ? README : undefined),
    from,
    command: ['npm run bench', ...(args.length > 0 ? ['--', ...args] : [])].join(' '),
  };
};
