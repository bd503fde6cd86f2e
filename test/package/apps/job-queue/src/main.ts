// Workers that stop while their jobs wait for a permit, as at a deploy.
import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Queue } from 'bullmq';
import { Redis } from 'ioredis';
import { LockError, RedisLockModule } from 'nest-redis-lock';
import { CrmClient } from './crm.client.js';
import { CrmProcessor, CrmService } from './crm.processor.js';
import { redisUrl } from './shared/exercise.js';

const JOBS = 8;
const DEADLINE_MS = 20_000;

const until = async (condition: () => boolean | Promise<boolean>): Promise<boolean> => {
  const deadline = performance.now() + DEADLINE_MS;
  while (performance.now() < deadline) {
    if (await condition()) return true;
    await sleep(5);
  }
  return false;
};

const { hostname, port } = new URL(redisUrl());
const connection = { host: hostname, port: Number(port) };

@Module({
  imports: [
    RedisLockModule.forRoot({ redis: redisUrl() }),
    BullModule.forRoot({ connection }),
    BullModule.registerQueue({ name: 'crm' }),
  ],
  providers: [CrmClient, CrmService, CrmProcessor],
})
class AppModule {}

const start = async () => {
  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
  return { app: app.enableShutdownHooks(), queue: app.get<Queue>(getQueueToken('crm')) };
};

const first = await start();
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

const second = await start();
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
