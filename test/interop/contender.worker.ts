import { setTimeout as sleep } from 'node:timers/promises';
import type { LockMode } from 'nest-redis-lock';
import type { RedisClusterOptions } from '../../lib/stores/redis/cluster/cluster-settings.js';
import { clientOf } from './client-of.js';
import { openLocks, type LocksOptions } from '../support/redis/open-locks.js';
import { workerChannel } from '../support/worker-channel.js';
import type { Had } from '../support/java/contest.js';

/** The worker's only argument, as JSON. */
export interface ContenderSetup {
  readonly redis: string | RedisClusterOptions;
  readonly options?: LocksOptions;
}

export interface Contend {
  readonly key: string;
  readonly callers: number;
  readonly workMs: number;
  readonly forMs: number;
}

export type ToContender =
  | ({ readonly type: 'contend' } & Contend)
  /** Adds 1 to the counter `rounds` times with each caller, in steps that only exclusion makes one. */
  | {
      readonly type: 'count';
      readonly key: string | readonly string[];
      readonly callers: number;
      readonly rounds: number;
      readonly counter: string;
      readonly mode?: LockMode;
    }
  /** Looks at the counter twice, as a reader, `rounds` times with each caller. */
  | {
      readonly type: 'compare';
      readonly key: string;
      readonly callers: number;
      readonly rounds: number;
      readonly counter: string;
    }
  | {
      readonly type: 'hold';
      readonly key: string;
      /** One of its permits, and not the lock. */
      readonly permit?: boolean;
      readonly mode?: LockMode;
    };

export type FromContender =
  | { readonly type: 'ready' }
  | { readonly type: 'contended'; readonly had: readonly Had[] }
  | { readonly type: 'counted' }
  /** How often it had changed in between. */
  | { readonly type: 'compared'; readonly changed: number }
  | { readonly type: 'holding' };

const { redis, options } = JSON.parse(process.argv[2]!) as ContenderSetup;
const opened = openLocks(redis, { keyPrefix: '', waitMs: Infinity, ...options });
const { locks } = opened;
const client = clientOf(redis);

const channel = workerChannel<ToContender, FromContender>(async () => {
  client.disconnect();
  await opened.close();
});

const times = <T>(count: number, run: () => Promise<T>): Promise<T[]> =>
  Promise.all(Array.from({ length: count }, run));

channel.on('contend', async ({ key, callers, workMs, forMs }) => {
  const endsAt = performance.now() + forMs;
  const had = await times(callers, async () => {
    let served = 0;
    let lastAt = performance.now();
    let longestMs = 0;
    while (performance.now() < endsAt) {
      await locks.withLock(key, async () => {
        const at = performance.now();
        longestMs = Math.max(longestMs, Math.min(at, endsAt) - lastAt);
        lastAt = at;
        if (at >= endsAt) return;
        served += 1;
        await sleep(workMs);
      });
    }
    return { served, longestMs: Math.max(longestMs, endsAt - lastAt) };
  });
  channel.send({ type: 'contended', had });
});

channel.on('count', async ({ key, callers, rounds, counter, mode }) => {
  const increment = async () => {
    const before = Number(await client.get(counter));
    await sleep(1);
    await client.set(counter, before + 1);
  };
  await times(callers, async () => {
    for (let round = 0; round < rounds; round += 1) await locks.withLock(key, { mode }, increment);
  });
  channel.send({ type: 'counted' });
});

channel.on('compare', async ({ key, callers, rounds, counter }) => {
  let changed = 0;
  const look = async () => {
    const before = await client.get(counter);
    await sleep(1);
    if ((await client.get(counter)) !== before) changed += 1;
  };
  await times(callers, async () => {
    for (let round = 0; round < rounds; round += 1) await locks.withLock(key, { mode: 'read' }, look);
  });
  channel.send({ type: 'compared', changed });
});

channel.on('hold', async ({ key, permit, mode }) => {
  await (permit ? locks.permits(key).acquire() : locks.acquire(key, { mode }));
  channel.send({ type: 'holding' });
});

await locks.ping();
channel.send({ type: 'ready' });
