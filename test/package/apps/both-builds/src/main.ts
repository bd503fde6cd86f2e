import 'reflect-metadata';
import { Module, type DynamicModule } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { BillingController, BillingService } from 'billing';
import { bindLocks, createTestingLocks } from 'nest-redis-lock/testing';
import { CheckoutService, TrialService } from './checkout.service.js';
import { exported, failureOf, folderOf, kindsOf, libraries, type Build } from './libraries.js';
import { redisUrl } from './shared/exercise.js';

const { esm, cjs } = libraries;

const moduleOf = (build: Build, name?: string): DynamicModule =>
  libraries[build].RedisLockModule.forRoot({ name, redis: redisUrl() });

@Module({})
class AppModule {
  /** The same app, with the module of either build. */
  static with(build: Build): DynamicModule {
    return {
      module: AppModule,
      imports: [moduleOf(build)],
      controllers: [BillingController],
      providers: [BillingService, CheckoutService, TrialService],
    };
  }
}

/** One app, with classes of both builds and the module of one. */
const inApp = async (build: Build) => {
  const app = await NestFactory.create(AppModule.with(build), { logger: ['error', 'warn'] });
  app.enableShutdownHooks();
  await app.listen(0, '127.0.0.1');
  const url = await app.getUrl();
  const billing = app.get(BillingService);
  const checkout = app.get(CheckoutService);
  const { locks } = checkout;
  const injected = [billing.locks, locks, app.get(esm.LockService), app.get(cjs.LockService)];

  const tokens: number[] = [];
  const take = async (turn: number): Promise<unknown> =>
    tokens.push(await (turn % 2 ? billing.charge('7') : checkout.pay('7')));
  await Promise.all(Array.from({ length: 10 }, (_, turn) => take(turn)));

  const post = async () => (await fetch(`${url}/billing/7`, { method: 'POST' })).status;
  const whileTaken = () =>
    esm.detached(async () => ({
      status: await post(),
      error: kindsOf(await failureOf(() => billing.audit('7', async () => undefined))),
    }));
  const report = {
    services: new Set(injected).size,
    tokens,
    mostInside: billing.meter.most,
    nested: [await checkout.tokens('7'), await checkout.tokensOfBilling('7')],
    inherited: await app.get(TrialService).start('7'),
    status: await post(),
    whileTaken: await locks.withLock('account:7', whileTaken),
    left: locks.held().length,
  };
  await app.close();
  return report;
};

/** A store made by one build, of a server that is not there, in an app of the other. */
const withForeignStore = async (build: Build, storeOf: Build) => {
  const { RedisStore } = libraries[storeOf];
  const store = new RedisStore({ redis: { host: '127.0.0.1', port: 1 }, commandTimeoutMs: 300 });
  const module = libraries[build].RedisLockModule.forRoot({ store });
  const app = await NestFactory.createApplicationContext(module, { logger: false });
  const error = await failureOf(() => app.get(esm.LockService).acquire('account:7'));
  await app.close();
  return kindsOf(error);
};

/** The module of the ESM build, without a name, and that of the CommonJS build, with the given one. */
const withBothModules = (name?: string) => {
  class Both {}
  Module({ imports: [moduleOf('esm'), moduleOf('cjs', name)] })(Both);
  return NestFactory.createApplicationContext(Both, { logger: false, abortOnError: false });
};

const named = async () => {
  const app = await withBothModules('billing');
  const services = [app.get(esm.LockService), app.get(esm.getLockServiceToken('billing'))];
  await app.close();
  return new Set(services).size;
};

const madeByHand = async () => {
  const locks = createTestingLocks();
  const billing = bindLocks(new BillingService(locks), locks);
  await Promise.all([billing.charge('7'), billing.charge('7')]);
  return billing.meter.most;
};

/** What a build throws for a lease of the ESM build, in a database that has a later fence. */
const fencedBy = async (build: Build): Promise<Record<Build, readonly string[]>> => {
  const lease = await createTestingLocks().acquire('order');
  const fence = () => libraries[build].fenceTransaction(() => [], lease, { dialect: 'postgres' });
  return kindsOf(await failureOf(fence));
};

console.log(
  JSON.stringify({
    exported: exported(),
    folders: { esm: folderOf('esm'), cjs: folderOf('cjs') },
    apps: { esm: await inApp('esm'), cjs: await inApp('cjs') },
    outside: {
      esm: kindsOf(await failureOf(() => esm.currentLease())),
      cjs: kindsOf(await failureOf(() => cjs.currentLease())),
    },
    foreignStore: {
      esm: await withForeignStore('esm', 'cjs'),
      cjs: await withForeignStore('cjs', 'esm'),
    },
    fenced: { esm: await fencedBy('esm'), cjs: await fencedBy('cjs') },
    named: await named(),
    twiceUnnamed: kindsOf(await failureOf(() => withBothModules())),
    madeByHand: await madeByHand(),
  }),
);
