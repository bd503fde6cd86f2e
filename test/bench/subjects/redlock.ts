import type { Redis } from 'ioredis';
import { connect, peer } from './peer.js';
import type { Subject } from './subject.js';

export interface Redlock {
  using(resources: string[], durationMs: number, routine: () => Promise<void>): Promise<void>;
  acquire(resources: string[], durationMs: number): Promise<{ release(): Promise<unknown> }>;
}

export type RedlockClass = new (
  clients: readonly Redis[],
  settings: { readonly retryCount: number },
) => Redlock;

/** redlock has no default for it; its README uses 5,000 ms. */
const LEASE_MS = 5_000;

/**
 * Retries are without end: the default of 10 gives up after 2 to 3 s, before most of the callers are served. The delay
 * between them is the default (200 ms and up to 100 ms more), and so is the renewal (`using`, 500 ms before the end). With
 * `acquire` nothing is renewed.
 */
export const openRedlock: (redlockClass: () => RedlockClass) => Subject['open'] =
  (redlockClass) =>
  async ({ url, quorum = [url], leaseMs = LEASE_MS }) => {
    const clients = await Promise.all(quorum.map((server) => connect(server)));
    const redlock = new (redlockClass())(clients, { retryCount: -1 });
    return {
      styles: {
        using: (key, section) => redlock.using([`lock:${key}`], leaseMs, () => section()),
        acquire: async (key, section) => {
          const lock = await redlock.acquire([`lock:${key}`], leaseMs);
          try {
            await section();
          } finally {
            await lock.release();
          }
        },
      },
      close: () => Promise.resolve(clients.forEach((client) => client.disconnect())),
    };
  };

/** The 5.0 beta that most of its users have; 4.2, which npm calls the latest, is older. */
export const redlock: Subject = {
  name: 'redlock',
  insideScripts: ['exists', 'set', 'get', 'pexpire', 'del'],
  open: openRedlock(() => peer<{ readonly default: RedlockClass }>('redlock').default),
};
