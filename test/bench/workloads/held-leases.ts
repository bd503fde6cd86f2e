import { TestWorker } from '../../support/worker.js';
import { until } from '../../support/async.js';
import { commandCounts, sentBetween } from '../measure/redis-commands.js';
import type { FromLeases, LoopDelay, ToLeases } from '../processes/leases.process.js';
import { nestRedisLock } from '../subjects/nest-redis-lock.js';
import type { Bench, Outcome, Workload } from '../workload.js';

const LEASES = 10_000;
const WATCHDOG_MS = 3_000;
const PERIOD_MS = WATCHDOG_MS / 3;
const SETTLED_MS = PERIOD_MS / 4;
const TIMEOUT_MS = 60_000;

/** The cost of renewing leases. One round is one period of the watchdog. */
export const heldLeases: Workload = {
  name: 'held-leases',
  title: `${LEASES.toLocaleString('en')} leases on the watchdog, renewed every ${PERIOD_MS} ms`,
  async run({ server, progress, rounds }: Bench): Promise<Outcome> {
    const { insideScripts } = nestRedisLock;
    await using worker = TestWorker.start<ToLeases, FromLeases>(
      new URL('../processes/leases.process.ts', import.meta.url),
      { library: 'built' },
    );
    progress.begin(this.title, rounds + 2);
    const watch = async (): Promise<LoopDelay> => {
      worker.send({ type: 'watch', forMs: PERIOD_MS });
      return worker.next('watched');
    };

    const idle = await watch();
    worker.send({ type: 'hold', url: server.url, leases: LEASES, watchdogMs: WATCHDOG_MS });
    const { timers } = await worker.next('held', { timeoutMs: TIMEOUT_MS });
    progress.step();

    // A window that begins between two renewals has exactly one in it.
    let counts = await commandCounts(server);
    await until(
      async () => {
        const earlier = counts;
        counts = await commandCounts(server);
        return sentBetween(earlier, counts, insideScripts) > 0;
      },
      { what: 'the leases are renewed' },
    );
    await new Promise((resolve) => setTimeout(resolve, SETTLED_MS));
    progress.step();

    const commands: number[] = [];
    const delays: LoopDelay[] = [];
    for (let period = 0; period < rounds; period++) {
      const before = await commandCounts(server);
      delays.push(await watch());
      commands.push(sentBetween(before, await commandCounts(server), insideScripts));
      progress.step();
    }
    worker.send({ type: 'release' });
    const { lost, notExcluded } = await worker.next('released', { timeoutMs: TIMEOUT_MS });
    await worker.finish();
    return {
      findings: [
        {
          what: 'timers: one for the leases, one for commands under way',
          values: [timers],
          unit: '',
          target: { atMost: 2 },
        },
        { what: 'Redis commands per period', values: commands, unit: '', target: { atMost: 110 } },
        {
          what: 'event loop delay, p99',
          values: delays.map(({ p99Ms }) => p99Ms),
          unit: 'ms',
          target: { atMost: 20 },
        },
        { what: 'event loop delay, longest', values: delays.map(({ maxMs }) => maxMs), unit: 'ms' },
        { what: 'the same without leases, longest', values: [idle.maxMs], unit: 'ms' },
        { what: 'leases lost', values: [lost], unit: '', target: { atMost: 0 } },
      ],
      violations: notExcluded,
    };
  },
};
