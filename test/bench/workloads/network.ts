import { medianOf, type Comparison } from '../comparison.js';
import { libraries, OURS } from '../contenders.js';
import { compare, ownViolations } from '../measure/compare.js';
import { contended } from '../measure/contended.js';
import type { Bench, Finding, Outcome, Workload } from '../workload.js';

const PROCESSES = 2;
const CALLERS = 50;
const WORK_MS = 2;
const FOR_MS = 1_500;
const DELAYS_MS = [0, 1, 5];
const QUICK_DELAYS_MS = [5];

const metrics = [
  { key: 'rate', what: 'locks', unit: '/s', better: 'more' },
  { key: 'jain', what: "Jain's index over callers", unit: 'ratio', better: 'more' },
  { key: 'longest', what: 'longest wait', unit: 'ms', better: 'less' },
  { key: 'commands', what: 'Redis commands per lock', unit: 'ratio', better: 'less' },
] as const;

/** The rank of this library by a metric, at each delay. A ranking that depends on the network means nothing. */
const places = ({ rows }: Comparison, metric: (typeof metrics)[number]): Finding[] =>
  [...new Set(rows.map(({ at }) => at!))].map((at) => {
    const there = rows.filter((row) => row.at === at);
    const values = there
      .map((row) => ({ row, value: medianOf(row, metric.key) }))
      .filter((one): one is { row: (typeof rows)[number]; value: number } => one.value !== undefined)
      .sort((a, b) => (metric.better === 'more' ? b.value - a.value : a.value - b.value));
    const place = values.findIndex(({ row }) => row.contender.name === OURS.name) + 1;
    return { what: `${at} ms: our rank by ${metric.what}, of ${there.length}`, values: [place], unit: '' };
  });

/** Locks on a server that is not on the same machine. */
export const network: Workload = {
  name: 'network',
  title: `Network: one key, ${PROCESSES} processes × ${CALLERS} callers, ${WORK_MS} ms of work inside, a delay of 0, 1 or 5 ms each way`,
  shows: 'Whether the ranking of the libraries stays the same with a delay between the processes and Redis.',
  doesNotShow: 'Lost packets, broken connections and varying delays.',
  charts: [
    {
      kind: 'lines',
      file: 'network-rate.svg',
      title: 'Locks per second, by delay between the processes and Redis (2 ms of work inside)',
      metric: 'rate',
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { crew, pace, quick, growthRounds } = bench;
    const way = await bench.network.open();
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders: libraries,
      axis: { what: 'ms each way', points: quick ? QUICK_DELAYS_MS : DELAYS_MS },
      rounds: growthRounds,
      async measure(contender, at, round) {
        await way.delay(at);
        const ran = await contended(bench, contender, {
          processes: PROCESSES,
          url: way.url,
          callers: CALLERS,
          forMs: FOR_MS * pace,
          keys: { one: `network-${at}-${round}` },
          workMs: WORK_MS,
        });
        const { rate, jain, longestWaitMs: longest, commands } = ran;
        return { ...ran, values: { rate, jain, longest, commands } };
      },
    });
    await crew.dismissAllAt(way.url);
    const findings = metrics.slice(0, 2).flatMap((metric) => places(comparison, metric));
    return { findings, violations: ownViolations(comparison), comparison };
  },
};
