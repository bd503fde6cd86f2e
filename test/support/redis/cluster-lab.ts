import { afterAll, afterEach, beforeAll } from 'vitest';
import type { Runtime } from '../../../lib/core/util/runtime.js';
import { hashSlot } from '../../../lib/stores/redis/hash-slot.js';
import type { RedisSource } from '../../../lib/stores/redis/topology-of.js';
import { until } from '../async.js';
import { holdName, newKey } from './lab.js';
import { openLocks, type LocksOptions, type OpenLocks } from './open-locks.js';
import { RedisClusterServers, type RedisClusterTraits } from '../servers/redis-cluster.js';

/** Longer than a failover takes, on a machine that has much else to do. */
export const PATIENCE_MS = 60_000;
/** Of a whole test with one. */
export const TEST_MS = 120_000;

/** A cluster for the tests of one file, and services on it. */
export interface ClusterLab {
  readonly redis: RedisClusterServers;
  open(options?: LocksOptions, source?: RedisSource, runtime?: Runtime): OpenLocks;
  /** Resolves once so many wait for the key. */
  waiting(locks: OpenLocks, key: string, count: number): Promise<unknown>;
}

/** Starts a cluster for each test, or one for all of the file, and ends what was opened with it. */
export const useCluster = (
  traits: RedisClusterTraits & { readonly forEachTest?: boolean } = {},
): ClusterLab => {
  const opened: OpenLocks[] = [];
  let redis: RedisClusterServers | undefined;
  const start = async (): Promise<void> => {
    redis ??= await RedisClusterServers.start(traits);
  };
  const stop = async (): Promise<void> => {
    await redis?.[Symbol.asyncDispose]();
    redis = undefined;
  };
  beforeAll(start, TEST_MS);
  afterEach(async () => {
    for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
    if (traits.forEachTest) {
      await stop();
      await start();
    }
  }, TEST_MS);
  afterAll(stop);
  return {
    get redis() {
      return redis!;
    },
    open: (options = {}, source = redis!.options, runtime) => {
      const one = openLocks(source, options, runtime);
      opened.push(one);
      return one;
    },
    waiting: ({ locks }, key, count) =>
      until(async () => (await locks.inspect(key))?.waiting.length === count, {
        timeoutMs: PATIENCE_MS,
        what: `${count} wait for ${key}`,
      }),
  };
};

/** Keys of which no two are in one slot. */
export const keysInSlots = (count: number): string[] => {
  const slots = new Map<number, string>();
  while (slots.size < count) {
    const key = newKey();
    slots.set(hashSlot(holdName(key)), key);
  }
  return [...slots.values()];
};

/** The number of connections that listen at a server. */
export const listenersAt = async (server: { cli(...command: [string, ...string[]]): Promise<unknown> }) =>
  (String(await server.cli('CLIENT', 'LIST')).match(/ s?sub=[1-9]/g) ?? []).length;
