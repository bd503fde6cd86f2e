import { setTimeout as sleep } from 'node:timers/promises';
import { Redis } from 'ioredis';
import { workerChannel } from '../../support/worker-channel.js';
import { openLocks } from '../../support/redis/open-locks.js';

/** The worker's only argument, as JSON. */
export interface CrowdSetup {
  readonly redis: string;
  readonly key: string;
  readonly callers: number;
  readonly workMs: number;
  /** A list in Redis to which every holder adds its process id. */
  readonly log: string;
}

export type ToCrowd = { readonly type: 'go' } | { readonly type: 'stop' };

export type FromCrowd =
  | { readonly type: 'ready' }
  | {
      readonly type: 'stopped';
      /** How often a holder found another one inside. */
      readonly overlaps: number;
      /** How many callers never got the lock. */
      readonly unserved: number;
      readonly errors: readonly string[];
    };

const { redis, key, callers, workMs, log } = JSON.parse(process.argv[2]!) as CrowdSetup;
const { locks, close } = openLocks(redis, { waitMs: 60_000 });
const client = new Redis(redis);
const inside = `${log}:inside`;
let running = true;
let overlaps = 0;
const served = new Array<number>(callers).fill(0);
const errors: string[] = [];

const channel = workerChannel<ToCrowd, FromCrowd>(async () => {
  client.disconnect();
  await close();
});

const work = async (caller: number): Promise<void> => {
  const [before] = await Promise.all([client.incr(inside), client.rpush(log, process.pid)]);
  if (before !== 1) overlaps += 1;
  await sleep(workMs);
  await client.decr(inside);
  served[caller]! += 1;
};

channel.on('go', async () => {
  const call = async (caller: number): Promise<void> => {
    while (running) await locks.withLock(key, () => work(caller));
  };
  await Promise.all(
    served.map((_, caller) => call(caller).catch((error: unknown) => errors.push(String(error)))),
  );
  channel.send({
    type: 'stopped',
    overlaps,
    unserved: served.filter((times) => times === 0).length,
    errors,
  });
});

channel.on('stop', () => {
  running = false;
});

await Promise.all([locks.ping(), client.ping()]);
channel.send({ type: 'ready' });
