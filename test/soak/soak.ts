import type { Progress } from '../support/measure/progress.js';
import { until } from '../support/async.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { TestWorker } from '../support/worker.js';
import { noEndings, type Ending } from '../support/cycles/cycle.js';
import { isCounter, PERMITS } from './cycles/permit.cycles.js';
import type { FromSoak, ToSoak } from './process/soak.process.js';
import type { FullStock, SoakResult } from './verdict.js';

/** Compiled code, and caches of a fixed size: what is there after the first cycles stays. */
const WARM_UP_CYCLES = 20_000;
const LOOKS = 10;
/** A step ends with its last cycle, which may wait for the end of a lease. */
const CYCLES_OF_A_STEP = 20_000;
const STEP_TIMEOUT_MS = 600_000;
const SHORT_LEASES_MS = 1_000;

export interface SoakOptions {
  readonly cycles: number;
  /** Where to say how far it is; without it nothing is said. */
  readonly progress?: Progress;
}

type Worker = TestWorker<ToSoak, FromSoak>;

const countExpired = async (server: RedisServer): Promise<number> =>
  Number(/expired_keys:(\d+)/.exec(await server.text('INFO', 'stats'))![1]);

/**
 * Takes the counters away to which all permits have come back, and says how many those are. They would live as long as
 * the longest lease.
 */
const takeCounters = async (server: RedisServer, counters: readonly string[]): Promise<number> => {
  const script = "return redis.call('get', KEYS[1]) == ARGV[1] and redis.call('del', KEYS[1]) or 0";
  const taken = await Promise.all(counters.map((key) => server.cli('EVAL', script, 1, key, PERMITS)));
  return taken.filter((one) => one === 1).length;
};

/** How many keys Redis has that are no fence keys, and how many that are. */
const countKeys = async (server: RedisServer): Promise<{ keys: number; fenceKeys: number }> => {
  // The process has one record of itself, as long as it uses locks.
  const all = ((await server.cli('KEYS', '*')) as string[]).filter(
    (key) => !key.startsWith('nest_redis_lock:process:'),
  );
  const fenceKeys = all.filter((key) => key.startsWith('nest_redis_lock:fence:')).length;
  const counters = await takeCounters(server, all.filter(isCounter));
  return { keys: all.length - fenceKeys - counters, fenceKeys };
};

const takeStock = async (worker: Worker, server: RedisServer): Promise<FullStock> => {
  worker.send({ type: 'idle' });
  await worker.next('idle', { timeoutMs: STEP_TIMEOUT_MS });
  // Looked at before the leases of what was forgotten are over. Those of the cycles that lose theirs end sooner.
  await until(async () => (await countKeys(server)).keys === 0, { timeoutMs: SHORT_LEASES_MS }).catch(
    () => undefined,
  );
  const counted = await countKeys(server);
  worker.send({ type: 'takeStock' });
  const { stock } = await worker.next('stock', { timeoutMs: STEP_TIMEOUT_MS });
  // On one of its own a process hears of its turns, until it ends.
  const channels = ((await server.cli('PUBSUB', 'CHANNELS')) as string[]).filter(
    (name) => !name.startsWith('nest_redis_lock:grant:'),
  );
  const clients = await server.text('CLIENT', 'LIST');
  return {
    ...stock,
    ...counted,
    channels: channels.length,
    connections: clients.trim().split('\n').length,
  };
};

/** Runs the cycles in a process of its own, on a server of its own, and compares before and after. */
export const soak = async ({ cycles, progress }: SoakOptions): Promise<SoakResult> => {
  await using server = await RedisServer.start();
  await using worker: Worker = TestWorker.start(new URL('./process/soak.process.ts', import.meta.url));
  const endings = noEndings();
  let overlaps = 0;
  const run = async (count: number): Promise<void> => {
    worker.send({ type: 'cycle', cycles: count });
    const step = await worker.next('cycled', { timeoutMs: STEP_TIMEOUT_MS });
    for (const ending of Object.keys(endings) as Ending[]) endings[ending] += step.endings[ending];
    overlaps = step.overlaps;
    progress?.step();
  };

  worker.send({ type: 'open', url: server.url });
  await worker.next('opened');
  const cyclesForALook = Math.ceil(cycles / LOOKS);
  const steps = Math.ceil(cyclesForALook / CYCLES_OF_A_STEP);
  progress?.begin(`${cycles.toLocaleString('en')} cycles`, LOOKS * steps + 1);
  await run(WARM_UP_CYCLES);
  const first = await takeStock(worker, server);
  const heapBytes = [first.heapBytes];
  let last = first;
  let seconds = 0;
  for (let look = 1; look <= LOOKS; look += 1) {
    const startedAt = performance.now();
    for (let step = 1; step <= steps; step += 1) await run(Math.ceil(cyclesForALook / steps));
    seconds += (performance.now() - startedAt) / 1_000;
    last = await takeStock(worker, server);
    heapBytes.push(last.heapBytes);
  }
  const expiredHolds = await countExpired(server);
  progress?.end();
  const endsByItself = await worker.finish().then(
    ({ code }) => code === 0,
    () => false,
  );
  return { cycles, seconds, first, last, heapBytes, endings, expiredHolds, overlaps, endsByItself };
};
