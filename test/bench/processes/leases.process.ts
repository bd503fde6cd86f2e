import { createHook } from 'node:async_hooks';
import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setImmediate as nextTurn, setTimeout as sleep } from 'node:timers/promises';
import type { Lease } from 'nest-redis-lock';
import { workerChannel } from '../../support/worker-channel.js';
import { openApp, type BenchApp } from '../subjects/nest-redis-lock.js';

export type ToLeases =
  | { readonly type: 'hold'; readonly url: string; readonly leases: number; readonly watchdogMs: number }
  | { readonly type: 'watch'; readonly forMs: number }
  | { readonly type: 'release' };

export interface LoopDelay {
  readonly p99Ms: number;
  readonly maxMs: number;
}

export type FromLeases =
  | { readonly type: 'held'; readonly timers: number }
  | ({ readonly type: 'watched' } & LoopDelay)
  | { readonly type: 'released'; readonly lost: number; readonly notExcluded: number };

/** How many are acquired at a time. */
const AT_ONCE = 200;
/** The number of keys that another app tries to acquire. */
const TRIED = 100;
/** The histogram's own timer interval, which is part of every value it records. */
const RESOLUTION_MS = 1;

let apps: BenchApp[] = [];
let leases: Lease[] = [];
const channel = workerChannel<ToLeases, FromLeases>(async () => {
  await Promise.all(apps.map(({ app }) => app.close()));
});

/** The timers that are set, including timers that do not keep the process alive. */
const timers = new Set<number>();
const timerHook = createHook({
  init: (id, type) => void (type === 'Timeout' && timers.add(id)),
  destroy: (id) => void timers.delete(id),
});

channel.on('hold', async ({ url, leases: count, watchdogMs }) => {
  // The second app stands for another process.
  apps = [await openApp({ url, watchdogMs }), await openApp({ url, watchdogMs })];
  const { locks } = apps[0]!;
  timerHook.enable();
  for (let from = 0; from < count; from += AT_ONCE) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - from) }, (_none, i) =>
      locks.acquire(`held-${from + i}`),
    );
    leases.push(...(await Promise.all(some)));
  }
  // Timers that have ended are reported with a delay.
  await nextTurn();
  await nextTurn();
  timerHook.disable();
  channel.send({ type: 'held', timers: timers.size });
});

channel.on('watch', async ({ forMs }) => {
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  await sleep(forMs);
  histogram.disable();
  const delayMs = (ns: number): number => Math.max(0, ns / 1e6 - RESOLUTION_MS);
  channel.send({
    type: 'watched',
    p99Ms: delayMs(histogram.percentile(99)),
    maxMs: delayMs(histogram.max),
  });
});

channel.on('release', async () => {
  const every = Math.max(1, Math.floor(leases.length / TRIED));
  const tried = leases.filter((_lease, i) => i % every === 0);
  const taken = await Promise.all(tried.map(({ key }) => apps[1]!.locks.tryAcquire(key)));
  const endings = await Promise.all(leases.map((lease) => lease.release()));
  leases = [];
  channel.send({
    type: 'released',
    lost: endings.filter((ending) => ending === 'lost').length,
    notExcluded: taken.filter((lease) => lease !== null).length,
  });
});
