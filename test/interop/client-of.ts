import { Cluster, Redis } from 'ioredis';
import type { RedisClusterOptions } from '../../lib/stores/redis/cluster/cluster-settings.js';

/** A plain client of one server, or of a cluster: tests use it in the same way, for one key at a time. */
export const clientOf = (redis: string | RedisClusterOptions): Redis =>
  typeof redis === 'string' ? new Redis(redis) : (new Cluster([...redis.cluster]) as unknown as Redis);
