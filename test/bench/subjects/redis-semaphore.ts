import type { Redis } from 'ioredis';
import { connect, peer } from './peer.js';
import type { Subject } from './subject.js';

interface RedisSemaphore {
  readonly Mutex: new (
    client: Redis,
    key: string,
    options: { readonly acquireTimeout: number; readonly lockTimeout?: number },
  ) => { acquire(): Promise<void>; release(): Promise<void> };
}

const WAIT_MS = 10_000;

/**
 * A mutex for each acquisition, as its README has it. It waits as long as it is told to, and does all else by default:
 * looks again every 10 ms, holds for 10 s, renews after 8 s.
 */
export const redisSemaphore: Subject = {
  name: 'redis-semaphore',
  insideScripts: ['get', 'del', 'pexpire'],
  async open({ url, waitMs = WAIT_MS, leaseMs }) {
    const client = await connect(url);
    const { Mutex } = peer<RedisSemaphore>('redis-semaphore');
    const options = { acquireTimeout: waitMs, ...(leaseMs && { lockTimeout: leaseMs }) };
    return {
      styles: {
        acquire: async (key, section) => {
          const mutex = new Mutex(client, `lock:${key}`, options);
          await mutex.acquire();
          try {
            await section();
          } finally {
            await mutex.release();
          }
        },
      },
      close: () => Promise.resolve(client.disconnect()),
    };
  },
};
