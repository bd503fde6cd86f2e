import { parseArgs } from 'node:util';
import { workloads } from './workloads/index.js';
import type { Workload } from './workload.js';

export interface BenchOptions {
  readonly workloads: readonly Workload[];
  readonly rounds: number;
  readonly cycles: number;
  readonly pace: number;
  readonly quick: boolean;
  /** Where the numbers go, for programs. */
  readonly json: string | undefined;
}

export const USAGE = `npm run bench -- [--quick] [--only NAME[,NAME]] [--rounds N] [--cycles N] [--json FILE]

  --quick   under a minute and a half: shorter slices, fewer cycles
  --only    only these: ${workloads.map(({ name }) => name).join(', ')}
  --rounds  how many rounds, at least 5
  --cycles  how many cycles, instead of a million
  --json    writes every value of every round to FILE`;

/** Numbers on fewer rounds than this say nothing about their spread. */
const MIN_ROUNDS = 5;

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
  return names.split(',').map((name) => {
    const workload = workloads.find((candidate) => candidate.name === name.trim());
    if (!workload) {
      throw new Error(
        `there is no workload "${name}"; there are ${workloads.map((one) => one.name).join(', ')}`,
      );
    }
    return workload;
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
      cycles: { type: 'string' },
      json: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  const { quick, json } = values;
  return {
    workloads: chosen(values.only),
    rounds: count('rounds', values.rounds, MIN_ROUNDS, quick ? MIN_ROUNDS : 9),
    cycles: count('cycles', values.cycles, 1_000, quick ? 60_000 : 1_000_000),
    pace: quick ? 0.5 : 1,
    quick,
    json,
  };
};
