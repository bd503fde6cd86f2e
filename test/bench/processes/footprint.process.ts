import { setTimeout as sleep } from 'node:timers/promises';
import type { Lease } from 'nest-redis-lock';
import { heapAfterCollection } from '../../support/garbage.js';
import { workerChannel } from '../../support/worker-channel.js';
import { openApp, type BenchApp } from '../subjects/nest-redis-lock.js';

export interface ToFootprint {
  readonly type: 'measure';
  readonly url: string;
  readonly count: number;
}

export interface FromFootprint {
  readonly type: 'measured';
  /** Heap that each of `count` leases needs, and each of `count` callers for a held key, in bytes. */
  readonly heldBytes: number;
  readonly waiterBytes: number;
}

/** The first ones also pay for what all of them share. */
const FIRST = 200;
/** How many are acquired at a time. */
const AT_ONCE = 200;
const KEY = 'footprint-waited-for';

let app: BenchApp | undefined;
const channel = workerChannel<ToFootprint, FromFootprint>(async () => app?.app.close());

channel.on('measure', async ({ url, count }) => {
  app = await openApp({ url });
  const { locks } = app;
  const leases: Lease[] = [];
  const hold = async (upTo: number): Promise<void> => {
    while (leases.length < upTo) {
      const from = leases.length;
      const names = Array.from({ length: AT_ONCE }, (_none, i) => `footprint-${from + i}`);
      leases.push(...(await Promise.all(names.map((name) => locks.acquire(name)))));
    }
  };
  const over = new AbortController();
  const wait = (callers: number): void => {
    const options = { waitMs: Infinity, signal: over.signal };
    for (let i = 0; i < callers; i++) locks.acquire(KEY, options).catch(() => undefined);
  };
  const bytesOf = async (begin: () => Promise<void> | void): Promise<number> => {
    const before = await heapAfterCollection();
    await begin();
    // Promises and timers of the beginning have settled.
    await sleep(100);
    return ((await heapAfterCollection()) - before) / count;
  };

  await hold(FIRST);
  const heldBytes = await bytesOf(() => hold(FIRST + count));
  leases.push(await locks.acquire(KEY));
  wait(FIRST);
  await sleep(100);
  const waiterBytes = await bytesOf(() => wait(count));
  over.abort();
  await Promise.all(leases.map((lease) => lease.release()));
  channel.send({ type: 'measured', heldBytes, waiterBytes });
});
