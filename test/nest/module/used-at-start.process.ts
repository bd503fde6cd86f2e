import 'reflect-metadata';
import type { DynamicModule, OnApplicationBootstrap } from '@nestjs/common';
import { LazyModuleLoader, NestFactory } from '@nestjs/core';
import { RedisStore } from 'nest-redis-lock/redis';
import { LockService, RedisLockModule, type RedisLockModuleOptions } from 'nest-redis-lock';
import { workerChannel } from '../../support/worker-channel.js';

/** What the app does with its locks while it starts, and whether it starts. */
export interface UsedAtStart {
  readonly options: RedisLockModuleOptions;
  /** The store is one of the app, which closes it when the start fails. */
  readonly hasOwnStore?: boolean;
  readonly use: 'released' | 'held' | 'waited for';
  readonly starts: boolean;
  /** Loads the lock module when it has started. */
  readonly isLazy?: boolean;
}
export type FromUsedAtStart =
  { readonly type: 'used'; readonly outcome: string } | { readonly type: 'over'; readonly outcome: string };

const channel = workerChannel<never, FromUsedAtStart>();
const {
  options,
  hasOwnStore = false,
  use,
  starts,
  isLazy = false,
} = JSON.parse(process.argv[2]!) as UsedAtStart;

const USES: Record<UsedAtStart['use'], (locks: LockService) => Promise<unknown>> = {
  released: (locks) => locks.withLock('k', () => 'ran'),
  held: (locks) => locks.acquire('k').then(() => 'held'),
  'waited for': async (locks) => {
    await locks.acquire('k');
    const waits = locks.acquire('k', { waitMs: 1_000 });
    return waits.catch((error: { code: string }) => error.code);
  },
};

class App implements OnApplicationBootstrap {
  constructor(private readonly locks: LockService) {}

  async onApplicationBootstrap(): Promise<void> {
    if (starts) return;
    await this.locks.acquire('last').catch(() => undefined);
    throw new Error('no such database');
  }
}

const { redis, ...ofService } = options;
const store = hasOwnStore ? new RedisStore({ redis: redis as string }) : undefined;
const lockModule = (): DynamicModule => RedisLockModule.forRoot(store ? { ...ofService, store } : options);
const root: DynamicModule = {
  module: class AppModule {},
  imports: isLazy ? [] : [lockModule()],
  providers: [
    !isLazy && {
      provide: App,
      inject: [LockService],
      useFactory: async (locks: LockService) => {
        const outcome = await USES[use](locks).catch((error: { code: string }) => error.code);
        channel.send({ type: 'used', outcome: String(outcome) });
        if (!starts) throw new Error('no such database');
        return new App(locks);
      },
    },
  ].filter((one) => one !== false),
};
// Only what the start needs keeps the process alive.
process.channel?.unref();
const starting = NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
const app = await starting.catch((error: Error) => error);
if (app instanceof Error) await store?.close();
channel.send({ type: 'over', outcome: app instanceof Error ? app.message : 'started' });
if (!(app instanceof Error)) {
  const loaded = isLazy && (await app.get(LazyModuleLoader).load(lockModule));
  const locks = (loaded || app).get(LockService, { strict: false });
  await USES[use](locks);
  process.disconnect();
  // It fires only where something else keeps the process alive.
  setTimeout(() => void locks.acquire('alive'), 200).unref();
}
