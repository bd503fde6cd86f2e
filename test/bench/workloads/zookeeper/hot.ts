import { rowOf, type Comparison, type Metric } from '../../comparison.js';
import type { Contender } from '../../contenders.js';
import { compare, ownViolations } from '../../measure/compare.js';
import { overcrowded } from '../../measure/overcrowded.js';
import { percentile } from '../../measure/statistics.js';
import { runTogether } from '../../measure/together.js';
import { handOvers, lengthsOf, shareInTurn } from '../../measure/turns.js';
import type { Bench, Finding, Outcome, Workload } from '../../workload.js';
import { CURATOR, Entrants, OURS, relativeTo } from './entrants.js';
import type { ZooKeeperPlace } from './places.js';

const PROCESSES = 4;
const CALLERS = [1, 5];
const CONTENDERS = [OURS, CURATOR];
const WORK_MS = 2;
const FOR_MS = 3_000;
const WARM_UP_MS = 2_000;
const GRACE_MS = 1_500;

const metrics: readonly Metric[] = [
  { key: 'rate', what: 'sections', unit: '/s', better: 'more' },
  { key: 'inside', what: 'length of a section, median', unit: 'ms', better: 'less' },
  { key: 'jain', what: "Jain's index over callers", unit: 'ratio', better: 'more' },
  { key: 'order', what: 'share of sections in turn', unit: 'ratio', better: 'more' },
  { key: 'p50', what: 'hand-over to another process, median', unit: 'ms', better: 'less' },
  { key: 'p95', what: 'hand-over to another process, 95 % within', unit: 'ms', better: 'less' },
  { key: 'longest', what: 'longest wait', unit: 'ms', better: 'less' },
  { key: 'requests', what: 'requests per section', unit: 'ratio', better: 'less' },
];

const findingsOf = (comparison: Comparison): Finding[] =>
  CALLERS.flatMap((callers): Finding[] => {
    const of = (metric: string): readonly number[] => rowOf(comparison, OURS.name, callers)!.values[metric]!;
    const crowd = `${PROCESSES} × ${callers} callers`;
    return [
      {
        what: `${crowd}: Jain's index over callers`,
        values: of('jain'),
        unit: 'ratio',
        target: { atLeast: 0.99 },
      },
      {
        what: `${crowd}: share of sections in turn`,
        values: of('order'),
        unit: 'ratio',
      },
      {
        what: `${crowd}: median hand-over to another process, relative to Curator`,
        values: relativeTo(comparison, CURATOR, 'p50', callers),
        unit: 'ratio',
      },
      {
        what: `${crowd}: sections, relative to Curator`,
        values: relativeTo(comparison, CURATOR, 'rate', callers),
        unit: 'ratio',
      },
    ];
  });

/** One key in ZooKeeper that all callers of several sessions request. */
export const zookeeperHot = ({ id, title, shows, start }: ZooKeeperPlace): Workload => ({
  name: `zookeeper-${id}-hot`,
  title: `${title}: one key, ${PROCESSES} processes, ${WORK_MS} ms of work (a timer) inside`,
  shows:
    `How long a key stays free between a holder and a waiter in another process, and how evenly and in which order callers get it. ` +
    `${shows} Each contender has ${PROCESSES} processes with a session each, which are spread over the servers. Curator has ` +
    `${PROCESSES} JVMs, with a thread for each caller. Threads share one \`InterProcessMutex\`, as in one service, so each ` +
    `change wakes all threads of a JVM. A section is in turn if all other callers had theirs since the last one of its caller. ` +
    'On a busy machine a caller may queue too late for that. Exclusion is checked in a file, and for Curator by the times of its ' +
    'sections, on one clock. The file also checks that tokens grow: the store grants in the order in which nodes were created.',
  doesNotShow:
    'Which one works faster: a timer of Node takes longer than one of Java, as the length of a section says. So compare the ' +
    'hand-overs, and not the sections per second. Two CPUs carry all servers and clients here.',
  charts: [
    {
      kind: 'lines',
      file: `zookeeper-${id}-hot-hand-over.svg`,
      title: `${title}: hand-over of one key, by callers of each process`,
      metric: 'p50',
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { rounds, pace } = bench;
    await using zookeeper = await start();
    const { urls } = zookeeper;
    const places = Array.from({ length: PROCESSES }, (_none, at) => urls[at % urls.length]!);
    await using entrants = await Entrants.on(bench, places, CONTENDERS);
    const measured = async (contender: Contender, callers: number, forMs: number, round: number) => {
      const before = await zookeeper.requests();
      const ran = await runTogether([], entrants.of(contender), contender.style, {
        ...{ callers, workMs: WORK_MS, forMs, graceMs: GRACE_MS, noteTimes: true },
        keys: { one: `hot-${callers}-${round}-${Math.round(forMs)}` },
      });
      if (ran.rate === 0) throw new Error(ran.firstFailure ?? 'no caller was served');
      const sent = (await zookeeper.requests()) - before;
      return { ran, requests: sent / lengthsOf(ran).length };
    };
    const warm = new Set<Contender>();
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders: CONTENDERS,
      axis: { what: 'callers of each process', points: CALLERS },
      rounds,
      async measure(contender, callers, round) {
        if (!warm.has(contender)) await measured(contender, callers, WARM_UP_MS * pace, -1);
        warm.add(contender);
        const { ran, requests } = await measured(contender, callers, FOR_MS * pace, round);
        const waits = handOvers(ran);
        const [p50, p95] = waits.length > 0 ? [50, 95].map((percent) => percentile(waits, percent)) : [];
        const { rate, jain, longestWaitMs: longest } = ran;
        const inside = percentile(lengthsOf(ran), 50);
        const order = shareInTurn(ran, PROCESSES * callers);
        const overlaps = overcrowded(
          ran.results.flatMap(({ times }) => times),
          { atOnce: 1 },
        );
        return {
          ...ran,
          violations: Math.max(ran.violations, overlaps),
          values: { rate, inside, jain, order, p50, p95, longest, requests },
        };
      },
    });
    return { findings: findingsOf(comparison), violations: ownViolations(comparison), comparison };
  },
});
