import { createHash } from 'node:crypto';
import type { HistoryEvent } from '../../checker/history.js';
import { makePlan } from '../plan/make-plan.js';
import type { Plan } from '../plan/plan.js';
import { simulate } from '../run/simulate.js';
import { simulateSql } from '../sql/simulate-sql.js';
import { sqlPlan } from '../sql/sql-plan.js';
import { simulateZooKeeper } from '../zookeeper/simulate-zookeeper.js';
import { zkPlan } from '../zookeeper/zk-plan.js';

/** What a program of a seed shows, and what it costs the store. */
export interface Shown {
  /** What callers and listeners see, in order, with the virtual time of each. */
  readonly visible: readonly string[];
  readonly requests: number;
}

const usesObjects = ({ processes }: Plan): boolean => /"do":"(work|meet)"/.test(JSON.stringify(processes));

/** Whether a fault comes at a step of a process: how many steps a request takes is no promise. */
const countsSteps = (faults: readonly object[]): boolean =>
  faults.some((fault) => 'step' in fault && fault.step !== undefined);

/** The first seeds whose plan counts no steps, and is of this sort. */
const seedsWhere = <P extends { readonly faults: readonly object[] }>(
  count: number,
  planOf: (seed: number) => P,
  is: (plan: P) => boolean = () => true,
): number[] => {
  const seeds: number[] = [];
  for (let seed = 1; seeds.length < count; seed++) {
    const plan = planOf(seed);
    if (is(plan) && !countsSteps(plan.faults)) seeds.push(seed);
  }
  return seeds;
};

/** Events of a history that its callers do not see. */
const HIDDEN: ReadonlySet<HistoryEvent['type']> = new Set([
  ...(['request', 'reply', 'hold', 'armed', 'free', 'unprotected', 'unseen'] as const),
  ...(['old lines', 'trouble', 'frozen', 'usage', 'note'] as const),
]);

/** An event without the words of its error, which no promise is made about. */
const lineOf = (event: HistoryEvent): string =>
  JSON.stringify(event, (key, value: unknown) =>
    key === 'message' || key === 'hasCause' ? undefined : value,
  );

const onRedis = async (seed: number): Promise<Shown> => {
  const told: string[] = [];
  const note = (who: string, what: string): void => void told.push(`${who} ${what}`);
  const { events, requests } = await simulate(makePlan(seed), { note });
  return { visible: [...events.filter(({ type }) => !HIDDEN.has(type)).map(lineOf), ...told], requests };
};

const RUN: Readonly<Record<string, (seed: number) => Promise<Shown>>> = {
  redis: onRedis,
  sql: (seed) => simulateSql(sqlPlan(seed)),
  zookeeper: (seed) => simulateZooKeeper(zkPlan(seed)),
};

/** 500 programs: callers, processes and faults, on each simulated store. */
export const PROGRAMS: readonly string[] = [
  ...seedsWhere(125, makePlan, usesObjects).map((seed) => `redis ${seed}`),
  ...seedsWhere(125, makePlan, (plan) => !usesObjects(plan)).map((seed) => `redis ${seed}`),
  ...seedsWhere(150, sqlPlan).map((seed) => `sql ${seed}`),
  ...seedsWhere(100, zkPlan).map((seed) => `zookeeper ${seed}`),
];

/** Runs a program by its name, for example `sql 17`. */
export const runProgram = (name: string): Promise<Shown> => {
  const [store, seed] = name.split(' ');
  return RUN[store!]!(Number(seed));
};

/** What a program shows, as a short text: equal for equal lines. */
export const digestOf = ({ visible }: Shown): string =>
  createHash('sha256').update(visible.join('\n')).digest('hex').slice(0, 12);
