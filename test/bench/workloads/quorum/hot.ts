import { rowOf, type Comparison, type Metric } from '../../comparison.js';
import { UNFENCED } from '../../contenders.js';
import { compare, ownViolations } from '../../measure/compare.js';
import { runTogether } from '../../measure/together.js';
import { Opened } from '../../processes/opened.js';
import { QuorumServers } from '../../processes/quorum-servers.js';
import type { Bench, Finding, Outcome, Workload } from '../../workload.js';
import { aheadOfPeers, CONTENDERS, Entrants, prefixOf, QUICK_SIZES, SIZES } from './entrants.js';

const PROCESSES = 2;
const CALLERS = 10;
const WORK_MS = 2;
const FOR_MS = 3_000;
/** Time for callers that still wait at the end. */
const GRACE_MS = 1_500;

const RATE: Metric = { key: 'rate', what: 'locks', unit: '/s', better: 'more' };
const METRICS: readonly Metric[] = [
  RATE,
  { key: 'longest', what: 'longest wait', unit: 'ms', better: 'less' },
  { key: 'unserved', what: 'callers never served', unit: '', better: 'less' },
  { key: 'jain', what: "Jain's index over callers", unit: 'ratio', better: 'more' },
  { key: 'commands', what: 'Redis commands per lock, of all servers', unit: 'ratio', better: 'less' },
];

const findingsOf = (comparison: Comparison): Finding[] =>
  comparison.axis!.points.flatMap((at): Finding[] => [
    {
      what: `${at} servers, fencing: false: locks, relative to the best peer`,
      values: aheadOfPeers(comparison, RATE, at),
      unit: 'ratio',
      target: { atLeast: 1 },
    },
    {
      what: `${at} servers, fencing: false: callers never served`,
      values: rowOf(comparison, UNFENCED.name, at)!.values['unserved']!,
      unit: '',
      target: { atMost: 0 },
    },
  ]);

/** One key of a quorum that all callers request. */
export const quorumHot: Workload = {
  name: 'quorum-hot',
  title: `A quorum of 3 and of 5 servers: one key, ${PROCESSES} processes × ${CALLERS} callers, ${WORK_MS} ms of work inside`,
  shows:
    'How many locks a quorum grants while callers always wait, the longest wait of a caller, and the number of callers that are ' +
    'never served. A wait that lasts beyond the measurement counts with its length so far.',
  doesNotShow: 'An order across processes: a quorum has no wait queue.',
  charts: [
    {
      kind: 'lines',
      file: 'quorum-hot-rate.svg',
      title: `A quorum: locks per second of one key, ${PROCESSES} × ${CALLERS} callers, by servers`,
      metric: RATE.key,
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { rounds, pace, quick } = bench;
    const sizes = quick ? QUICK_SIZES : SIZES;
    await using opened = new Opened();
    const quorums = new Map<number, { readonly nodes: QuorumServers; readonly entrants: Entrants }>();
    for (const size of sizes) {
      const nodes = opened.use(await QuorumServers.start(size));
      quorums.set(size, { nodes, entrants: opened.use(await Entrants.on(bench, nodes.urls, PROCESSES)) });
    }
    const comparison = await compare(bench, {
      title: this.title,
      metrics: METRICS,
      contenders: CONTENDERS,
      axis: { what: 'servers', points: sizes },
      rounds,
      async measure(contender, size, round) {
        const { nodes, entrants } = quorums.get(size)!;
        const ran = await runTogether(nodes.servers, entrants.of(contender), contender.style, {
          ...{ callers: CALLERS, workMs: WORK_MS, forMs: FOR_MS * pace, graceMs: GRACE_MS },
          // Callers that outlast a round must not meet the callers of the next one.
          keys: { one: `hot-${round}` },
          prefix: prefixOf(contender),
        });
        if (ran.rate === 0) throw new Error(ran.firstFailure ?? 'no caller was served');
        const { rate, longestWaitMs: longest, unserved, jain, commands } = ran;
        return { ...ran, values: { rate, longest, unserved, jain, commands } };
      },
    });
    return { findings: findingsOf(comparison), violations: ownViolations(comparison), comparison };
  },
};
