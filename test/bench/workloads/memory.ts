import { setTimeout as sleep } from 'node:timers/promises';
import { until } from '../../support/async.js';
import type { Metric } from '../comparison.js';
import { libraries } from '../contenders.js';
import { compare, ownViolations } from '../measure/compare.js';
import { WAIT_MS } from '../measure/contended.js';
import { SubjectWorker } from '../processes/subject-worker.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const WAITERS = 10_000;
const QUICK_WAITERS = 2_000;
const FIRST_WAITERS = 100;
const SETTLE_MS = 1_500;
/** Longer than the measurement takes, for libraries that do not renew. */
const LEASE_MS = 30_000;
const KEY = 'waited-for';

const metrics: readonly Metric[] = [
  { key: 'heap', what: 'heap per waiter', unit: 'kB', better: 'less' },
  { key: 'cpu', what: 'CPU time per second of waiting', unit: 'ms', better: 'less' },
];

/** A waiter should cost next to nothing, because nothing happens. */
export const memory: Workload = {
  name: 'memory',
  title: `Waiting: ${WAITERS.toLocaleString('en')} callers of one process (${QUICK_WAITERS.toLocaleString('en')} in quick mode) wait for a key that stays locked`,
  shows: 'What a waiting caller costs: heap after a garbage collection, and CPU time of the process.',
  doesNotShow: 'Memory outside the heap, and memory of Redis.',
  charts: [
    {
      kind: 'bars',
      file: 'memory.svg',
      title: 'Callers that wait for a key that stays locked',
      metrics: ['heap', 'cpu'],
    },
  ],
  async run(bench: Bench): Promise<Outcome> {
    const { server, growthRounds, quick, pace } = bench;
    const waiters = quick ? QUICK_WAITERS : WAITERS;
    const comparison = await compare(bench, {
      title: this.title,
      metrics,
      contenders: libraries,
      rounds: growthRounds,
      async measure({ name, subject, style }, _at, round) {
        const options = { url: server.url, waitMs: WAIT_MS, leaseMs: LEASE_MS };
        const [holder, waiter] = await Promise.all([
          SubjectWorker.start(subject, options),
          SubjectWorker.start(subject, options),
        ]);
        const key = `${name}-${KEY}-${round}`;
        try {
          await holder.hold(style, [key]);
          await until(async () => (await holder.look()).entered === 1, { what: 'the key is held' });
          // The first ones also pay for what all of them share.
          await waiter.hold(style, new Array<string>(FIRST_WAITERS).fill(key));
          await sleep(SETTLE_MS * pace);
          const before = await waiter.look({ heap: true });
          await waiter.hold(style, new Array<string>(waiters).fill(key));
          await sleep(SETTLE_MS * pace);
          const begun = { ...(await waiter.look()), at: performance.now() };
          await sleep(SETTLE_MS * pace);
          const ended = { ...(await waiter.look()), at: performance.now() };
          const after = await waiter.look({ heap: true });
          return {
            values: {
              heap: (after.heapBytes - before.heapBytes) / waiters / 1_024,
              cpu: ((ended.cpuMs - begun.cpuMs) / (ended.at - begun.at)) * 1_000,
            },
            violations: after.entered,
            failures: after.failures,
            firstFailure: after.firstFailure,
          };
        } finally {
          await Promise.all([holder.end(), waiter.end()]);
        }
      },
    });
    return { findings: [], violations: ownViolations(comparison), comparison };
  },
};
