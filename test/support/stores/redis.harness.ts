import { Redis } from 'ioredis';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { RedisServer } from '../servers/redis-server.js';
import { passRealTime, type Leftovers, type StoreHarness } from './harness.js';

const FENCE_KEYS = /^(nest_redis_lock|redisson_lock_token):/;
/** The channels on which processes hear of their turns, once they have waited; they stay open with the store. */
const GRANT_CHANNELS = 'nest_redis_lock:grant:*';

export interface RedisHarness extends StoreHarness {
  readonly server: RedisServer;
  /** A plain client for looking at the server and for playing foul. */
  readonly admin: Redis;
}

/** What one server keeps. */
export const leftoversOf = async (
  admin: Redis,
): Promise<Leftovers & { readonly processes: readonly string[] }> => {
  const names = (await admin.keys('*')).filter((key) => !FENCE_KEYS.test(key));
  // A counter of free permits holds nothing, and ends with what was the longest lease of them.
  const isCounter = async (name: string): Promise<boolean> =>
    (await admin.type(name)) === 'string' && (await admin.pttl(name)) >= 0;
  const counters = await Promise.all(names.map(isCounter));
  const holds = names.filter((_, i) => !counters[i]);
  const clients = (await admin.client('LIST')) as string;
  const subscriptions = [...clients.matchAll(/ p?s?sub=(\d+)/g)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
  const channels = [
    ...((await admin.pubsub('CHANNELS', GRANT_CHANNELS)) as string[]),
    // Servers before Redis 7 have none.
    ...((await admin.call('PUBSUB', 'SHARDCHANNELS', GRANT_CHANNELS).catch(() => [])) as string[]),
  ];
  // In a cluster a process hears in each slot where it waits.
  const processes = [...new Set(channels.map((channel) => channel.slice(channel.lastIndexOf(':') + 1)))];
  return {
    holds: holds.length,
    watches: subscriptions - channels.length,
    grantSubscriptions: processes.length,
    processes,
  };
};

/** The Redis store on a real server of its own, on the real clock. */
export async function redisHarness(): Promise<RedisHarness> {
  const server = await RedisServer.start();
  const admin = new Redis(server.url);
  return {
    server,
    address: server.url,
    admin,
    virtualTime: false,
    entriesExpire: true,
    connect: () => Promise.resolve(new RedisStore({ redis: server.url })),
    pass: passRealTime,
    leftovers: async () => {
      const { holds, watches, grantSubscriptions } = await leftoversOf(admin);
      return { holds, watches, grantSubscriptions };
    },
    cleanup: async () => {
      admin.disconnect();
      await server.stop();
    },
  };
}
