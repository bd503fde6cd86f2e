import type { Failure } from './report/report.js';
import { runRound, type RoundResult } from './round.js';
import { plan, scheduleText, type Length } from './schedule/schedule.js';
import { startCluster } from './topology/cluster.js';
import { Quorum } from './topology/quorum.js';
import { startSentinel } from './topology/sentinel.js';
import { SingleDatabase } from './topology/single-database.js';
import { SingleRedis } from './topology/single-redis.js';
import type { Topology } from './topology/topology.js';
import { ZooKeeperTopology } from './topology/zookeeper.js';

/** A topology that takes its turn. */
export interface Kind {
  readonly callers: number;
  start(): Promise<Topology>;
}

const WORKERS = 3;
const HOURS_MS = 3 * 3_600_000;

const quorum = (name: string, nodes: number, persistence: 'always' | 'none', lastAheadMs = 0): Kind => ({
  callers: 4,
  start: () => Quorum.start({ name, workers: WORKERS, nodes, persistence, lastAheadMs }),
});

/** One server, on which everything is seen. */
export const KINDS: Readonly<Record<string, Kind>> = {
  'with AOF': {
    callers: 8,
    start: () => SingleRedis.start({ workers: WORKERS, persistence: 'always' }),
  },
  'without persistence': {
    callers: 8,
    start: () => SingleRedis.start({ workers: WORKERS, persistence: 'none' }),
  },
  'with a clock that is set': {
    callers: 8,
    start: () => SingleRedis.start({ workers: WORKERS, persistence: 'always', settableClock: true }),
  },
};

const REPLICAS = { min: 1, timeoutMs: 100 };

/** Several servers. */
export const MANY: Readonly<Record<string, Kind>> = {
  'quorum of 3': quorum('quorum of 3', 3, 'none'),
  'quorum of 3, with AOF': quorum('quorum of 3, with AOF', 3, 'always'),
  'quorum of 5': quorum('quorum of 5', 5, 'none'),
  'quorum of 5, one clock hours ahead': quorum('quorum of 5, one clock hours ahead', 5, 'none', HOURS_MS),
  Sentinel: { callers: 5, start: () => startSentinel({ name: 'Sentinel', workers: WORKERS }) },
  'Sentinel, with replicas': {
    callers: 5,
    start: () => startSentinel({ name: 'Sentinel, with replicas', workers: WORKERS, replicas: REPLICAS }),
  },
  Cluster: { callers: 5, start: () => startCluster({ name: 'Cluster', workers: WORKERS }) },
  'Cluster, with replicas': {
    callers: 5,
    start: () => startCluster({ name: 'Cluster, with replicas', workers: WORKERS, replicas: REPLICAS }),
  },
};

const database = (
  name: string,
  shape: 'mysql' | 'postgres',
  settableClock: boolean,
  pooled = false,
): Kind => ({
  callers: 5,
  start: () => SingleDatabase.start({ name, shape, workers: WORKERS, settableClock, pooled }),
});

/** One server of a database. */
export const DATABASES: Readonly<Record<string, Kind>> = {
  MySQL: database('MySQL', 'mysql', false),
  PostgreSQL: database('PostgreSQL', 'postgres', false),
  'PostgreSQL behind PgBouncer': database('PostgreSQL behind PgBouncer', 'postgres', false, true),
  'MySQL, with a clock that is set': database('MySQL, with a clock that is set', 'mysql', true),
  'PostgreSQL, with a clock that is set': database('PostgreSQL, with a clock that is set', 'postgres', true),
};

/** Three servers of ZooKeeper. */
export const ENSEMBLES: Readonly<Record<string, Kind>> = {
  ZooKeeper: {
    callers: 5,
    start: () => ZooKeeperTopology.start({ name: 'ZooKeeper', workers: WORKERS }),
  },
};

/** Two rounds on one topology, so that something is left of the first when the second begins. */
const ROUNDS_IN_A_ROW = 2;
/** How many faults there are in a round, and how long they take. */
export const WHOLE_ROUND: Length & { readonly among?: undefined } = { faults: 11, forMs: 8_000 };

/** All topologies, or those that one of these texts names: a whole name names one, a part all that have it. */
export const kindsNamed = (texts?: readonly string[]): Readonly<Record<string, Kind>> => {
  const all: Readonly<Record<string, Kind>> = { ...KINDS, ...MANY, ...DATABASES, ...ENSEMBLES };
  const isNamed = (name: string, text: string): boolean =>
    text in all ? name === text : name.includes(text);
  return Object.fromEntries(
    Object.entries(all).filter(([name]) => texts === undefined || texts.some((text) => isNamed(name, text))),
  );
};

/** Which topology a round is run on, and which of its rounds it is. */
const slotOf = (names: readonly string[], round: number): { kind: string; index: number } => {
  const session = Math.floor(round / ROUNDS_IN_A_ROW);
  const index = Math.floor(session / names.length) * ROUNDS_IN_A_ROW + (round % ROUNDS_IN_A_ROW);
  return { kind: names[session % names.length]!, index };
};

/** A round of its own: some faults, and how long they take. */
export interface Only extends Length {
  readonly among: readonly string[];
}

export interface LaboratoryOptions {
  readonly seed: string;
  /** The topologies that take turns. */
  readonly kinds: Readonly<Record<string, Kind>>;
  /** The rounds to run, in this order; may have no end. */
  readonly rounds: Iterable<number>;
  /** Which faults there are to be on a topology, in a round of its own length; all of them else. */
  readonly only?: Readonly<Record<string, Only>> | undefined;
  /** Asked before each round. */
  readonly goesOn?: () => boolean;
}

/** Runs rounds, each from its number and the seed alone. */
export async function* runLaboratory({
  seed,
  kinds,
  rounds,
  only = {},
  goesOn,
}: LaboratoryOptions): AsyncGenerator<RoundResult> {
  const names = Object.keys(kinds);
  let topology: Topology | undefined;
  let running = '';
  try {
    for (const round of rounds) {
      if (goesOn?.() === false) return;
      const { kind, index } = slotOf(names, round);
      if (!topology || running !== kind) {
        await topology?.[Symbol.asyncDispose]();
        topology = await kinds[kind]!.start();
        running = kind;
      }
      const { among, ...length } = only[kind] ?? WHOLE_ROUND;
      const schedule = plan(`${seed}:${kind}`, index, topology.fitness, length, among);
      const result = await runRound(topology, {
        name: `r${round}`,
        seed: `${seed}:${round}`,
        schedule,
        callers: kinds[kind]!.callers,
      });
      yield result;
      // After a round that went wrong nobody knows what the next one would find.
      if (result.violations.length > 0) running = '';
    }
  } finally {
    await topology?.[Symbol.asyncDispose]();
  }
}

/** What there is to say about a round in which something was wrong. `options` of the command say what else it was. */
export const failureOf = (seed: string, round: number, result: RoundResult, options = ''): Failure => ({
  title: `Round ${round} of seed ${seed}, ${result.topology}`,
  again: `npm run test:faults -- --seed ${seed} --round ${round}${options}`,
  schedule: scheduleText(result.plan.schedule),
  events: result.events,
  violations: result.violations,
  judge: result.judge,
});
