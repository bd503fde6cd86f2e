import type { Redis } from 'ioredis';
import { connect, peer } from './peer.js';
import type { Subject } from './subject.js';

export interface Redlock {
  using(resources: string[], durationMs: number, routine: () => Promise<void>): Promise<void>;
}

export type RedlockClass = new (
  clients: readonly Redis[],
  settings: { readonly retryCount: number },
) => Redlock;

/** redlock has no default for it; its README uses 5,000 ms. */
const LEASE_MS = 5_000;

/**
 * Retries are without end: the default of 10 gives up after 2 to 3 s, before most of the callers are served. The delay
 * between them is the default (200 ms and up to 100 ms more), and so is the renewal (`using`, 500 ms before the end).
 */
export const openRedlock: (redlockClass: () => RedlockClass) => Subject['open'] =
  (redlockClass) =>
  async ({ url, leaseMs = LEASE_MS }) => {
    const client = await connect(url);
    const redlock = new (redlockClass())([client], { retryCount: -1 });
    return {
      styles: { using: (key, section) => redlock.using([`lock:${key}`], leaseMs, () => section()) },
      close: () => Promise.resolve(client.disconnect()),
    };
  };

/** The 5.0 beta that most of its users have; 4.2, which npm calls the latest, is older. */
export const redlock: Subject = {
  name: 'redlock',
  insideScripts: ['exists', 'set', 'get', 'pexpire', 'del'],
  open: openRedlock(() => peer<{ readonly default: RedlockClass }>('redlock').default),
};
