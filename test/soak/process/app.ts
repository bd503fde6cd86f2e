import { Module, type INestApplicationContext } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { RedisStore } from 'nest-redis-lock/redis';

/** Short, so that what outlives a lock for a while has gone soon after the last one. */
const WATCHDOG_MS = 3_000;
const COMMAND_TIMEOUT_MS = 900;

/** A Nest app with locks, whose insides can be looked at. */
export interface SoakApp {
  readonly app: INestApplicationContext;
  readonly locks: LockService;
  readonly store: RedisStore;
  readonly clients: readonly Redis[];
}

export const openApp = async (url: string): Promise<SoakApp> => {
  const clients: Redis[] = [];
  const store = new RedisStore({
    commandTimeoutMs: COMMAND_TIMEOUT_MS,
    redis: (_role, settings) => {
      const client = new Redis(url, settings);
      clients.push(client);
      return client;
    },
  });

  @Module({ imports: [RedisLockModule.forRoot({ store, watchdogMs: WATCHDOG_MS })] })
  class SoakModule {}

  const app = await NestFactory.createApplicationContext(SoakModule, { logger: false });
  const locks = app.get(LockService);
  await locks.ping();
  return { app, locks, store, clients };
};
