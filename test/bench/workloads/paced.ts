import type { Metric } from '../comparison.js';
import { libraries } from '../contenders.js';
import { monotonicMs } from '../measure/clock.js';
import { compare, ownViolations } from '../measure/compare.js';
import { WAIT_MS } from '../measure/contended.js';
import { percentile, sum } from '../measure/statistics.js';
import { withRegister } from '../measure/together.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const PROCESSES = 2;
const PER_SECOND = 100;
const WORK_MS = 2;
const FOR_MS = 3_000;
const GRACE_MS = 3_000;
const START_IN_MS = 60;

const metrics: readonly Metric[] = [
  { key: 'p50', what: 'half of the calls', unit: 'ms', better: 'less' },
  { key: 'p90', what: '90 %', unit: 'ms', better: 'less' },
  { key: 'p99', what: '99 %', unit: 'ms', better: 'less' },
  { key: 'late', what: 'calls not done in time', unit: '', better: 'less' },
];

/** The lock is free for most calls, and held for some. */
export const paced: Workload = {
  name: 'paced',
  title: `Paced: one key, ${PROCESSES * PER_SECOND} calls per second from ${PROCESSES} processes, ${WORK_MS} ms of work inside`,
  shows:
    `How long a call takes from its due time until it has the lock, while the key is in use for about ` +
    `${(PROCESSES * PER_SECOND * WORK_MS) / 10} % of the time.`,
  doesNotShow:
    'More calls than the lock can serve. A call counts as not done 3 s after the due time of the last call (0.45 s in quick mode).',
  charts: [
    {
      kind: 'ranges',
      file: 'paced.svg',
      title: `Wait for the lock: ${PROCESSES * PER_SECOND} calls per second for one key, ${WORK_MS} ms of work`,
      metrics: ['p50', 'p90', 'p99'],
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { server, crew, rounds, pace } = bench;
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders: libraries,
      rounds,
      async measure(contender, _at, round) {
        const workers = await crew.of(contender, PROCESSES, { url: server.url, waitMs: WAIT_MS });
        const load = {
          perSecond: PER_SECOND,
          forMs: FOR_MS * pace,
          keys: { one: `${contender.name}-paced-${round}` },
          workMs: WORK_MS,
          graceMs: GRACE_MS * pace,
        };
        const results = await withRegister((path) => {
          const startAt = monotonicMs() + START_IN_MS;
          return Promise.all(
            workers.map((worker, at) =>
              worker.pace(contender.style, { ...load, startAt, register: { path, id: at + 1 } }),
            ),
          );
        });
        const late = sum(results.map(({ unfinished }) => unfinished));
        if (late > 0) await crew.dismiss(workers);
        const waits = results.flatMap(({ waitsMs }) => waitsMs).sort((a, b) => a - b);
        if (waits.length === 0) throw new Error('nobody was served');
        return {
          values: {
            p50: percentile(waits, 50),
            p90: percentile(waits, 90),
            p99: percentile(waits, 99),
            late,
          },
          violations: sum(results.map(({ violations }) => violations)),
          failures: sum(results.map(({ failures }) => failures)),
          firstFailure: results.find(({ firstFailure }) => firstFailure !== undefined)?.firstFailure,
        };
      },
    });
    return { findings: [], violations: ownViolations(comparison), comparison };
  },
};
