import 'reflect-metadata';
import type { DynamicModule, ModuleMetadata, OnApplicationBootstrap, OnModuleInit } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Locked, RedisLockModule } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { workerChannel } from '../../support/worker-channel.js';

export type FromFailingApp = { readonly type: 'failed'; readonly reason: string };

const channel = workerChannel<never, FromFailingApp>();
const fail = (): never => {
  throw new Error('no such database');
};

class FailsAtInit implements OnModuleInit {
  async onModuleInit(): Promise<void> {
    // By now the lock module has had its turn, too.
    await until(() => true);
    fail();
  }
}
class FailsAtBootstrap implements OnApplicationBootstrap {
  onApplicationBootstrap(): void {
    fail();
  }
}
class LocksWithoutContext {
  @Locked('report:<<$tenant>>')
  async report(): Promise<void> {}
}

const [redis, way] = process.argv.slice(2);
const locks = RedisLockModule.forRoot({ redis });

/** What is wrong with the app, beside the lock module. */
const TROUBLE: Record<string, () => ModuleMetadata> = {
  'the factory of another provider': () => ({ providers: [{ provide: 'database', useFactory: fail }] }),
  'the options of another lock module': () => ({
    imports: [RedisLockModule.forRootAsync({ name: 'billing', useFactory: fail })],
  }),
  'a second lock module without a name': () => ({ imports: [RedisLockModule.forRoot({ redis, waitMs: 1 })] }),
  'a $name in a key without a context option': () => ({ providers: [LocksWithoutContext] }),
  'onModuleInit of a provider': () => ({ providers: [FailsAtInit] }),
  'onApplicationBootstrap of a provider': () => ({ providers: [FailsAtBootstrap] }),
};

const { imports = [], providers = [] } = TROUBLE[way!]!();
const root: DynamicModule = { module: class AppModule {}, imports: [locks, ...imports], providers };
const starting = NestFactory.createApplicationContext(root, { logger: false, abortOnError: false });
channel.send({ type: 'failed', reason: await starting.then(() => 'it started', String) });
