import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import type { AcquireOptions, Lease, LockErrorCode } from 'nest-redis-lock';
import { LockError } from 'nest-redis-lock';
import { collectUnhandledRejections } from '../async.js';
import { workerChannel } from '../worker-channel.js';
import { openLocks, type LocksOptions } from './open-locks.js';

/** The worker's only argument, as JSON. */
export interface LockWorkerSetup {
  readonly redis: string;
  readonly options?: LocksOptions;
}

export type ToLockWorker =
  | {
      readonly type: 'acquire';
      readonly id: string;
      readonly keys: string | readonly string[];
      readonly options?: Omit<AcquireOptions, 'signal'>;
    }
  | { readonly type: 'release'; readonly id: string }
  /** Adds 1 to each counter `rounds` times in steps that only exclusion makes one, under `lock:<counter>`. */
  | { readonly type: 'count'; readonly counters: readonly string[]; readonly rounds: number }
  /** Takes and releases new keys as fast as it can, until it is killed. */
  | { readonly type: 'churn'; readonly prefix: string }
  /** Keeps the event loop busy. */
  | { readonly type: 'block'; readonly ms: number }
  | { readonly type: 'look' };

export type FromLockWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'acquired'; readonly id: string; readonly token: number }
  | { readonly type: 'refused'; readonly id: string; readonly code: LockErrorCode; readonly waitedMs: number }
  | { readonly type: 'released'; readonly id: string; readonly outcome: 'released' | 'lost' }
  | {
      readonly type: 'lost';
      readonly id: string;
      readonly code: LockErrorCode;
      readonly remainingMs: number;
    }
  | { readonly type: 'counted' }
  | { readonly type: 'churning' }
  | { readonly type: 'unblocked'; readonly remainingMs: Readonly<Record<string, number>> }
  | {
      readonly type: 'seen';
      readonly usage: Readonly<Record<string, number>>;
      readonly unhandled: readonly string[];
    };

const unhandled = collectUnhandledRejections();
const { redis, options } = JSON.parse(process.argv[2]!) as LockWorkerSetup;
const opened = openLocks(redis, options);
const { locks } = opened;
const leases = new Map<string, Lease>();
const clients: Redis[] = [];

const channel = workerChannel<ToLockWorker, FromLockWorker>(async () => {
  for (const client of clients) client.disconnect();
  await opened.close();
});

const report = (type: 'refused', id: string, startedAt: number, error: unknown): void => {
  if (!(error instanceof LockError)) throw error;
  channel.send({ type, id, code: error.code, waitedMs: performance.now() - startedAt });
};

channel.on('acquire', async ({ id, keys, options: acquireOptions }) => {
  const startedAt = performance.now();
  try {
    const lease = await locks.acquire(keys, acquireOptions);
    leases.set(id, lease);
    lease.signal.addEventListener('abort', () => {
      const { code } = lease.signal.reason as LockError;
      channel.send({ type: 'lost', id, code, remainingMs: lease.remainingMs() });
    });
    // Readers have none.
    const token = acquireOptions?.mode === 'read' ? 0 : lease.tokenFor(lease.key);
    channel.send({ type: 'acquired', id, token });
  } catch (error) {
    report('refused', id, startedAt, error);
  }
});

channel.on('release', async ({ id }) => {
  const outcome = await leases.get(id)!.release();
  leases.delete(id);
  channel.send({ type: 'released', id, outcome });
});

channel.on('count', async ({ counters, rounds }) => {
  const client = new Redis(redis);
  clients.push(client);
  const increment = async (counter: string) => {
    const before = Number(await client.get(counter));
    await sleep(Math.random() * 2);
    await client.set(counter, before + 1);
  };
  await Promise.all(
    counters.map(async (counter) => {
      for (let round = 0; round < rounds; round += 1) {
        await locks.withLock(counter, { waitMs: Infinity }, () => increment(counter));
      }
    }),
  );
  channel.send({ type: 'counted' });
});

channel.on('churn', async ({ prefix }) => {
  channel.send({ type: 'churning' });
  for (let n = 0; ; n += 1) await locks.withLock(`${prefix}${n % 50}`, () => undefined);
});

channel.on('block', ({ ms }) => {
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);
  // Before any timer had a chance to run.
  const remainingMs = Object.fromEntries([...leases].map(([id, lease]) => [id, lease.remainingMs()]));
  channel.send({ type: 'unblocked', remainingMs });
});

channel.on('look', () => {
  channel.send({
    type: 'seen',
    usage: { ...locks.usage },
    unhandled: unhandled.reasons.map(String),
  });
});

await locks.ping();
channel.send({ type: 'ready' });
