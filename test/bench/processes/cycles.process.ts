import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { runCycle, type Ending } from '../../support/cycles/cycle.js';
import { PLAIN_CYCLES } from '../../support/cycles/plain.cycles.js';
import { until } from '../../support/async.js';
import { workerChannel } from '../../support/worker-channel.js';
import { heapAfterCollection } from '../../support/garbage.js';
import { Occupancy } from '../../support/measure/occupancy.js';
import { openApp, type BenchApp } from '../subjects/nest-redis-lock.js';

export type ToCycles =
  | { readonly type: 'open'; readonly url: string }
  | { readonly type: 'cycle'; readonly cycles: number }
  /** Takes stock once everything that was under way has come to rest. */
  | { readonly type: 'measure' };

/** What may not grow. */
export interface Stock {
  readonly heapBytes: number;
  /** All of `locks.usage` together. */
  readonly usage: number;
  /** On a signal that every kind of cycle was given, and on the process. */
  readonly listeners: number;
  /** What keeps the process alive: sockets, timers, pipes. */
  readonly handles: number;
}

/** How the cycles ended. None of them loses its lock. */
export type Endings = Record<Exclude<Ending, 'lost' | 'expired'>, number>;

export type FromCycles =
  | { readonly type: 'opened' }
  | { readonly type: 'cycled'; readonly endings: Endings; readonly violations: number }
  | { readonly type: 'measured'; readonly stock: Stock };

const CALLERS = 100;
/** Commands are watched over for this long, answered or not. */
const AT_REST_MS = 2_500;

let apps: BenchApp[] = [];
const channel = workerChannel<ToCycles, FromCycles>(async () => {
  await Promise.all(apps.map(({ app }) => app.close()));
});

/** Lives as long as the process, as a server's shutdown signal does: a listener left on it is a leak. */
const longLived = new AbortController().signal;
const occupancy = new Occupancy();
let cycle = 0;

const usage = (): number =>
  apps.flatMap(({ locks }) => Object.values(locks.usage)).reduce((total, size) => total + size, 0);

channel.on('open', async ({ url }) => {
  // Two of them, so that they also contend for the hot keys through Redis.
  apps = [await openApp({ url }), await openApp({ url })];
  channel.send({ type: 'opened' });
});

channel.on('cycle', async ({ cycles }) => {
  const endings: Endings = { held: 0, refused: 0, timedOut: 0, aborted: 0 };
  const until = cycle + cycles;
  const call = async (_none: unknown, caller: number): Promise<void> => {
    const { locks } = apps[caller % apps.length]!;
    const { locks: others } = apps[(caller + 1) % apps.length]!;
    while (cycle < until) {
      const ending = await runCycle(PLAIN_CYCLES, { locks, others, longLived, occupancy, n: cycle++ });
      if (ending === 'lost' || ending === 'expired')
        throw new Error('a lock was lost, though nobody took it away');
      endings[ending]++;
    }
  };
  await Promise.all(Array.from({ length: CALLERS }, call));
  channel.send({ type: 'cycled', endings, violations: occupancy.overlaps });
});

channel.on('measure', async () => {
  await until(() => usage() === 0, { what: 'nothing is held, awaited or settled' }).catch(() => undefined);
  await sleep(AT_REST_MS);
  const events = process.eventNames().map((name) => process.listenerCount(name));
  channel.send({
    type: 'measured',
    stock: {
      heapBytes: await heapAfterCollection(),
      usage: usage(),
      listeners:
        getEventListeners(longLived, 'abort').length + events.reduce((total, count) => total + count, 0),
      handles: process.getActiveResourcesInfo().length,
    },
  });
});
