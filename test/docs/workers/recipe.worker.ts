import 'reflect-metadata';
import type { INestApplicationContext, Type } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { RedisStore } from 'nest-redis-lock/redis';
import { deferred } from '../../support/async.js';
import { workerChannel } from '../../support/worker-channel.js';
import { runPage, type Address } from '../recipes.js';
import * as world from '../world.js';

/** A process that runs the recipe of a page. The arguments are the recipe and the address of Redis as JSON. */
export type Recipe = 'leader' | 'deployment' | 'lambda';
export type ToRecipe =
  | { readonly type: 'invoke'; readonly sku: string }
  /** Lets the work go on that has begun. */
  | { readonly type: 'finish' };
export type FromRecipe =
  | { readonly type: 'ready' }
  | { readonly type: 'leading' }
  | { readonly type: 'stopped leading' }
  | { readonly type: 'working' }
  | { readonly type: 'worked'; readonly lost: boolean }
  | { readonly type: 'invoked'; readonly result: string; readonly tookMs: number };

const WATCHDOG_MS = 1_000;
const recipe = process.argv[2] as Recipe;
const server = JSON.parse(process.argv[3]!) as Address;
const url = `redis://${server.host}:${server.port}`;
const finish = deferred();
let app: INestApplicationContext | undefined;

const channel = workerChannel<ToRecipe, FromRecipe>(() => app?.close());
channel.on('finish', () => finish.resolve());

const recipes: Readonly<Record<Recipe, () => Promise<void>>> = {
  leader: async () => {
    const { IndexLeader } = await runPage('docs/locks/leader.md', server);
    // One long step, until the signal aborts.
    world.during.set('rebuildIndex', async () => {
      const [{ signal }] = world.calls.at(-1)!.args as [{ signal: AbortSignal }];
      const aborted = new Promise((resolve) => signal.addEventListener('abort', resolve));
      channel.send({ type: 'leading' });
      await aborted;
      channel.send({ type: 'stopped leading' });
    });
    const store = new RedisStore({ redis: url, commandTimeoutMs: 900 });
    app = await NestFactory.createApplicationContext(
      {
        module: class LeaderModule {},
        imports: [RedisLockModule.forRoot({ store, watchdogMs: WATCHDOG_MS })],
        providers: [IndexLeader as Type, world.StockRepository],
      },
      { logger: ['error'] },
    );
    app.enableShutdownHooks();
    await app.get(LockService).ping();
  },
  deployment: async () => {
    const { DeployedModule } = await runPage('docs/recipes/deployment.md', server);
    app = await NestFactory.createApplicationContext(DeployedModule as Type, { logger: ['error'] });
    app.enableShutdownHooks();
    void app.get(LockService).withLock('deployed', async ({ signal }) => {
      channel.send({ type: 'working' });
      await finish.promise;
      channel.send({ type: 'worked', lost: signal.aborted });
    });
  },
  lambda: async () => {
    const page = await runPage('docs/recipes/deployment.md', server, (source) =>
      source
        .replace('watchdogMs: 10_000', `watchdogMs: ${WATCHDOG_MS}`)
        .replace('LambdaModule)', 'LambdaModule, { logger: ["error"] })'),
    );
    const handler = page['handler'] as (event: { sku: string }) => Promise<string>;
    world.during.set('report', async () => {
      if (process.argv[4] !== 'slow') return;
      channel.send({ type: 'working' });
      await finish.promise;
    });
    channel.on('invoke', async ({ sku }) => {
      const startedAt = performance.now();
      const result = await handler({ sku });
      channel.send({ type: 'invoked', result, tookMs: performance.now() - startedAt });
    });
  },
};

await recipes[recipe]();
channel.send({ type: 'ready' });
