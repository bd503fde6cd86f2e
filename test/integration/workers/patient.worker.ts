import { LockNotAcquiredError } from 'nest-redis-lock';
import { workerChannel } from '../../support/worker-channel.js';
import { openLocks } from '../../support/redis/open-locks.js';
import { ToldClock } from '../../support/redis/told-clock.js';

/** One of the five workers: waits for the lock for so long, and works for so long if it gets it. */
export interface PatientSetup {
  readonly redis: string;
  readonly key: string;
  readonly patienceMs: number;
  readonly workMs: number;
}

export type ToPatient = { readonly type: 'start' } | { readonly type: 'time'; readonly ms: number };

export type FromPatient =
  | { readonly type: 'ready' }
  | { readonly type: 'told' }
  | { readonly type: 'got it'; readonly token: number }
  | { readonly type: 'done' }
  | { readonly type: 'gave up'; readonly code: string; readonly usage: Readonly<Record<string, number>> };

const { redis, key, patienceMs, workMs } = JSON.parse(process.argv[2]!) as PatientSetup;
const clock = new ToldClock();
const opened = openLocks(redis, {}, clock.runtime(String(process.pid)));
const { locks } = opened;

const channel = workerChannel<ToPatient, FromPatient>(async () => {
  const closing = opened.close();
  // Its grace period goes by the clock as well.
  clock.tell(Number.MAX_SAFE_INTEGER);
  await closing;
});

channel.on('time', ({ ms }) => {
  clock.tell(ms);
  channel.send({ type: 'told' });
});

channel.on('start', async () => {
  try {
    const lease = await locks.acquire(key, { waitMs: patienceMs });
    channel.send({ type: 'got it', token: lease.fencingToken });
    await new Promise<void>((resolve) => clock.setTimer(resolve, workMs));
    await lease.release();
    channel.send({ type: 'done' });
  } catch (error) {
    if (!(error instanceof LockNotAcquiredError)) throw error;
    channel.send({ type: 'gave up', code: error.code, usage: { ...locks.usage } });
  }
});

await locks.ping();
channel.send({ type: 'ready' });
