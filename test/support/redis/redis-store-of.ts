import { isArray } from '../../../lib/core/util/describe.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { QuorumStore, type QuorumStoreOptions } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { RedisStore, type RedisStoreOptions } from '../../../lib/stores/redis/redis.store.js';
import type { RedisSource } from '../../../lib/stores/redis/topology-of.js';

export type OfRedisStore = Omit<RedisStoreOptions, 'redis' | 'runtime'> &
  Pick<QuorumStoreOptions, 'delayAfterRestartMs'>;

/** Makes a store on one Redis, or on a quorum of several. */
export const redisStoreOf = (
  redis: RedisSource | readonly RedisSource[],
  { delayAfterRestartMs, ...options }: OfRedisStore = {},
): LockStore => {
  if (!isArray(redis)) return new RedisStore({ redis, ...options });
  const nodes = redis.map((one) => new RedisStore({ redis: one, ...options }));
  return new QuorumStore({ nodes, delayAfterRestartMs });
};
