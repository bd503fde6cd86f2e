import type { Redis } from 'ioredis';
import { connect, peer } from './peer.js';
import { PERMITS, type Section, type Subject } from './subject.js';

interface Held {
  acquire(): Promise<void>;
  release(): Promise<void>;
}

interface RedisSemaphore {
  readonly Mutex: new (
    client: Redis,
    key: string,
    options: { readonly acquireTimeout: number; readonly lockTimeout?: number },
  ) => Held;
  readonly RedlockMutex: new (
    clients: readonly Redis[],
    key: string,
    options: { readonly acquireTimeout: number; readonly lockTimeout?: number },
  ) => Held;
  readonly Semaphore: new (
    client: Redis,
    key: string,
    limit: number,
    options: { readonly acquireTimeout: number; readonly lockTimeout?: number },
  ) => Held;
}

const WAIT_MS = 10_000;

const holding = async (held: Held, section: Section): Promise<void> => {
  await held.acquire();
  try {
    await section();
  } finally {
    await held.release();
  }
};

/**
 * A mutex for each acquisition, as its README has it. It waits as long as it is told to, and does all else by default:
 * looks again every 10 ms, holds for 10 s, renews after 8 s.
 */
export const redisSemaphore: Subject = {
  name: 'redis-semaphore',
  insideScripts: ['get', 'del', 'pexpire', 'zremrangebyscore', 'zscore', 'zcard', 'zadd'],
  async open({ url, quorum = [url], waitMs = WAIT_MS, leaseMs }) {
    const clients = await Promise.all(quorum.map((server) => connect(server)));
    const client = clients[0]!;
    const { Mutex, RedlockMutex, Semaphore } = peer<RedisSemaphore>('redis-semaphore');
    const options = { acquireTimeout: waitMs, ...(leaseMs && { lockTimeout: leaseMs }) };
    return {
      styles: {
        acquire: (key, section) => holding(new Mutex(client, `lock:${key}`, options), section),
        RedlockMutex: (key, section) => holding(new RedlockMutex(clients, `lock:${key}`, options), section),
        semaphore: (key, section) =>
          holding(new Semaphore(client, `semaphore:${key}`, PERMITS, options), section),
      },
      close: () => Promise.resolve(clients.forEach((one) => one.disconnect())),
    };
  },
};
