import 'reflect-metadata';
import type { OnModuleDestroy } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { workerChannel } from '../../support/worker-channel.js';
import { RecordingLogger } from '../../support/nest/recording-logger.js';

export type ToApp =
  | { readonly type: 'run'; readonly key: string }
  | { readonly type: 'end the work' }
  | { readonly type: 'close' };
export type FromApp =
  | { readonly type: 'ready' }
  | { readonly type: 'running'; readonly warnings: readonly string[] }
  | { readonly type: 'stopping' }
  | { readonly type: 'closed' };

const channel = workerChannel<ToApp, FromApp>();

// The first hook: up to Nest 11 those that come later are called one module after the other, each when the last has ended.
class Telling implements OnModuleDestroy {
  onModuleDestroy(): void {
    channel.send({ type: 'stopping' });
  }
}

// Arguments: the URL of Redis, how long work may go on, and 'hooks' for an app that enables the shutdown hooks.
const [redis, shutdownGraceMs, hooks] = process.argv.slice(2);
const logger = new RecordingLogger();
const options = { redis, watchdogMs: 60_000, shutdownGraceMs: Number(shutdownGraceMs) };
const app = await NestFactory.createApplicationContext(
  { module: class AppModule {}, imports: [RedisLockModule.forRoot(options)], providers: [Telling] },
  { logger },
);
if (hooks === 'hooks') app.enableShutdownHooks();

let endWork: () => void;
const work = new Promise<void>((resolve) => (endWork = resolve));

channel.on('run', async ({ key }) => {
  await app.get(LockService).withLock(key, () => {
    channel.send({ type: 'running', warnings: logger.warnings });
    return work;
  });
});
channel.on('end the work', () => endWork());
channel.on('close', async () => {
  await app.close();
  channel.send({ type: 'closed' });
});
channel.send({ type: 'ready' });
