import { rowOf, type Metric } from '../comparison.js';
import { libraries, OURS } from '../contenders.js';
import { compare, ownViolations } from '../measure/compare.js';
import { contended } from '../measure/contended.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const CALLERS = 100;
const FOR_MS = 1_000;

const metrics: readonly Metric[] = [
  { key: 'rate', what: 'locks', unit: '/s', better: 'more' },
  { key: 'jain', what: "Jain's index", unit: 'ratio', better: 'more' },
  { key: 'commands', what: 'Redis commands per lock', unit: 'ratio', better: 'less' },
  { key: 'cpu', what: 'CPU time per lock', unit: 'µs', better: 'less' },
];

/** The waiters of one process must share their requests to Redis. */
export const waiting: Workload = {
  name: 'waiting',
  title: `Nothing inside: one key, ${CALLERS} callers of one process`,
  shows: 'How fast callers of one process hand the lock to each other.',
  doesNotShow: 'A difference that a user notices: a section that does nothing needs no lock.',
  charts: [
    {
      kind: 'bars',
      file: 'waiting.svg',
      title: `One key, ${CALLERS} callers of one process, nothing inside`,
      metrics: ['rate', 'jain', 'commands', 'cpu'],
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders: libraries,
      rounds: bench.rounds,
      async measure(contender, _at, round) {
        const ran = await contended(bench, contender, {
          processes: 1,
          callers: CALLERS,
          forMs: FOR_MS * bench.pace,
          keys: { one: `wanted-${round}` },
          workMs: 0,
        });
        const { rate, jain, commands, cpuUs: cpu } = ran;
        return { ...ran, values: { rate, jain, commands, cpu } };
      },
    });
    const { commands, rate } = rowOf(comparison, OURS.name)!.values;
    return {
      findings: [
        { what: 'Redis commands per lock', values: commands!, unit: 'ratio', target: { atMost: 0.3 } },
        { what: 'locks', values: rate!, unit: '/s', target: { atLeast: 50_000 } },
      ],
      violations: ownViolations(comparison),
      comparison,
    };
  },
};
