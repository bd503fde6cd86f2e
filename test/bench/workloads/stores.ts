import { rowOf, type Comparison, type Metric } from '../comparison.js';
import { BY_HAND, type Contender } from '../contenders.js';
import { emptyRow, ownViolations } from '../measure/compare.js';
import { WAIT_MS } from '../measure/contended.js';
import { periodsOf } from '../measure/periods.js';
import { runRound } from '../measure/round.js';
import { median } from '../measure/statistics.js';
import { Opened } from '../processes/opened.js';
import { QuorumServers } from '../processes/quorum-servers.js';
import type { SubjectWorker } from '../processes/subject-worker.js';
import type { Bench, Finding, Outcome, Workload } from '../workload.js';
import { MYSQL } from './sql/mysql.js';
import { POSTGRES } from './sql/postgres.js';
import { ENSEMBLE, ONE_SERVER } from './zookeeper/places.js';

const MANY = 100;
const CALLERS = [1, MANY];
const WARM_UP_MS = 3_000;
const QUICK_WARM_UP_MS = 300;
const SLICE_MS = 200;

const TIME: Metric = {
  key: 'time',
  what: '1 caller: time of a lock and its release',
  unit: 'µs',
  better: 'less',
};
const RATE: Metric = { key: 'rate', what: `${MANY} callers: locks`, unit: '/s', better: 'more' };
const CPU: Metric = { key: 'cpu', what: `${MANY} callers: CPU time per lock`, unit: 'µs', better: 'less' };
const METRICS = [TIME, RATE, CPU];

const storeNamed = (name: string): Contender => ({ ...BY_HAND, name });
const REDIS = storeNamed('one Redis server');
const QUORUM = storeNamed('a quorum of 3 Redis servers');
const DATABASES = [POSTGRES, MYSQL].map((entrants) => ({
  ...entrants,
  contender: storeNamed(entrants.title),
}));
const ZOOKEEPERS = [ONE_SERVER, ENSEMBLE].map((place) => ({ ...place, contender: storeNamed(place.title) }));
const CONTENDERS = [REDIS, QUORUM, ...[...DATABASES, ...ZOOKEEPERS].map(({ contender }) => contender)];

/** Starts all servers, and a process for each store on them. */
const open = async (bench: Bench, opened: Opened): Promise<ReadonlyMap<Contender, SubjectWorker>> => {
  const workers = new Map<Contender, SubjectWorker>();
  const enter = async (contender: Contender, url: string, quorum?: readonly string[]): Promise<void> => {
    const options = { url, waitMs: WAIT_MS, ...(quorum && { quorum }) };
    const [worker] = await bench.crew.of(contender, 1, options);
    opened.use({ [Symbol.asyncDispose]: () => bench.crew.dismiss([worker!]) });
    workers.set(contender, worker!);
  };
  await enter(REDIS, bench.server.url);
  const { urls } = opened.use(await QuorumServers.start(3));
  await enter(QUORUM, urls[0]!, urls);
  for (const { contender, start } of DATABASES) await enter(contender, opened.use(await start()).uri);
  for (const { contender, start } of ZOOKEEPERS) await enter(contender, opened.use(await start()).url);
  return workers;
};

const findingsOf = (comparison: Comparison): Finding[] =>
  CONTENDERS.slice(1).flatMap(({ name }) =>
    [TIME, RATE].map(({ key, what }): Finding => ({
      what: `${name}: ${what}, relative to one Redis server`,
      values: rowOf(comparison, name)!.values[key]!.map(
        (value, round) => value / rowOf(comparison, REDIS.name)!.values[key]![round]!,
      ),
      unit: 'ratio',
    })),
  );

/** The stores side by side: what a lock costs where nothing else is to do. */
export const stores: Workload = {
  name: 'stores',
  title: 'The stores side by side: free keys, nothing inside',
  shows:
    'The time of a lock and its release without other callers, and how many locks a second one process gets. Redis keeps nothing ' +
    'on a disk here. PostgreSQL, MariaDB and ZooKeeper wait for one, and all three servers of an ensemble for the same one. ' +
    'Each store has its defaults, except that callers wait without an end.',
  doesNotShow:
    'A network, or servers on machines of their own. All servers and clients share the CPUs and a disk, and one store is busy ' +
    'at a time. Locks when a server dies. Waits of many callers for one key.',
  charts: [
    {
      kind: 'bars',
      file: 'stores.svg',
      title: 'The stores side by side: free keys, nothing inside',
      metrics: [TIME.key, RATE.key],
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { progress, rounds, pace, quick } = bench;
    await using opened = new Opened();
    const workers = await open(bench, opened);
    const rows = CONTENDERS.map((contender) => emptyRow(contender, undefined, METRICS));
    const comparison: Comparison = { metrics: METRICS, axis: undefined, rows };
    progress.begin(this.title, CALLERS.length * (rounds + 1));
    for (const callers of CALLERS) {
      const periods = new Map<Contender, number[]>();
      const slice = async (contender: Contender, forMs: number) => {
        const result = await workers.get(contender)!.run(contender.style, {
          ...{ callers, forMs, workMs: 0, noteTimes: callers === 1 },
          keys: 'free',
          prefix: 'stores-',
        });
        const row = rows[CONTENDERS.indexOf(contender)]!;
        row.failures += result.failures;
        row.trouble ??= result.firstFailure;
        periods.get(contender)?.push(...periodsOf(result));
        return result;
      };
      for (const contender of CONTENDERS) await slice(contender, quick ? QUICK_WARM_UP_MS : WARM_UP_MS);
      progress.step();
      for (let round = 0; round < rounds; round++) {
        for (const contender of CONTENDERS) periods.set(contender, []);
        const results = await runRound(CONTENDERS, pace, (contender) => slice(contender, SLICE_MS));
        results.forEach(({ rate, cpuUs, violations }, at) => {
          const { values } = rows[at]!;
          if (callers === 1) values[TIME.key]!.push(median(periods.get(CONTENDERS[at]!)!) * 1_000);
          else {
            values[RATE.key]!.push(rate);
            values[CPU.key]!.push(cpuUs);
          }
          rows[at]!.violations += violations;
        });
        progress.step();
      }
    }
    return { findings: findingsOf(comparison), violations: ownViolations(comparison), comparison };
  },
};
