import type { RedisOptions } from 'ioredis';
import { peer } from './peer.js';
import type { Subject } from './subject.js';

interface NodeRedisson {
  readonly Redisson: new (config: {
    readonly redis: { readonly options: RedisOptions };
    readonly lockWatchdogTimeout?: bigint;
  }) => {
    readonly redis: { ping(): Promise<string> };
    getLock(name: string): { lock(): Promise<void>; unlock(): Promise<void> };
    quit(): Promise<void>;
  };
}

/**
 * A lock object for each acquisition, since its owner is the object; `lock()` waits without end and is renewed by its
 * watchdog. All by default. It waits for a message, and when it misses one, for the end of the holder's lease.
 */
export const nodeRedisson: Subject = {
  name: 'node-redisson',
  insideScripts: ['get', 'set', 'hexists', 'hincrby', 'exists', 'pexpire', 'pttl', 'del', 'publish'],
  async open({ url, leaseMs }) {
    const { hostname: host, port } = new URL(url);
    const redisson = new (peer<NodeRedisson>('node-redisson').Redisson)({
      redis: { options: { host, port: Number(port) } },
      ...(leaseMs && { lockWatchdogTimeout: BigInt(leaseMs) }),
    });
    await redisson.redis.ping();
    return {
      styles: {
        lock: async (key, section) => {
          const lock = redisson.getLock(`lock:${key}`);
          await lock.lock();
          try {
            await section();
          } finally {
            await lock.unlock();
          }
        },
      },
      close: () => redisson.quit(),
    };
  },
};
