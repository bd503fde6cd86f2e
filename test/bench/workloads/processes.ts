import { contended, WAIT_MS } from '../measure/contended.js';
import { medianOf, rowOf } from '../comparison.js';
import { OURS } from '../contenders.js';
import { growthOf } from './growth.js';

const CALLERS = 12;
const WORK_MS = 2;
/** Long enough for several rounds of eight processes: a round takes half a second. */
const FOR_MS = 3_000;
/** The number of processes that later workloads reuse. */
const KEPT = 2;

export const processes = growthOf({
  name: 'processes',
  title: `Growth with processes: one key, ${CALLERS} callers in each, ${WORK_MS} ms of work inside`,
  shows: 'Whether the lock stays in use, and callers get it evenly, when more processes request it.',
  doesNotShow: 'Processes on separate machines: here all of them share the CPUs.',
  axis: { what: 'processes', points: [1, 2, 4, 8] },
  quickPoints: [2],
  metrics: [
    { key: 'share', what: 'time in use', unit: '%', better: 'more' },
    { key: 'jain', what: "Jain's index over callers", unit: 'ratio', better: 'more' },
    { key: 'cpu', what: 'CPU time per lock', unit: 'µs', better: 'less' },
    { key: 'commands', what: 'Redis commands per lock', unit: 'ratio', better: 'less' },
  ],
  charts: {
    share: 'Time in which the lock is in use, by processes that request it',
    jain: "Fairness between callers (Jain's index), by processes that request the lock",
  },
  findings(comparison) {
    const of = (metric: string, at: number): readonly number[] =>
      rowOf(comparison, OURS.name, at)?.values[metric] ?? [];
    const [few, many] = [2, 8].map((at) => medianOf(rowOf(comparison, OURS.name, at), 'commands'));
    const grown = few === undefined || many === undefined ? [] : [Math.max(many / few, few / many)];
    return [
      {
        what: "8 processes: Jain's index over callers",
        values: of('jain', 8),
        unit: 'ratio',
        target: { atLeast: 0.98 },
      },
      {
        what: '8 processes: Redis commands per lock',
        values: of('commands', 8),
        unit: 'ratio',
        target: { atMost: 0.15 },
      },
      {
        what: 'commands per lock, larger relative to smaller, of 2 and 8 processes',
        values: grown,
        unit: 'ratio',
        target: { atMost: 2 },
      },
    ];
  },
  async measure(bench, contender, at, round) {
    const ran = await contended(bench, contender, {
      processes: at,
      callers: CALLERS,
      forMs: FOR_MS * bench.pace,
      keys: { one: `processes-${at}-${round}` },
      workMs: WORK_MS,
    });
    const { busyShare: share, jain, cpuUs: cpu, commands } = ran;
    return { ...ran, values: { share, jain, cpu, commands } };
  },
  async done({ server, crew }, contender) {
    await crew.keep(contender, KEPT, { url: server.url, waitMs: WAIT_MS });
  },
});
