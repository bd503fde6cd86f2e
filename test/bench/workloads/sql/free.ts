import { rowOf, type Comparison, type Metric } from '../../comparison.js';
import type { Contender } from '../../contenders.js';
import { emptyRow, ownViolations } from '../../measure/compare.js';
import { runRound } from '../../measure/round.js';
import type { SubjectWorker } from '../../processes/subject-worker.js';
import type { Bench, Outcome, Workload } from '../../workload.js';
import {
  FOR_UPDATE,
  FOUR_LANES,
  GET_LOCK,
  MYSQL,
  REDIS,
  SHEDLOCK,
  startMysql,
  workersOf,
} from './entrants.js';

const CALLERS = [1, 100];
const WARM_UP_MS = 1_500;
const QUICK_WARM_UP_MS = 300;
const CONTENDERS: readonly Contender[] = [MYSQL, FOUR_LANES, SHEDLOCK, FOR_UPDATE, GET_LOCK, REDIS];

const who = (callers: number): string => (callers === 1 ? '1 caller' : `${callers} callers`);

const metrics: readonly Metric[] = CALLERS.flatMap((callers): Metric[] => [
  { key: `rate-${callers}`, what: `${who(callers)}: locks`, unit: '/s', better: 'more' },
  { key: `cpu-${callers}`, what: `${who(callers)}: CPU time per lock`, unit: 'µs', better: 'less' },
]);

/** Locks in MySQL without other callers, beside Redis and beside what apps do by hand. */
export const sqlFree: Workload = {
  name: 'sql-free',
  title: 'MySQL: free keys, nothing inside',
  shows:
    'How many locks a second one process acquires and releases. The database is a real MariaDB on a disk, and each commit waits ' +
    'for that disk (`innodb_flush_log_at_trx_commit = 1`, no binlog). MysqlStore and ShedLock commit twice for each lock. ' +
    'All have 10 connections, unless the name says otherwise. ShedLock is measured by its statements, sent from Node.',
  doesNotShow:
    'MySQL, whose binlog makes each commit more expensive; a network in between; what is lost when a connection ends. ' +
    '`FOR UPDATE` and `GET_LOCK` commit nothing here: a crash ends their locks at once.',
  charts: [
    {
      kind: 'bars',
      file: 'sql-free.svg',
      title: 'MySQL: free keys, nothing inside',
      metrics: CALLERS.map((callers) => `rate-${callers}`),
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { progress, rounds, pace, quick } = bench;
    await using database = await startMysql();
    const workers = new Map<Contender, SubjectWorker>();
    for (const contender of CONTENDERS)
      workers.set(contender, (await workersOf(bench, database, contender, 1))[0]!);
    const rows = CONTENDERS.map((contender) => emptyRow(contender, undefined, metrics));
    const comparison: Comparison = { metrics, axis: undefined, rows };
    progress.begin(this.title, CALLERS.length * (rounds + 1));
    for (const callers of CALLERS) {
      const slice = async (contender: Contender, forMs: number) => {
        const load = { callers, forMs, keys: 'free', workMs: 0, prefix: `${contender.style}-` } as const;
        const result = await workers.get(contender)!.run(contender.style, load);
        const row = rowOf(comparison, contender.name)!;
        row.failures += result.failures;
        row.trouble ??= result.firstFailure;
        return result;
      };
      for (const contender of CONTENDERS) await slice(contender, quick ? QUICK_WARM_UP_MS : WARM_UP_MS);
      progress.step();
      for (let round = 0; round < rounds; round++) {
        const results = await runRound(CONTENDERS, pace, slice);
        results.forEach(({ rate, cpuUs, violations }, at) => {
          const row = rows[at]!;
          row.values[`rate-${callers}`]!.push(rate);
          row.values[`cpu-${callers}`]!.push(cpuUs);
          row.violations += violations;
        });
        progress.step();
      }
    }
    await bench.crew.dismiss([...workers.values()]);
    const ratios = (callers: number): readonly number[] => {
      const of = (contender: Contender): readonly number[] =>
        rowOf(comparison, contender.name)!.values[`rate-${callers}`]!;
      return of(MYSQL).map((rate, round) => rate / of(SHEDLOCK)[round]!);
    };
    return {
      findings: CALLERS.map((callers) => ({
        what: `${who(callers)}: locks, relative to the way of ShedLock`,
        values: ratios(callers),
        unit: 'ratio',
        target: { atLeast: 0.85 },
      })),
      violations: ownViolations(comparison),
      comparison,
    };
  },
};
