import type { Comparison, Metric } from '../../comparison.js';
import { ownViolations } from '../../measure/compare.js';
import { periodsOf } from '../../measure/periods.js';
import { runRound } from '../../measure/round.js';
import { median } from '../../measure/statistics.js';
import { QuorumServers } from '../../processes/quorum-servers.js';
import { FENCED, UNFENCED, type Contender } from '../../contenders.js';
import type { Bench, Finding, Outcome, Workload } from '../../workload.js';
import {
  aheadOfPeers,
  Entrants,
  noteTroubles,
  prefixOf,
  QUICK_SIZES,
  rowFor,
  rowsFor,
  SIZES,
} from './entrants.js';

const MANY = 50;
const CALLERS: readonly number[] = [1, MANY];
const WARM_UP_MS = 1_500;
const QUICK_WARM_UP_MS = 300;

const TIME: Metric = {
  key: 'time-1',
  what: '1 caller: time of a lock and its release',
  unit: 'µs',
  better: 'less',
};
const RATE: Metric = { key: 'rate-50', what: '50 callers: locks', unit: '/s', better: 'more' };
const CPU: Metric = { key: 'cpu-50', what: '50 callers: CPU time per lock', unit: 'µs', better: 'less' };
const METRICS = [TIME, RATE, CPU];

const findingsOf = (comparison: Comparison): Finding[] =>
  comparison.axis!.points.flatMap((at): Finding[] => {
    const plain = rowFor(comparison, UNFENCED, at).values[TIME.key]!;
    const fenced = rowFor(comparison, FENCED, at).values[TIME.key]!;
    return [
      ...[TIME, RATE].map((metric) => ({
        what: `${at} servers, fencing: false, ${metric === TIME ? '1 caller' : '50 callers'}: locks, relative to the best peer`,
        values: aheadOfPeers(comparison, metric, at),
        unit: 'ratio' as const,
        target: { atLeast: 1 },
      })),
      {
        what: `${at} servers, 1 caller: time with fencing tokens, relative to the time without`,
        values: fenced.map((time, round) => time / plain[round]!),
        unit: 'ratio',
      },
    ];
  });

/** Locks of a quorum without other callers and with nothing inside: the cost of a library. */
export const quorumFree: Workload = {
  name: 'quorum-free',
  title: 'A quorum of 3 and of 5 servers: free keys, nothing inside',
  shows:
    'The cost of a lock by majority while all servers are up and near. A token ' +
    'takes no more round trips; no peer has tokens.',
  doesNotShow:
    'Servers on separate machines, which work at the same time: here all servers share the CPUs with the callers.',
  charts: [
    {
      kind: 'lines',
      file: 'quorum-free-rate.svg',
      title: 'A quorum: locks per second of 50 callers, free keys, by servers',
      metric: RATE.key,
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { progress, rounds, pace, quick } = bench;
    const sizes = quick ? QUICK_SIZES : SIZES;
    const comparison: Comparison = {
      metrics: METRICS,
      axis: { what: 'servers', points: sizes },
      rows: rowsFor(sizes, METRICS),
    };
    progress.begin(this.title, sizes.length * CALLERS.length * (rounds + 1));
    for (const size of sizes) {
      await using nodes = await QuorumServers.start(size);
      await using entrants = await Entrants.on(bench, nodes.urls);
      for (const callers of CALLERS) {
        const periods = new Map<Contender, number[]>();
        const slice = async (contender: Contender, forMs: number, as = callers) => {
          const result = await entrants.of(contender)[0]!.run(contender.style, {
            ...{ callers: as, forMs, workMs: 0, noteTimes: as === 1 },
            keys: 'free',
            prefix: prefixOf(contender),
          });
          periods.get(contender)?.push(...periodsOf(result));
          return result;
        };
        const { contenders } = entrants;
        for (const contender of contenders) {
          const warm = await slice(contender, quick ? QUICK_WARM_UP_MS : WARM_UP_MS, MANY);
          noteTroubles(rowFor(comparison, contender, size), warm);
        }
        progress.step();
        for (let round = 0; round < rounds; round++) {
          for (const contender of contenders) periods.set(contender, []);
          const results = await runRound(contenders, pace, slice);
          results.forEach(({ rate, cpuUs, violations }, i) => {
            const row = rowFor(comparison, contenders[i]!, size);
            if (callers === 1) row.values[TIME.key]!.push(median(periods.get(contenders[i]!)!) * 1_000);
            else {
              row.values[RATE.key]!.push(rate);
              row.values[CPU.key]!.push(cpuUs);
            }
            row.violations += violations;
          });
          progress.step();
        }
      }
    }
    return { findings: findingsOf(comparison), violations: ownViolations(comparison), comparison };
  },
};
