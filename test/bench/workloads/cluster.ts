import { rowOf, type Comparison, type Metric } from '../comparison.js';
import { BY_HAND, type Contender } from '../contenders.js';
import { emptyRow, ownViolations } from '../measure/compare.js';
import { WAIT_MS } from '../measure/contended.js';
import { commandCounts, sentBetween } from '../measure/redis-commands.js';
import { runRound } from '../measure/round.js';
import { cpuUsOf } from '../measure/server-cpu.js';
import { Opened } from '../processes/opened.js';
import type { SubjectWorker } from '../processes/subject-worker.js';
import { INSIDE_SCRIPTS } from '../subjects/inside-scripts.js';
import { RedisClusterServers } from '../../support/servers/redis-cluster.js';
import type { RedisServer } from '../../support/servers/redis-server.js';
import type { Bench, Finding, Outcome, Workload } from '../workload.js';

const CALLERS = 100;
const MASTERS = 3;
const WARM_UP_MS = 1_500;
const COUNTED_MS = 1_000;
/** What the share of the busiest of three masters may be beyond a third: keys are not spread quite evenly. */
const SHARE = 0.4;

const SERVER: Contender = { ...BY_HAND, name: 'one server' };
const ONE: Contender = { ...BY_HAND, name: 'a cluster of one master' };
const THREE: Contender = { ...BY_HAND, name: `a cluster of ${MASTERS} masters` };

const metrics: readonly Metric[] = [
  { key: 'rate', what: 'locks', unit: '/s', better: 'more' },
  { key: 'commands', what: 'Redis commands per lock', unit: 'ratio', better: 'less' },
  { key: 'busiest', what: 'of these, at the busiest master', unit: 'ratio', better: 'less' },
  { key: 'server', what: 'CPU time of the busiest master per lock', unit: 'µs', better: 'less' },
  { key: 'cpu', what: 'CPU time of the process per lock', unit: 'µs', better: 'less' },
];

interface Entrant {
  readonly contender: Contender;
  readonly worker: SubjectWorker;
  readonly masters: readonly RedisServer[];
}

const open = async (bench: Bench, opened: Opened): Promise<readonly Entrant[]> => {
  const enter = async (
    contender: Contender,
    masters: readonly RedisServer[],
    isCluster: boolean,
  ): Promise<Entrant> => {
    const urls = masters.map(({ url }) => url);
    const options = { url: urls[0]!, waitMs: WAIT_MS, ...(isCluster && { cluster: urls }) };
    const [worker] = await bench.crew.of(contender, 1, options);
    opened.use({ [Symbol.asyncDispose]: () => bench.crew.dismiss([worker!]) });
    return { contender, worker: worker!, masters };
  };
  const cluster = async (masters: number): Promise<readonly RedisServer[]> =>
    opened.use(await RedisClusterServers.start({ masters, replicas: false })).servers;
  return [
    await enter(SERVER, [bench.server], false),
    await enter(ONE, await cluster(1), true),
    await enter(THREE, await cluster(MASTERS), true),
  ];
};

const ofOne = (comparison: Comparison, key: string): readonly number[] => {
  const one = rowOf(comparison, ONE.name)!.values[key]!;
  return rowOf(comparison, THREE.name)!.values[key]!.map((value, round) => value / one[round]!);
};

const findingsOf = (comparison: Comparison): Finding[] => [
  {
    what: `${MASTERS} masters: locks, relative to one master`,
    values: ofOne(comparison, 'rate'),
    unit: 'ratio',
    target: { atLeast: 2 },
  },
  {
    what: `${MASTERS} masters: commands at the busiest, relative to one master`,
    values: ofOne(comparison, 'busiest'),
    unit: 'ratio',
    target: { atMost: SHARE },
  },
  {
    what: `${MASTERS} masters: CPU time of the busiest per lock, relative to one master`,
    values: ofOne(comparison, 'server'),
    unit: 'ratio',
    target: { atMost: 1 / 2 },
  },
  {
    what: 'a cluster of one master: CPU time of the process per lock, relative to one server',
    values: rowOf(comparison, ONE.name)!.values['cpu']!.map(
      (us, round) => us / rowOf(comparison, SERVER.name)!.values['cpu']![round]!,
    ),
    unit: 'ratio',
  },
];

/** What a cluster spreads over its masters. */
export const cluster: Workload = {
  name: 'cluster',
  title: `A cluster of one and of ${MASTERS} masters: free keys, ${CALLERS} callers of one process, nothing inside`,
  shows:
    'How many locks a cluster grants with more masters, and the cost of a lock at the busiest master. If each master has its own CPU, ' +
    'the busiest one limits the rate: with half of the CPU time per lock it grants twice as many locks.',
  doesNotShow:
    'Masters on separate machines, with enough processes to keep them busy: here one process and all masters share the CPUs. On ' +
    'one server, the requests of one tick share a script; on a cluster each lock is a separate script, because of the slots.',
  async run(bench: Bench): Promise<Outcome> {
    const { progress, rounds, pace } = bench;
    await using opened = new Opened();
    const entrants = await open(bench, opened);
    const rows = entrants.map(({ contender }) => emptyRow(contender, undefined, metrics));
    const comparison: Comparison = { metrics, axis: undefined, rows };
    progress.begin(this.title, rounds + 1);
    const slice = async ({ contender, worker }: Entrant, forMs: number) =>
      worker.run(contender.style, { ...{ callers: CALLERS, forMs, workMs: 0 }, keys: 'free' });
    for (const entrant of entrants) await slice(entrant, WARM_UP_MS * Math.max(pace, 0.3));
    progress.step();
    for (let round = 0; round < rounds; round++) {
      const results = await runRound(entrants, pace, slice);
      for (const [i, entrant] of entrants.entries()) {
        const { values } = rows[i]!;
        const before = await Promise.all(entrant.masters.map(commandCounts));
        const cpuBefore = await Promise.all(entrant.masters.map(cpuUsOf));
        const { sections, violations, failures, firstFailure } = await slice(entrant, COUNTED_MS * pace);
        const cpuAfter = await Promise.all(entrant.masters.map(cpuUsOf));
        const after = await Promise.all(entrant.masters.map(commandCounts));
        const sent = after.map((counts, at) => sentBetween(before[at]!, counts, INSIDE_SCRIPTS) / sections);
        values['rate']!.push(results[i]!.rate);
        values['cpu']!.push(results[i]!.cpuUs);
        values['commands']!.push(sent.reduce((total, one) => total + one, 0));
        values['busiest']!.push(Math.max(...sent));
        values['server']!.push(Math.max(...cpuAfter.map((us, at) => us - cpuBefore[at]!)) / sections);
        rows[i]!.violations += violations + results[i]!.violations;
        rows[i]!.failures += failures;
        rows[i]!.trouble ??= firstFailure;
      }
      progress.step();
    }
    return { findings: findingsOf(comparison), violations: ownViolations(comparison), comparison };
  },
};
