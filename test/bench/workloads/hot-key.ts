import { rowOf, type Metric } from '../comparison.js';
import { everyWay, libraries, OURS } from '../contenders.js';
import { compare, ownViolations } from '../measure/compare.js';
import { contended } from '../measure/contended.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const PROCESSES = 2;
const CALLERS = 50;
const WORK_MS = 2;
const FOR_MS = 3_000;
const WARM_UP_MS = 300;

const metrics: readonly Metric[] = [
  { key: 'share', what: 'time in use', unit: '%', better: 'more' },
  { key: 'jain', what: "Jain's index", unit: 'ratio', better: 'more' },
  { key: 'unserved', what: 'callers never served', unit: '', better: 'less' },
  { key: 'longest', what: 'longest wait', unit: 'ms', better: 'less' },
  { key: 'commands', what: 'Redis commands per lock', unit: 'ratio', better: 'less' },
  { key: 'cpu', what: 'CPU time per lock', unit: 'µs', better: 'less' },
];

/** The common case: all callers want the same key, and each section has work to do. */
export const hotKey: Workload = {
  name: 'hot-key',
  title: `One key, ${PROCESSES} processes × ${CALLERS} callers, ${WORK_MS} ms of work (a timer) inside`,
  shows:
    'How much of the time the lock is in use while callers always wait for it, how evenly callers get it, and its cost. ' +
    'A wait that lasts beyond the measurement counts with its length so far.',
  doesNotShow: 'Keys without contention; the wait of a caller when there are fewer callers.',
  charts: [
    {
      kind: 'bars',
      file: 'hot-key.svg',
      title: `One key, ${PROCESSES} × ${CALLERS} callers, ${WORK_MS} ms of work inside`,
      metrics: ['share', 'jain', 'unserved', 'longest', 'commands', 'cpu'],
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { rounds, pace, quick } = bench;
    const warm = new Set<string>();
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders: quick ? libraries : everyWay,
      rounds,
      async measure(contender, _at, round) {
        const load = { processes: PROCESSES, callers: CALLERS };
        if (!warm.has(contender.name) && !quick) {
          warm.add(contender.name);
          await contended(bench, contender, { ...load, forMs: WARM_UP_MS, keys: 'free', workMs: 0 });
        }
        const ran = await contended(bench, contender, {
          ...load,
          forMs: FOR_MS * pace,
          keys: { one: `hot-${round}` },
          workMs: WORK_MS,
        });
        const { busyShare: share, jain, unserved, longestWaitMs: longest, commands, cpuUs: cpu } = ran;
        return { ...ran, values: { share, jain, unserved, longest, commands, cpu } };
      },
    });
    const { share, jain, unserved } = rowOf(comparison, OURS.name)!.values;
    return {
      findings: [
        { what: 'time in which the lock is in use', values: share!, unit: '%', target: { atLeast: 95 } },
        { what: "Jain's index over callers", values: jain!, unit: 'ratio', target: { atLeast: 0.95 } },
        { what: 'callers never served', values: unserved!, unit: '', target: { atMost: 0 } },
      ],
      violations: ownViolations(comparison),
      comparison,
    };
  },
};
