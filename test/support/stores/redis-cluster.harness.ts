import { Redis } from 'ioredis';
import { RedisStore, type RedisStoreOptions } from '../../../lib/stores/redis/redis.store.js';
import { RedisClusterServers } from '../servers/redis-cluster.js';
import { passRealTime, type StoreHarness } from './harness.js';
import { leftoversOf } from './redis.harness.js';

/** The Redis store on a cluster of three masters, on the real clock. */
export const redisClusterHarness = async (
  options: Omit<RedisStoreOptions, 'redis'> = {},
): Promise<StoreHarness> => {
  const servers = await RedisClusterServers.start({ replicas: false });
  const admins = servers.servers.map((server) => new Redis(server.url));
  return {
    address: servers.servers[0]!.url,
    virtualTime: false,
    entriesExpire: true,
    connect: () => Promise.resolve(new RedisStore({ redis: servers.options, ...options })),
    pass: passRealTime,
    leftovers: async () => {
      const each = await Promise.all(admins.map(leftoversOf));
      const sum = (of: 'holds' | 'watches'): number => each.reduce((all, one) => all + one[of], 0);
      const processes = new Set(each.flatMap(({ processes: hearing }) => hearing));
      return { holds: sum('holds'), watches: sum('watches'), grantSubscriptions: processes.size };
    },
    cleanup: async () => {
      for (const admin of admins) admin.disconnect();
      await servers[Symbol.asyncDispose]();
    },
  };
};
