import 'reflect-metadata';
import { setTimeout as sleep } from 'node:timers/promises';
import { BullModule, getQueueToken } from '@nestjs/bullmq';
import { Module, type Provider } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { Queue } from 'bullmq';
import { RedisLockModule } from 'nest-redis-lock';
import { redisUrl } from './shared/exercise.js';

const DEADLINE_MS = 20_000;

const { hostname, port } = new URL(redisUrl());
export const connection = { host: hostname, port: Number(port) };

export const until = async (condition: () => boolean | Promise<boolean>): Promise<boolean> => {
  const deadline = performance.now() + DEADLINE_MS;
  while (performance.now() < deadline) {
    if (await condition()) return true;
    await sleep(5);
  }
  return false;
};

/** Starts an app with the worker of a queue. */
export const start = async (queue: string, ...providers: readonly Provider[]) => {
  @Module({
    imports: [
      RedisLockModule.forRoot({ redis: redisUrl() }),
      BullModule.forRoot({ connection }),
      BullModule.registerQueue({ name: queue }),
    ],
    providers: [...providers],
  })
  class AppModule {}

  const app = await NestFactory.createApplicationContext(AppModule, { logger: ['error', 'warn'] });
  return { app: app.enableShutdownHooks(), queue: app.get<Queue>(getQueueToken(queue)) };
};
