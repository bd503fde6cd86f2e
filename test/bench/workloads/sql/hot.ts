import { rowOf, type Metric } from '../../comparison.js';
import type { Contender } from '../../contenders.js';
import { compare, ownViolations } from '../../measure/compare.js';
import { percentile } from '../../measure/statistics.js';
import { runTogether } from '../../measure/together.js';
import { handOvers } from '../../measure/turns.js';
import type { Bench, Finding, Outcome, Workload } from '../../workload.js';
import { byConnection, REDIS, workersOf, type Entrants } from './entrants.js';

const PROCESSES = 2;
const CALLERS = [1, 10];
const WORK_MS = 2;
const FOR_MS = 3_000;
const WARM_UP_MS = 500;
const GRACE_MS = 1_500;

const metrics: readonly Metric[] = [
  { key: 'rate', what: 'locks', unit: '/s', better: 'more' },
  { key: 'jain', what: "Jain's index over callers", unit: 'ratio', better: 'more' },
  { key: 'p50', what: 'hand-over to the other process, median', unit: 'ms', better: 'less' },
  { key: 'p95', what: 'hand-over to the other process, 95 % within', unit: 'ms', better: 'less' },
  { key: 'longest', what: 'longest wait', unit: 'ms', better: 'less' },
  { key: 'requests', what: 'statements or commands per lock', unit: 'ratio', better: 'less' },
];

/** One key in a database that all callers of two processes request. */
export const sqlHot = (entrants: Entrants): Workload => ({
  name: `sql-${entrants.id}-hot`,
  title: `${entrants.title}: one key, ${PROCESSES} processes, ${WORK_MS} ms of work (a timer) inside`,
  shows:
    'How long a key stays free between a holder and a waiter in the other process, and how evenly callers get it. ' +
    'The statements of waiting callers count, too.',
  doesNotShow:
    `Waiters without an end of their patience on more connections: ${byConnection(entrants)} ` +
    'need one for each waiter, the store does not. ShedLock does not wait, so it has no row.',
  charts: [
    {
      kind: 'lines',
      file: `sql-${entrants.id}-hot-hand-over.svg`,
      title: `${entrants.title}: hand-over of one key to the other process, by callers of each process`,
      metric: 'p50',
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { rounds, pace, server } = bench;
    const { byDefault, ofConnections, targets } = entrants;
    const contenders: readonly Contender[] = [byDefault, ...ofConnections, REDIS];
    await using database = await entrants.start();
    const measured = async (contender: Contender, callers: number, forMs: number, round: number) => {
      const workers = await workersOf(bench, entrants, database, contender, PROCESSES);
      const before = await database.statements();
      const ran = await runTogether(contender === REDIS ? [server] : [], workers, contender.style, {
        ...{ callers, workMs: WORK_MS, forMs, graceMs: GRACE_MS, noteTimes: true },
        keys: { one: `hot-${callers}-${round}-${forMs}` },
        prefix: `${contender.style}-`,
      });
      if (ran.unfinished > 0) await bench.crew.dismiss(workers);
      if (ran.rate === 0) throw new Error(ran.firstFailure ?? 'no caller was served');
      const sent = (await database.statements()) - before;
      const sections = ran.results.reduce((total, result) => total + result.sections, 0);
      return { ran, requests: contender === REDIS ? ran.commands : sent / sections };
    };
    const warm = new Set<Contender>();
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders,
      axis: { what: 'callers of each process', points: CALLERS },
      rounds,
      async measure(contender, callers, round) {
        if (!warm.has(contender)) await measured(contender, callers, WARM_UP_MS, round);
        warm.add(contender);
        const { ran, requests } = await measured(contender, callers, FOR_MS * pace, round);
        const waits = handOvers(ran);
        const [p50, p95] = waits.length > 0 ? [50, 95].map((percent) => percentile(waits, percent)) : [];
        const { rate, jain, longestWaitMs: longest } = ran;
        return { ...ran, values: { rate, jain, p50, p95, longest, requests } };
      },
    });
    const of = (metric: string, callers: number): readonly number[] =>
      rowOf(comparison, byDefault.name, callers)!.values[metric]!;
    return {
      findings: CALLERS.flatMap((callers): Finding[] => [
        {
          what: `${PROCESSES} × ${callers} callers: hand-over to the other process, median`,
          values: of('p50', callers),
          unit: 'ms',
          target: { atMost: targets.handOverMs },
        },
        {
          what: `${PROCESSES} × ${callers} callers: Jain's index over callers`,
          values: of('jain', callers),
          unit: 'ratio',
          target: { atLeast: 0.95 },
        },
      ]),
      violations: ownViolations(comparison),
      comparison,
    };
  },
});
