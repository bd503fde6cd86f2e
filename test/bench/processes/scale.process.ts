import { monitorEventLoopDelay } from 'node:perf_hooks';
import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { Lease } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { workerChannel } from '../../support/worker-channel.js';
import { openApp, type BenchApp } from '../subjects/nest-redis-lock.js';

export type ScaleKind = 'exclusive' | 'fair' | 'write' | 'read' | 'permit';

/** What a step costs: time of the server for each caller, and how long the event loop of the callers stands still. */
export interface StepCost {
  readonly serverUs: number;
  readonly delayMaxMs: number;
  readonly delayP99Ms: number;
}

export type ScaleSteps = Readonly<Record<'acquire' | 'release' | 'leave', StepCost>>;

export type ToScale = {
  readonly type: 'measure';
  readonly url: string;
  readonly kind: ScaleKind;
  readonly count: number;
};
export type FromScale = {
  readonly type: 'measured';
  readonly steps: ScaleSteps;
  readonly violations: number;
};

/** How many readers, permits, and fair callers come at a time: each is a request, and all at once outlast its time-out. */
const AT_ONCE = 200;
const WAIT_MS = 600_000;
/** Longer than a measurement, and not renewed: a renewal would count as part of a step. */
const LEASE_MS = 300_000;
/** The histogram's own timer interval, which is part of every value it records. */
const RESOLUTION_MS = 1;
/** The histogram records a standstill with its next timer. */
const SETTLE_MS = 5;
const STEP_TIMEOUT_MS = 200_000;
/** Until callers that want a permit have asked for it. */
const SETTLED_MS = 500;
/** Code and scripts that have run before are what users have. */
const WARM_UP = 20;

let apps: BenchApp[] = [];
let redis: Redis | undefined;
let measured = 0;
const channel = workerChannel<ToScale, FromScale>(async () => {
  redis?.disconnect();
  await Promise.all(apps.map(({ app }) => app.close()));
});

/** Time that the server has spent in scripts, commands inside them included, in µs. */
const scriptUs = async (): Promise<number> => {
  const info = await redis!.info('commandstats');
  const found = [...info.matchAll(/^cmdstat_eval(?:sha)?:calls=\d+,usec=(\d+)/gm)];
  return found.reduce((sum, [, usec]) => sum + Number(usec), 0);
};

const costOf = async (count: number, step: () => Promise<unknown>): Promise<StepCost> => {
  const before = await scriptUs();
  const histogram = monitorEventLoopDelay({ resolution: RESOLUTION_MS });
  histogram.enable();
  await step();
  await sleep(SETTLE_MS);
  histogram.disable();
  const delayMs = (ns: number): number => Math.max(0, ns / 1e6 - RESOLUTION_MS);
  return {
    serverUs: ((await scriptUs()) - before) / count,
    delayMaxMs: delayMs(histogram.max),
    delayP99Ms: delayMs(histogram.percentile(99)),
  };
};

/** Callers that wait, and what ends all of their waits. */
interface Crowd {
  readonly ended: Promise<readonly PromiseSettledResult<unknown>[]>;
  abort(): void;
}

type Acquire = (app: BenchApp, signal?: AbortSignal) => Promise<Lease>;

const allInChunks = async <T>(count: number, start: () => Promise<T>): Promise<T[]> => {
  const all: T[] = [];
  while (all.length < count) {
    const some = Array.from({ length: Math.min(AT_ONCE, count - all.length) }, start);
    all.push(...(await Promise.all(some)));
  }
  return all;
};

/** Requests the lock `count` times at once. */
const crowdOf = (
  count: number,
  app: BenchApp,
  acquire: Acquire,
  use: (lease: Lease) => Promise<unknown>,
): Crowd => {
  const controller = new AbortController();
  const calls = Array.from({ length: count }, () => acquire(app, controller.signal).then(use));
  return { ended: Promise.allSettled(calls), abort: () => controller.abort() };
};

/** Resolves once the wait queue in Redis has `entries` entries. */
const queued = async (kind: ScaleKind, key: string, entries: number): Promise<void> => {
  const name = `{lock:${key}}`;
  const count = (): Promise<number> => {
    if (kind === 'fair') return redis!.zcard(`redisson_lock_timeout:${name}`);
    return redis!.exists(`nest_redis_lock:${kind === 'exclusive' ? 'queue' : 'rw_queue'}:${name}`);
  };
  await until(async () => (await count()) === entries, {
    what: `${entries} entries of ${kind} callers in Redis`,
    timeoutMs: STEP_TIMEOUT_MS,
  });
};

const OPTIONS = { exclusive: {}, fair: { mode: 'fair' }, write: { mode: 'write' } } as const;

/** Callers wait for what another process has: they are aborted, come again, and have it one after the other. */
const measureWaiters = async (
  kind: keyof typeof OPTIONS,
  count: number,
): Promise<Omit<FromScale, 'type'>> => {
  const [callers, other] = apps as [BenchApp, BenchApp];
  const key = `scale-${(measured += 1)}`;
  const acquire: Acquire = ({ locks }, signal) =>
    locks.acquire(key, { ...OPTIONS[kind], waitMs: WAIT_MS, ...(signal && { signal }) });
  let [inside, violations] = [0, 0];
  const use = async (lease: Lease): Promise<void> => {
    inside += 1;
    if (inside > 1) violations += 1;
    await Promise.resolve();
    inside -= 1;
    await lease.release();
  };
  const come = async (): Promise<Crowd> => {
    const crowds: Crowd[] = [];
    const size = kind === 'fair' ? AT_ONCE : count;
    for (let from = 0; from < count; from += size) {
      const to = Math.min(count, from + size);
      crowds.push(crowdOf(to - from, callers, acquire, use));
      await queued(kind, key, kind === 'fair' ? to : 1);
    }
    return {
      ended: Promise.all(crowds.map(({ ended }) => ended)).then((all) => all.flat()),
      abort: () => crowds.forEach((crowd) => crowd.abort()),
    };
  };

  const held = await acquire(other);
  let crowd: Crowd | undefined;
  const acquired = await costOf(count, async () => {
    crowd = await come();
  });
  const left = await costOf(count, async () => {
    crowd!.abort();
    await crowd!.ended;
    await queued(kind, key, 0);
  });
  violations += (await crowd!.ended).filter(({ status }) => status === 'fulfilled').length;
  crowd = await come();
  const released = await costOf(count, async () => {
    await held.release();
    await crowd!.ended;
  });
  const failed = (await crowd.ended).find((one) => one.status === 'rejected');
  if (failed) throw failed.reason;
  return { steps: { acquire: acquired, release: released, leave: left }, violations };
};

/** Callers have it together, and release it all at once; then as many wait for what another process has, and are aborted. */
const measureHolders = async (kind: 'read' | 'permit', count: number): Promise<Omit<FromScale, 'type'>> => {
  const [callers, other] = apps as [BenchApp, BenchApp];
  const key = `scale-${(measured += 1)}`;
  const full = `${key}-full`;
  const acquireOf =
    (name: string, permits: number): Acquire =>
    ({ locks }, signal) => {
      const options = { leaseMs: LEASE_MS, waitMs: WAIT_MS, ...(signal && { signal }) };
      return kind === 'read'
        ? locks.acquire(name, { ...options, mode: 'read' })
        : locks.permits(name, { permits }).acquire(options);
    };
  const acquire = acquireOf(key, count);

  let leases: Lease[] = [];
  const acquired = await costOf(count, async () => {
    leases = await allInChunks(count, () => acquire(callers));
  });
  const intruder = await (kind === 'read'
    ? other.locks.tryAcquire(key, { mode: 'write' })
    : other.locks.permits(key, { permits: count }).tryAcquire());
  const released = await costOf(count, () => Promise.all(leases.map((lease) => lease.release())));
  const held = await (kind === 'read'
    ? other.locks.acquire(full, { mode: 'write' })
    : other.locks.permits(full, { permits: 1 }).acquire());
  const crowd = crowdOf(count, callers, acquireOf(full, 1), () => Promise.resolve());
  if (kind === 'read') await queued(kind, full, 1);
  else await sleep(SETTLED_MS);
  const left = await costOf(count, async () => {
    crowd.abort();
    await crowd.ended;
    if (kind === 'read') await queued(kind, full, 0);
  });
  const entered = (await crowd.ended).filter(({ status }) => status === 'fulfilled').length;
  await held.release();
  const violations = entered + (intruder ? 1 : 0);
  return { steps: { acquire: acquired, release: released, leave: left }, violations };
};

channel.on('measure', async ({ url, kind, count }) => {
  if (apps.length === 0) {
    redis = new Redis(url);
    // The second one is another process, as far as the first can tell.
    apps = [await openApp({ url }), await openApp({ url })];
  }
  const isShared = kind === 'read' || kind === 'permit';
  const measure = (size: number) => (isShared ? measureHolders(kind, size) : measureWaiters(kind, size));
  await measure(WARM_UP);
  channel.send({ type: 'measured', ...(await measure(count)) });
});
