import { rowOf, type Metric } from '../../comparison.js';
import type { Contender } from '../../contenders.js';
import { compare, ownViolations } from '../../measure/compare.js';
import { runTogether } from '../../measure/together.js';
import type { Bench, Finding, Outcome, Workload } from '../../workload.js';
import { byConnection, type Entrants } from './entrants.js';

/** Processes of the machine. What are many for the database are services in them, each with a caller and a lane of its own. */
const PROCESSES = 4;
const CROWDS = [2, 8, 32, 64];
const FOR_MS = 6_000;
const WARM_UP_MS = 2_000;
/** A service waits for as long as a user's caller would: none gives up. */
const WAIT_MS = 60_000;

const metrics: readonly Metric[] = [
  { key: 'rate', what: 'locks', unit: '/s', better: 'more' },
  { key: 'requests', what: 'statements per lock', unit: 'ratio', better: 'less' },
  { key: 'server', what: 'CPU time of the server per lock', unit: 'µs', better: 'less' },
  { key: 'jain', what: "Jain's index over processes", unit: 'ratio', better: 'more' },
  { key: 'longest', what: 'longest wait', unit: 'ms', better: 'less' },
];

/** One key in a database that each of many processes requests again and again. */
export const sqlCrowd = (entrants: Entrants): Workload => ({
  name: `sql-${entrants.id}-crowd`,
  title: `${entrants.title}: one key, many processes, nothing inside`,
  shows:
    'What a grant of a contended key costs when more and more processes wait for it, and whether each has its share. ' +
    `A process is a service with one lane; ${PROCESSES} real processes have them all. A message of several statements counts as several on MySQL.`,
  doesNotShow: `${byConnection(entrants)} keep a connection for each waiter, and tell nothing of a holder that is late.`,
  charts: [
    {
      kind: 'lines',
      file: `sql-${entrants.id}-crowd.svg`,
      title: `${entrants.title}: locks of one key a second, by processes`,
      metric: 'rate',
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { rounds, pace, crew } = bench;
    const { byDefault, ofConnections, targets } = entrants;
    const ours: Contender = {
      ...byDefault,
      name: byDefault.subject,
      style: 'withLock, a service for each caller',
    };
    await using database = await entrants.start();
    const measured = async (contender: Contender, crowd: number, forMs: number, round: number) => {
      const [count, each] = crowd < PROCESSES ? [crowd, 1] : [PROCESSES, crowd / PROCESSES];
      const options = { url: database.uri, waitMs: WAIT_MS };
      const size = contender === ours ? { services: each, connections: 1 } : { connections: each };
      const workers = await crew.of(contender, count, { ...options, ...size });
      const [statements, cpuUs] = [await database.statements(), await database.cpuUs()];
      const ran = await runTogether([], workers, contender.style, {
        ...{ callers: each, workMs: 0, forMs, keys: { one: `crowd-${crowd}-${round}-${forMs}` } },
        prefix: `${contender.style}-`,
      });
      if (ran.rate === 0) throw new Error(ran.firstFailure ?? 'no caller was served');
      const sections = ran.results.reduce((total, result) => total + result.sections, 0);
      const requests = ((await database.statements()) - statements) / sections;
      return { ran, requests, server: ((await database.cpuUs()) - cpuUs) / sections };
    };
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders: [ours, ...ofConnections],
      axis: { what: 'processes', points: CROWDS },
      rounds,
      async measure(contender, crowd, round) {
        await measured(contender, crowd, WARM_UP_MS, round);
        const { ran, requests, server } = await measured(contender, crowd, FOR_MS * pace, round);
        const { rate, jain, longestWaitMs: longest } = ran;
        return { ...ran, values: { rate, requests, server, jain, longest } };
      },
      // Services that only wait for messages cost the next ones something.
      done: (contender) => crew.dismissAllOf(contender),
    });
    const of = (metric: string, crowd: number): readonly number[] =>
      rowOf(comparison, ours.name, crowd)!.values[metric]!;
    const [few, many] = [Math.min(...CROWDS), Math.max(...CROWDS)];
    const findings: Finding[] = [
      {
        what: `locks of ${many} processes, relative to ${few}`,
        values: of('rate', many).map((rate, round) => rate / of('rate', few)[round]!),
        unit: 'ratio',
        target: { atLeast: targets.ofFewProcesses },
      },
      {
        what: `${many} processes: statements per lock`,
        values: of('requests', many),
        unit: 'ratio',
        target: { atMost: targets.statements },
      },
      {
        what: `${many} processes: Jain's index over processes`,
        values: of('jain', many),
        unit: 'ratio',
        target: { atLeast: 0.95 },
      },
    ];
    return { findings, violations: ownViolations(comparison), comparison };
  },
});
