// Workers that stop while their jobs wait for a permit, as at a deploy.
import { Redis } from 'ioredis';
import { LockError } from 'nest-redis-lock';
import { CrmClient } from './crm.client.js';
import { CrmProcessor, CrmService } from './crm.processor.js';
import { connection, start, until } from './setup.js';

const JOBS = 8;

const startCrm = () => start('crm', CrmClient, CrmService, CrmProcessor);

const first = await startCrm();
/** The codes of all lock errors that the work of jobs ended with. */
const codes = new Set<string>();
const service = first.app.get(CrmService);
const sync = service.sync.bind(service);
service.sync = (tenant) =>
  sync(tenant).catch((error: unknown) => {
    if (error instanceof LockError) codes.add(error.code);
    throw error;
  });

for (let i = 0; i < JOBS; i++) await first.queue.add('sync', { tenant: 'acme' });
const allPlacesTaken = await until(async () => (await first.queue.getActiveCount()) === 5);
await first.queue.add('sync', { tenant: 'other' });
const otherTenantRan = await until(() => CrmClient.started.includes('other'));
const someWait = await until(async () => (await first.queue.getActiveCount()) > 2);

const stopped = first.app.close();
const refusedByStop = await until(() => codes.has('LOCK_SHUTDOWN'));
CrmClient.open();
await stopped;

const redis = new Redis({ ...connection, lazyConnect: false });
const afterStop = {
  failed: await redis.zcard('bull:crm:failed'),
  active: await redis.llen('bull:crm:active'),
};

const second = await startCrm();
const allDone = await until(async () => (await second.queue.getCompletedCount()) === JOBS + 1);
const failed = await second.queue.getFailedCount();
await second.app.close();
await redis.quit();

console.log(
  JSON.stringify({
    ...{ allPlacesTaken, otherTenantRan, someWait, refusedByStop, afterStop, allDone, failed },
    runs: CrmClient.started.length,
    mostAtOnce: CrmClient.mostAtOnce,
  }),
);
