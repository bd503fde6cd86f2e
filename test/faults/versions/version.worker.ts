import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import type * as Library from 'nest-redis-lock';
import { workerChannel } from '../../support/worker-channel.js';

/** The worker's only argument, as JSON. */
export interface VersionWorkerSetup {
  readonly redis: string;
  /** URL of the library's entry point. */
  readonly library: string;
}

export type Wanted = Library.LockMode | 'permit';

export type ToVersionWorker =
  | { readonly type: 'acquire'; readonly key: string; readonly mode: Library.LockMode }
  | { readonly type: 'release' }
  /** Acquires and releases the key `rounds` times for each of the modes, at the same time. */
  | {
      readonly type: 'contend';
      readonly key: string;
      readonly modes: readonly Wanted[];
      readonly rounds: number;
    };

export type FromVersionWorker =
  | { readonly type: 'ready' }
  | { readonly type: 'acquired' }
  | { readonly type: 'released' }
  /** `violations`: what was inside at the same time as a holder that excludes it. */
  | { readonly type: 'contended'; readonly violations: readonly string[] };

/** Number of permits of each key that is contended for with permits. */
const PERMITS = 2;
const WAIT_MS = 60_000;

const { redis: url, library } = JSON.parse(process.argv[2]!) as VersionWorkerSetup;
const { LockService, RedisLockModule } = (await import(library)) as typeof Library;
const app = await NestFactory.createApplicationContext(RedisLockModule.forRoot({ redis: url }), {
  logger: ['error', 'fatal'],
});
const locks = app.get(LockService);
const redis = new Redis(url);
let lease: Library.Lease | undefined;

const channel = workerChannel<ToVersionWorker, FromVersionWorker>(async () => {
  redis.disconnect();
  await app.close();
});

const excludes = (mode: Wanted, inside: Readonly<Record<string, number>>): boolean => {
  const { permit = 0, read = 0, ...others } = inside;
  const writers = Object.values(others).reduce((sum, count) => sum + count, 0);
  if (mode === 'permit') return permit <= PERMITS;
  return mode === 'read' ? writers === 0 : writers === 1 && read === 0;
};

/** Counts the holder in and out in Redis, and returns what should not have been inside with it. */
const workAs = async (mode: Wanted, key: string): Promise<string[]> => {
  const counters = `inside:${key}`;
  const entered = await redis.multi().hincrby(counters, mode, 1).hgetall(counters).exec();
  const inside = Object.entries(entered![1]![1] as Record<string, string>);
  const counts = Object.fromEntries(inside.map(([name, count]) => [name, Number(count)]));
  await sleep(1);
  await redis.hincrby(counters, mode, -1);
  return excludes(mode, counts) ? [] : [`${mode} beside ${JSON.stringify(counts)}`];
};

const contend = async (key: string, mode: Wanted, rounds: number): Promise<string[]> => {
  const violations: string[] = [];
  const section = async (): Promise<void> => void violations.push(...(await workAs(mode, key)));
  for (let round = 0; round < rounds; round += 1) {
    if (mode === 'permit')
      await locks.permits(key, { permits: PERMITS }).withPermit({ waitMs: WAIT_MS }, section);
    else await locks.withLock(key, { mode, waitMs: WAIT_MS }, section);
  }
  return violations;
};

channel.on('acquire', async ({ key, mode }) => {
  lease = await locks.acquire(key, { mode, waitMs: WAIT_MS });
  channel.send({ type: 'acquired' });
});

channel.on('release', async () => {
  await lease!.release();
  channel.send({ type: 'released' });
});

channel.on('contend', async ({ key, modes, rounds }) => {
  const all = await Promise.all(modes.map((mode) => contend(key, mode, rounds)));
  channel.send({ type: 'contended', violations: all.flat() });
});

await locks.ping();
channel.send({ type: 'ready' });
