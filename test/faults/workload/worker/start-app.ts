import type { INestApplicationContext, Provider } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { WorkerSetup } from '../worker-messages.js';
import { openStore, type OpenStore } from './open-store.js';
import type { Library } from './orders.service.js';
import type { Recorder } from './recorder.js';
import { TracedStore } from './traced-store.js';

export interface RunningApp {
  readonly app: INestApplicationContext;
  readonly locks: InstanceType<Library['LockService']>;
  readonly store: TracedStore;
  readonly redis: OpenStore;
}

/** Starts a Nest app with the library. The recorder sees all that the app asks of its store. */
export const startApp = async (
  library: Library,
  { redis: servers, settings }: Pick<WorkerSetup, 'redis' | 'settings'>,
  recorder: Recorder,
  providers: Provider[] = [],
): Promise<RunningApp> => {
  const { keyPrefix, commandTimeoutMs, ...others } = settings;
  const redis = openStore(library, servers, recorder.process, commandTimeoutMs);
  const store = new TracedStore(redis.store, recorder);
  const app = await NestFactory.createApplicationContext(
    {
      module: class AppModule {},
      imports: [library.RedisLockModule.forRoot({ store, keyPrefix, ...others })],
      providers,
    },
    { logger: false },
  );
  return { app, locks: app.get(library.LockService), store, redis };
};
