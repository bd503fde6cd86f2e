import { setTimeout as sleep } from 'node:timers/promises';
import type { INestApplicationContext, Provider } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import type { LockStore } from '../../../../lib/core/seam/lock-store.js';
import type { WorkerSetup } from '../worker-messages.js';
import { storesOf } from './load-library.js';
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

type Servers = Pick<WorkerSetup, 'redis' | 'settings'>;

/** How often an app is started at most while its database is down, and after how many ms again. */
const STARTS = 100;
const START_AGAIN_MS = 200;

/**
 * Starts a Nest app with the library. The recorder sees all that the app asks of its store. An app does not start without
 * its database, so it is started again until it does.
 */
export const startApp = async (
  library: Library,
  servers: Servers,
  recorder: Recorder,
  providersOn: (store: LockStore) => Provider[] = () => [],
): Promise<RunningApp> => {
  const starts = storesOf(servers.redis) === 'redis' ? 1 : STARTS;
  for (let start = 1; ; start++) {
    try {
      return await startOnce(library, servers, recorder, providersOn);
    } catch (error) {
      if (start === starts) throw error;
      await sleep(START_AGAIN_MS);
    }
  }
};

const startOnce = async (
  library: Library,
  { redis: servers, settings }: Servers,
  recorder: Recorder,
  providersOn: (store: LockStore) => Provider[],
): Promise<RunningApp> => {
  const { keyPrefix, commandTimeoutMs, ...others } = settings;
  const redis = openStore(library, servers, recorder.process, commandTimeoutMs);
  const store = new TracedStore(redis.store, recorder);
  const app = await NestFactory.createApplicationContext(
    {
      module: class AppModule {},
      imports: [library.RedisLockModule.forRoot({ store, keyPrefix, ...others })],
      providers: providersOn(redis.store),
    },
    { logger: false, abortOnError: false },
  );
  return { app, locks: app.get(library.LockService), store, redis };
};
