import { getEventListeners } from 'node:events';
import { setTimeout as sleep } from 'node:timers/promises';
import { LockAbortedError, LockNotAcquiredError, type LockService } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { workerChannel } from '../../support/worker-channel.js';
import { heapAfterCollection } from '../measure/garbage.js';
import { Occupancy } from '../measure/occupancy.js';
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

/** How the cycles ended. */
export interface Endings {
  held: number;
  refused: number;
  timedOut: number;
  aborted: number;
}

export type FromCycles =
  | { readonly type: 'opened' }
  | { readonly type: 'cycled'; readonly endings: Endings; readonly violations: number }
  | { readonly type: 'measured'; readonly stock: Stock };

const CALLERS = 100;
const HOT_KEYS = 10;
const COLD_KEYS = 10_000;
/** Waits that end before a hot key is free, often enough. */
const SHORT_WAIT_MS = 2;
const LONG_WAIT_MS = 60_000;
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

const inside = (key: string) => async (): Promise<void> => {
  occupancy.enter(key);
  await Promise.resolve();
  occupancy.leave(key);
};

const abortsSoon = (): AbortSignal => {
  const controller = new AbortController();
  setImmediate(() => setImmediate(() => controller.abort()));
  return controller.signal;
};

/** One cycle of each kind in turn; all of them end with nothing held. */
const runCycle = async (locks: LockService, n: number, endings: Endings): Promise<void> => {
  const hot = `hot-${n % HOT_KEYS}`;
  const kind = Math.floor(n / HOT_KEYS) % 8;
  try {
    if (kind === 0) {
      await locks.withLock(hot, { waitMs: LONG_WAIT_MS, signal: longLived }, inside(hot));
    } else if (kind === 1) {
      await locks.withLock(hot, { waitMs: SHORT_WAIT_MS, signal: longLived }, inside(hot));
    } else if (kind === 2) {
      await locks.withLock(hot, { waitMs: LONG_WAIT_MS, signal: abortsSoon() }, inside(hot));
    } else if (kind === 3) {
      const lease = await locks.tryAcquire(hot);
      if (!lease) return void endings.refused++;
      await lease.run(inside(hot));
      await lease.release();
    } else if (kind === 4 || kind === 5) {
      const cold = `cold-${(n * 7_919) % COLD_KEYS}`;
      await using lease = await locks.acquire(cold, { signal: longLived });
      lease.signal.throwIfAborted();
      await inside(cold)();
    } else {
      const once = `once-${process.pid}-${n}`;
      await locks.withLock(once, inside(once));
    }
    endings.held++;
  } catch (error) {
    if (error instanceof LockAbortedError) endings.aborted++;
    else if (error instanceof LockNotAcquiredError) endings.timedOut++;
    else throw error;
  }
};

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
    while (cycle < until) await runCycle(locks, cycle++, endings);
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
