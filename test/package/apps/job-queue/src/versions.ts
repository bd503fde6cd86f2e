// Each major version of BullMQ delays a job of runOrDelay. Older ones count an attempt for each delay.
import { createLockService, runOrDelay } from 'nest-redis-lock';
import { connection, until } from './setup.js';
import { redisUrl } from './shared/exercise.js';

const VERSIONS = ['bullmq', 'bullmq-5', 'bullmq-4', 'bullmq-3'];
const DELAYS = 3;

const locks = await createLockService({ redis: redisUrl() });

const run = async (name: string) => {
  const { Queue, Worker } = (await import(name)) as typeof import('bullmq');
  const queue = new Queue(name, { connection });
  const lease = await locks.acquire(name);
  let starts = 0;
  let runs = 0;
  const work = () =>
    locks.withLock(name, { waitMs: 0 }, () => {
      if (++runs === 1) throw new Error('fails once');
    });
  const worker = new Worker(
    name,
    (job, token) => {
      starts++;
      return runOrDelay(job, token, work, { delayMs: 10 });
    },
    { connection },
  );
  // A delay that counted would leave no attempt for the second run of the work.
  await queue.add('job', {}, { attempts: 2 });
  const delayed = await until(() => starts > DELAYS);
  const failedMeanwhile = await queue.getFailedCount();
  await lease.release();
  const ended = () => queue.getJobCountByTypes('completed', 'failed');
  await until(async () => (await ended()) === 1);
  const counted = (await queue.getFailedCount()) === 1;
  await worker.close();
  await queue.close();
  return { delayed, failedMeanwhile, counted, runs };
};

const report: Record<string, unknown> = {};
for (const name of VERSIONS) report[name] = await run(name);
await locks.close();
console.log(JSON.stringify(report));
