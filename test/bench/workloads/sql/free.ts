import { rowOf, type Comparison, type Metric } from '../../comparison.js';
import type { Contender } from '../../contenders.js';
import { emptyRow, ownViolations } from '../../measure/compare.js';
import { runRound, warmUp } from '../../measure/round.js';
import type { SubjectWorker } from '../../processes/subject-worker.js';
import type { Bench, Finding, Outcome, Workload } from '../../workload.js';
import { byConnection, REDIS, workersOf, type Entrants } from './entrants.js';

const CALLERS = [1, 100];

const who = (callers: number): string => (callers === 1 ? '1 caller' : `${callers} callers`);

const metrics: readonly Metric[] = CALLERS.flatMap((callers): Metric[] => [
  { key: `rate-${callers}`, what: `${who(callers)}: locks`, unit: '/s', better: 'more' },
  { key: `cpu-${callers}`, what: `${who(callers)}: CPU time per lock`, unit: 'µs', better: 'less' },
]);

/** Locks in a database without other callers, beside Redis and beside what apps do by hand. */
export const sqlFree = (entrants: Entrants): Workload => ({
  name: `sql-${entrants.id}-free`,
  title: `${entrants.title}: free keys, nothing inside`,
  shows:
    `How many locks a second one process acquires and releases. ${entrants.shows} All have 10 connections, unless the name says ` +
    'otherwise. ShedLock is measured by its statements, sent from Node.',
  doesNotShow: `${entrants.doesNotShow} ${byConnection(entrants)} commit nothing here, and a crash ends their locks at once.`,
  charts: [
    {
      kind: 'bars',
      file: `sql-${entrants.id}-free.svg`,
      title: `${entrants.title}: free keys, nothing inside`,
      metrics: CALLERS.map((callers) => `rate-${callers}`),
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { progress, rounds, pace, quick } = bench;
    const { ours, byDefault, shedLock, ofConnections, targets } = entrants;
    const contenders: readonly Contender[] = [ours, byDefault, shedLock, ...ofConnections, REDIS];
    await using database = await entrants.start();
    const workers = new Map<Contender, SubjectWorker>();
    for (const contender of contenders)
      workers.set(contender, (await workersOf(bench, entrants, database, contender, 1))[0]!);
    const rows = contenders.map((contender) => emptyRow(contender, undefined, metrics));
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
      await warmUp(contenders, slice, { quick });
      progress.step();
      for (let round = 0; round < rounds; round++) {
        const results = await runRound(contenders, pace, slice);
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
    const rates = (contender: Contender, callers: number): readonly number[] =>
      rowOf(comparison, contender.name)!.values[`rate-${callers}`]!;
    const ratios = (callers: number): readonly number[] =>
      rates(ours, callers).map((rate, round) => rate / rates(shedLock, callers)[round]!);
    const relative = CALLERS.map((callers): Finding => ({
      what: `${who(callers)}: locks, relative to the way of ShedLock`,
      values: ratios(callers),
      unit: 'ratio',
      target: { atLeast: targets.ofShedLock },
    }));
    const most = Math.max(...CALLERS);
    const absolute: Finding = {
      what: `${who(most)}: locks`,
      values: rates(ours, most),
      unit: '/s',
      ...(targets.rate && { target: { atLeast: targets.rate } }),
    };
    return {
      findings: [...relative, absolute],
      violations: ownViolations(comparison),
      comparison,
    };
  },
});
