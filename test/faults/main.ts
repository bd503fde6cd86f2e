// npm run test:faults: the lock on real servers and processes, while everything goes wrong that can.
//
// A topology (topology/), a workload (workload/), faults (catalogue/) in a schedule from a seed (schedule/), and a
// verdict (../checker/ and rules/) on the history (history/). Each knows little of the others. One server is watched, and
// judged by what it did with each hold. Of several there is no one history: rules/applied.ts says which rules go by what
// callers see, and apply there, too; which faults fit where is said by each fault (`fits`).
//
// Two callers may believe in one lock only where README and docs/stores say so: after a promotion, until the longest lease
// is over, and where replicas are waited for not even then; in a quorum, after the clock of a working server was set.
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { historyText, inOrder } from '../checker/history.js';
import { FAULTS } from './catalogue/index.js';
import { failureOf, kindsNamed, runLaboratory, WHOLE_ROUND, type Kind, type Only } from './laboratory.js';
import { FailoverTable } from './report/failovers.js';
import { reportOf } from './report/report.js';
import { FaultTable } from './report/table.js';
import type { RoundResult } from './round.js';

const USAGE = `npm run test:faults -- [--minutes N] [--seed S] [--round N] [--topology NAME] [--fault NAME] [--faults N]
                       [--history FOLDER]

  --minutes  how long, 2 by default; 600 is a night
  --seed     whose schedules; one is made up otherwise
  --round    only this round of the seed
  --fault    only faults whose name has this in it
  --faults   how many faults there are in a round, ${WHOLE_ROUND.faults} by default
  --history  writes what happened in each round to a file in this folder
  --topology only one of these, or those whose name has this in it; all take turns otherwise:
             ${Object.keys(kindsNamed()).join('\n             ')}`;

interface Options {
  readonly minutes: number;
  readonly seed: string;
  readonly round: number | undefined;
  readonly topology: readonly string[] | undefined;
  readonly fault: string | undefined;
  readonly faults: number;
  readonly history: string | undefined;
}

const numberOf = (name: string, text: string, min: number): number => {
  const value = Number(text);
  if (!Number.isFinite(value) || value < min)
    throw new Error(`--${name} must be a number from ${min}, but is "${text}"`);
  return value;
};

const readOptions = (args: readonly string[]): Options | undefined => {
  const { values } = parseArgs({
    args: [...args],
    options: {
      minutes: { type: 'string', default: '2' },
      seed: { type: 'string' },
      round: { type: 'string' },
      topology: { type: 'string', multiple: true },
      fault: { type: 'string' },
      faults: { type: 'string', default: String(WHOLE_ROUND.faults) },
      history: { type: 'string' },
      help: { type: 'boolean', short: 'h', default: false },
    },
  });
  if (values.help) return undefined;
  return {
    minutes: numberOf('minutes', values.minutes, 0),
    seed: values.seed ?? String(Date.now() % 1_000_000),
    round: values.round === undefined ? undefined : numberOf('round', values.round, 0),
    topology: values.topology,
    fault: values.fault,
    faults: numberOf('faults', values.faults, 1),
    history: values.history,
  };
};

function* from(first: number): Generator<number> {
  for (let round = first; ; round++) yield round;
}

const lineOf = (
  round: number,
  { topology, events, inflicted, violations }: RoundResult,
  leftMs: number,
): string => {
  const count = (type: string) => events.filter((event) => event.type === type).length;
  const left = leftMs > 0 ? `, ${Math.ceil(leftMs / 1_000)} s to go` : '';
  return (
    `round ${round}, ${topology}: ${inflicted.length} faults, ${count('call')} calls, ` +
    `${count('granted')} locks, ${violations.length} violations${left}`
  );
};

/** Rounds as long as usual for each fault, with some of the faults. */
const onlyOf = (
  kinds: Readonly<Record<string, Kind>>,
  { fault, faults }: Options,
): Readonly<Record<string, Only>> => {
  const among = FAULTS.map(({ name }) => name).filter((name) => name.includes(fault ?? ''));
  if (among.length === 0) throw new Error(`no fault has "${fault}" in its name`);
  const forMs = (WHOLE_ROUND.forMs * faults) / WHOLE_ROUND.faults;
  return Object.fromEntries(Object.keys(kinds).map((name) => [name, { faults, forMs, among }]));
};

/** The options that say which rounds a seed has. */
const againOf = ({ topology = [], fault, faults }: Options): string => {
  const texts = [...topology.map((name) => ['topology', name]), ...(fault ? [['fault', fault]] : [])];
  const length = faults === WHOLE_ROUND.faults ? '' : ` --faults ${faults}`;
  return `${texts.map(([option, text]) => ` --${option} "${text}"`).join('')}${length}`;
};

const run = async (options: Options): Promise<boolean> => {
  const { minutes, seed, round, topology, history } = options;
  const kinds = kindsNamed(topology);
  if (Object.keys(kinds).length === 0)
    throw new Error(`no topology has "${topology?.join(' or ')}" in its name`);
  const endsAt = performance.now() + minutes * 60_000;
  const leftMs = (): number => (round === undefined ? endsAt - performance.now() : 0);
  console.log(`seed ${seed}`);
  const tables = [new FaultTable(), new FailoverTable()];
  let failed = false;
  const rounds = round === undefined ? from(0) : [round];
  const goesOn = (): boolean => round !== undefined || leftMs() > 0;
  let number = round ?? 0;
  for await (const result of runLaboratory({ seed, kinds, rounds, goesOn, only: onlyOf(kinds, options) })) {
    console.log(lineOf(number, result, leftMs()));
    if (history !== undefined) {
      mkdirSync(history, { recursive: true });
      const path = join(history, `${seed}-${number}.jsonl`);
      writeFileSync(path, historyText(inOrder(result.events)));
    }
    if (result.violations.length > 0)
      console.error(`\n${reportOf(failureOf(seed, number, result, againOf(options)))}\n`);
    failed ||= result.violations.length > 0;
    for (const table of tables) table.add(result);
    number++;
  }
  for (const table of tables) console.log(`\n${table.text()}`);
  return !failed;
};

try {
  const options = readOptions(process.argv.slice(2));
  if (!options) console.log(USAGE);
  else if (!(await run(options))) process.exitCode = 1;
} catch (error) {
  console.error(error instanceof Error ? (error.stack ?? error.message) : error);
  console.error(`\n${USAGE}`);
  process.exitCode = 1;
}
