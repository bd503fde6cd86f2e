import { rowOf, type Comparison, type Metric } from '../comparison.js';
import {
  BY_HAND,
  FLOOR,
  libraries,
  NO_WAIT_FOR_RELEASE,
  WITH_OPTIONS,
  type Contender,
} from '../contenders.js';
import { emptyRow, ownViolations } from '../measure/compare.js';
import { WAIT_MS } from '../measure/contended.js';
import { pinned } from '../measure/pinning.js';
import { runRound, warmUp } from '../measure/round.js';
import { cpuUsOf } from '../measure/server-cpu.js';
import { percentile } from '../measure/statistics.js';
import type { SubjectWorker } from '../processes/subject-worker.js';
import type { Bench, Finding, Outcome, Workload } from '../workload.js';

const CALLERS = [1, 100];
/** Targets for each number of callers: CPU time and locks, relative to the floor. */
const TARGETS: Readonly<Record<number, { readonly cpu: number; readonly locks: number | undefined }>> = {
  1: { cpu: 1.25, locks: undefined },
  100: { cpu: 1.2, locks: 1 },
};
const CONTENDERS: readonly Contender[] = [FLOOR, BY_HAND, WITH_OPTIONS, NO_WAIT_FOR_RELEASE, ...libraries];

const who = (callers: number): string => (callers === 1 ? '1 caller' : `${callers} callers`);

/** How long one call takes: its lock and its release. */
const PERCENTILES = [50, 99];

const metrics: readonly Metric[] = CALLERS.flatMap((callers): Metric[] => [
  {
    key: `ratio-${callers}`,
    what: `${who(callers)}: locks, relative to the floor`,
    unit: 'ratio',
    better: 'more',
  },
  { key: `rate-${callers}`, what: `${who(callers)}: locks`, unit: '/s', better: 'more' },
  { key: `cpu-${callers}`, what: `${who(callers)}: CPU time per lock`, unit: 'µs', better: 'less' },
  {
    key: `cpu-ratio-${callers}`,
    what: `${who(callers)}: CPU time per lock, relative to the floor`,
    unit: 'ratio',
    better: 'less',
  },
  {
    key: `server-${callers}`,
    what: `${who(callers)}: CPU time of Redis per lock`,
    unit: 'µs',
    better: 'less',
  },
]).concat(
  PERCENTILES.map((percent) => ({
    key: `p${percent}`,
    what: `1 caller: ${percent} % of the calls take less than`,
    unit: 'µs',
    better: 'less',
  })),
);

interface Entrant {
  readonly contender: Contender;
  readonly worker: SubjectWorker;
}

/** Locks without other callers and with nothing inside: the cost of the library itself. */
export const freeKeys: Workload = {
  name: 'free-keys',
  title: 'Nothing inside: free keys, Redis on one CPU and the callers on another',
  shows:
    'The cost of a library itself, relative to the floor: a bare ioredis connection that sends SET with NX and PX, and a ' +
    'script that compares and deletes. All use the same version of ioredis, with one connection, and are measured after 5,000 ' +
    'locks.',
  doesNotShow: 'A difference that a user notices: a section that does nothing needs no lock.',
  charts: [
    {
      kind: 'bars',
      file: 'free-keys.svg',
      title: 'Free keys, nothing inside',
      metrics: metrics.map(({ key }) => key).filter((key) => /^(ratio|rate|cpu-\d)/.test(key)),
    },
  ],
  async run({ server, crew, progress, rounds, pace, quick }: Bench): Promise<Outcome> {
    const entrants: Entrant[] = [];
    for (const contender of CONTENDERS) {
      const [worker] = await crew.of(contender, 1, { url: server.url, waitMs: WAIT_MS });
      entrants.push({ contender, worker: worker! });
    }
    using _cpus = pinned(server.pid, [...new Set(entrants.map(({ worker }) => worker.pid))]);
    const rows = CONTENDERS.map((contender) => emptyRow(contender, undefined, metrics));
    const comparison: Comparison = { metrics, axis: undefined, rows };
    progress.begin(this.title, CALLERS.length * (rounds + 1));

    for (const callers of CALLERS) {
      const slice = async ({ contender, worker }: Entrant, forMs: number) => {
        const before = await cpuUsOf(server);
        const result = await worker.run(contender.anyKeyStyle ?? contender.style, {
          ...{ callers, forMs, keys: 'free', prefix: contender.name, workMs: 0, noteCalls: callers === 1 },
        });
        return { ...result, serverUs: (await cpuUsOf(server)) - before };
      };
      await warmUp(entrants, slice, { quick });
      progress.step();
      for (let round = 0; round < rounds; round++) {
        const results = await runRound(entrants, pace, slice);
        results.forEach(({ rate, cpuUs, serverUs, callsMs, violations }, at) => {
          const row = rows[at]!;
          for (const percent of callers === 1 ? PERCENTILES : [])
            row.values[`p${percent}`]!.push(percentile(callsMs, percent) * 1_000);
          row.values[`server-${callers}`]!.push(serverUs);
          row.values[`rate-${callers}`]!.push(rate);
          row.values[`cpu-${callers}`]!.push(cpuUs);
          row.values[`ratio-${callers}`]!.push(rate / results[0]!.rate);
          row.values[`cpu-ratio-${callers}`]!.push(cpuUs / results[0]!.cpuUs);
          row.violations += violations;
        });
        progress.step();
      }
    }
    return {
      findings: CALLERS.flatMap((callers): Finding[] => {
        const { values } = rowOf(comparison, BY_HAND.name)!;
        const { cpu, locks } = TARGETS[callers]!;
        return [
          {
            what: `${who(callers)}, withLock: CPU time per lock, ratio to the floor`,
            values: values[`cpu-ratio-${callers}`]!,
            unit: 'ratio',
            target: { atMost: cpu },
          },
          {
            what: `${who(callers)}, withLock: locks, ratio to the floor`,
            values: values[`ratio-${callers}`]!,
            unit: 'ratio',
            target: locks === undefined ? undefined : { atLeast: locks },
          },
        ];
      }),
      violations: ownViolations(comparison),
      comparison,
    };
  },
};
