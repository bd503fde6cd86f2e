import 'reflect-metadata';
import type { Server } from 'node:http';
import type * as common from '@nestjs/common';
import type { INestApplication, Type } from '@nestjs/common';
import * as core from '@nestjs/core';
import { Test } from '@nestjs/testing';
import * as lib from 'nest-redis-lock';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import type { LockStore } from 'nest-redis-lock/store';
import * as libTesting from 'nest-redis-lock/testing';
import * as promClient from 'prom-client';
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { RecordingLogger } from '../support/nest/recording-logger.js';
import { freePort } from '../support/loopback.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { examplesOf, run } from './examples.js';
import { onServer, packagesOf } from './recipes.js';
import { codeBlocks } from '../support/markdown.js';
import { examplesOnPages, page } from './pages.js';
import { writtenTests } from './runner.js';
import * as world from './world.js';

interface Shop {
  order(dto: world.OrderDto): Promise<void>;
  nightlyReport(): Promise<void>;
}

interface Desk {
  restock(sku: string, pieces: number): Promise<number>;
  rebuildIndex(): Promise<string>;
}

interface Orders {
  place(userId: string): Promise<string>;
}

interface Transfers {
  transfer(from: string, to: string, cents: number): Promise<void>;
}

interface Reports {
  ofMonth(month: string): Promise<void>;
  ofToday(): Promise<void>;
  ofYear(): Promise<string>;
}

const INSTALLATION = 'docs/guide/installation.md';

describe('the examples of the documentation', () => {
  let redis: RedisServer;
  let app: INestApplication;
  /** What the examples of each page declare. */
  const declaredOn = new Map<string, Record<string, unknown>>();
  const opened: { close(): Promise<unknown> }[] = [];

  /** What `main.ts` makes is caught, and closed by the test. */
  const NestFactory = {
    create: async (module: Type) => (app = await core.NestFactory.create(module, { logger: false })),
  };

  const modules: Record<string, unknown> = {};

  beforeAll(async () => {
    redis = await RedisServer.start();
    const examples = examplesOf(examplesOnPages());
    Object.assign(modules, await packagesOf(examples.map(({ source }) => source)));
    modules['@nestjs/core'] = { ...core, NestFactory };
    for (const { page: path, fileName, source } of examples) {
      const exports = await run(onServer(source, redis), modules);
      modules[`./${fileName.replace(/\.ts$/, '.js')}`] = exports;
      declaredOn.set(path, { ...declaredOn.get(path), ...exports });
    }
  });

  afterAll(async () => {
    await app.close();
    await redis.stop();
  });

  beforeEach(() => {
    world.calls.length = 0;
    world.during.clear();
  });

  afterEach(async () => {
    while (opened.length > 0) await opened.pop()!.close();
  });

  /** What the examples of a page declare under a name. */
  const onPage = <T>(path: string, name: string): T => {
    const exports = declaredOn.get(path) ?? {};
    if (!(name in exports)) throw new Error(`${path} declares no ${name}`);
    return exports[name] as T;
  };

  const instance = async <T>(provider: Type<T>, imports?: common.DynamicModule[]) => {
    const module = await Test.createTestingModule({
      imports: imports ?? [RedisLockModule.forRoot({ redis: redis.url })],
      providers: [provider, world.StockRepository, world.PaymentClient],
    })
      .setLogger(new RecordingLogger())
      .compile();
    await module.init();
    opened.push(module);
    return { service: module.get(provider), locks: module.get(LockService) };
  };
  const shopInstance = () => instance(onPage<Type<Shop>>('README.md', 'ShopService'));
  const deskInstance = () => instance(onPage<Type<Desk>>('docs/guide/lock-service.md', 'StockDesk'));
  const names = () => world.calls.map(({ name }) => name);

  it('the quick start is a module that starts, and locks what it says', async () => {
    const [first = ''] = codeBlocks(page('README.md'), 'ts');
    expect(first).toContain('class OrderController');
    expect(first.trim().split('\n').length).toBeLessThanOrEqual(15);
    const module = await Test.createTestingModule({ imports: [onPage<Type>('README.md', 'AppModule')] })
      .setLogger(new RecordingLogger())
      .compile();
    opened.push(await module.init());
    const keys: string[] = [];
    module.get(LockService).on('acquired', ({ key }) => keys.push(key));
    const orders = module.get<Orders>(onPage<Type<Orders>>('README.md', 'OrderController'));
    await orders.place('7');
    expect(keys).toEqual(['order:7']);
  });

  it('main.ts awaits nothing outside of a function, which CommonJS apps cannot', () => {
    const [main = ''] = codeBlocks(page(INSTALLATION), 'ts');
    expect(main).toContain('// main.ts');
    expect(main).not.toMatch(/^\S.*\bawait\b/m);
  });

  it('main.ts starts on a real Redis', async () => {
    await expect(app.get(LockService).ping()).resolves.toBeUndefined();
    expect(await app.getUrl()).toMatch(/^http:/);
  });

  it('main.ts fails fast while Redis cannot be reached, and does not listen', async () => {
    const main = examplesOf(examplesOnPages()).find(({ page: path }) => path === INSTALLATION)!;
    const started = app;
    try {
      const elsewhere = main.source.replace('localhost:6379', `127.0.0.1:${await freePort()}`);
      await expect(run(onServer(elsewhere, redis), modules)).rejects.toMatchObject({
        code: 'LOCK_STORE_FAILED',
      });
      expect(app).not.toBe(started);
      expect((app.getHttpServer() as Server).listening).toBe(false);
      await app.close();
    } finally {
      app = started;
    }
  });

  it('order() holds the lock, and hands the token to the database and the signal to the payment', async () => {
    const { service, locks } = await shopInstance();
    let during: boolean | undefined;
    world.during.set('charge', async () => (during = await locks.isLocked('sku:tea')));
    await service.order({ sku: 'tea', pieces: 1 });
    expect(during).toBe(true);
    expect(names()).toEqual(['reserve', 'charge']);
    expect(world.calls[0]!.args[1]).toBeGreaterThan(1_600_000_000_000_000);
    expect((world.calls[1]!.args[1] as { signal: unknown }).signal).toBeInstanceOf(AbortSignal);
    expect(await locks.isLocked('sku:tea')).toBe(false);
  });

  it('restock() takes by hand the lock that order() takes, with a greater token', async () => {
    const { service, locks } = await deskInstance();
    const lease = await locks.acquire(lib.lockKey('sku:<<dto.sku>>', { dto: { sku: 'a:b' } }));
    await expect(service.restock('a:b', 2)).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    await lease.release();
    expect(await service.restock('a:b', 2)).toBe(2);
    expect(world.calls[0]!.args[2]).toBeGreaterThan(lease.fencingToken);
  });

  it('transfer() holds both locks until the commit', async () => {
    const transfers = onPage<Type<Transfers>>('docs/guide/transactions.md', 'TransferService');
    const { service, locks } = await instance(transfers);
    const held: boolean[] = [];
    world.during.set('commit', async () => {
      held.push(await locks.isLocked('account:b'), await locks.isLocked('account:a'));
    });
    await service.transfer('b', 'a', 100);
    expect(names()).toEqual(['begin', 'bookTransfer', 'commit']);
    expect(held).toEqual([true, true]);
  });

  it('nightlyReport() runs on one replica, also when the other one comes after its end', async () => {
    const [first, second] = [await shopInstance(), await shopInstance()];
    await Promise.all([first.service.nightlyReport(), second.service.nightlyReport()]);
    await second.service.nightlyReport();
    expect(names()).toEqual(['report']);
    expect(await first.locks.inspect('nightly-report')).toMatchObject({ holders: [{ count: 1 }] });
  });

  it('measureLocks() measures waits and holds with few labels', async () => {
    const registry = new promClient.Registry();
    type Measure = (registry: promClient.Registry) => void;
    onPage<Measure>('docs/operations/telemetry.md', 'measureLocks')(registry);
    const { service } = await shopInstance();
    await service.order({ sku: 'tea', pieces: 1 });
    const measured = await registry.metrics();
    const labels = 'redis_lock_label="sku:<<dto.sku>>",redis_lock_kind="exclusive"';
    expect(measured).toContain(
      `redis_lock_wait_time_seconds_count{${labels},redis_lock_outcome="acquired"} 1`,
    );
    expect(measured).toContain(
      `redis_lock_hold_time_seconds_count{${labels},redis_lock_outcome="released"} 1`,
    );
    expect(measured).not.toContain('tea');
  });

  it('rebuild() of the page without Nest runs once at a time, and leaves no lock', async () => {
    const rebuild = onPage<() => Promise<string>>('docs/guide/without-nest.md', 'rebuild');
    let elsewhere = '';
    world.during.set('rebuildIndex', async () => (elsewhere = await rebuild()));
    expect([await rebuild(), elsewhere]).toEqual(['done', 'running elsewhere']);
    world.during.clear();
    expect(await rebuild()).toBe('done');
  });

  it('rebuildIndex() does not wait for the one that is running', async () => {
    const [first, second] = [await deskInstance(), await deskInstance()];
    let elsewhere: string | undefined;
    world.during.set('rebuildIndex', async () => (elsewhere = await second.service.rebuildIndex()));
    expect(await first.service.rebuildIndex()).toBe('done');
    expect(elsewhere).toBe('running elsewhere');
    world.during.clear();
    expect(await second.service.rebuildIndex()).toBe('done');
  });

  describe('on the page about testing', () => {
    const TITLES = [
      ...['orders one piece', 'orders one piece without a module'],
      ...['takes no order while another process sells tea', 'takes no order while Redis is away'],
      ...['watches prices while it leads', 'starts without Redis'],
    ];

    it.each([
      ['pass', ''],
      // Jest 29 makes its own global objects. Their Symbol lacks the members that Node adds.
      ['pass under Jest 29 on Node 20', 'const Symbol = { for: globalThis.Symbol.for };\n'],
    ])('the tests %s', async (_title, globals) => {
      writtenTests.clear();
      const declared = { ...modules };
      for (const { fileName, source } of examplesOf(examplesOnPages())) {
        if (!fileName.startsWith('guide-testing-')) continue;
        declared[`./${fileName.replace(/\.ts$/, '.js')}`] = await run(globals + source, declared);
      }
      expect([...writtenTests.keys()]).toEqual(TITLES);
      for (const test of writtenTests.values()) await test();
    });
  });

  it('the key examples lock what they say', async () => {
    const tenants = libTesting.RedisLockTestingModule.forRoot({ context: () => ({ tenant: 'acme' }) });
    type Methods = Record<string, (...args: unknown[]) => Promise<void>>;
    const { service, locks } = await instance(onPage<Type<Methods>>('docs/guide/keys.md', 'KeyExamples'), [
      tenants,
    ]);
    const keys: string[] = [];
    locks.on('acquired', ({ key }) => keys.push(key));
    await service['byName']!('a:b');
    await service['byPath']!({ owner: { id: 7 } }, 'eu');
    await service['several']!('z', 'a');
    await service['byFunction']!('z', 'a');
    await service['byContext']!();
    await service['byRequest']!({ user: { id: 9 } });
    await service['byLiteral']!();
    expect(keys).toEqual([
      ...['order:a%3Ab', 'cart:7:eu', 'account:a', 'account:z', 'account:a', 'account:z'],
      ...['tenant:acme:report', 'profile:9', 'nightly-report'],
    ]);
  });

  it('the examples of a base class and of a mixin have a lock for each class', async () => {
    type Job = Record<'run' | 'sync', (day?: string) => Promise<void>>;
    const run = async (name: string, method: 'run' | 'sync'): Promise<void> => {
      const { service, locks } = await instance(onPage<Type<Job>>('docs/guide/keys.md', name), [
        libTesting.RedisLockTestingModule.forRoot(),
      ]);
      locks.on('acquired', ({ key }) => keys.push(key));
      await service[method]('monday');
    };
    const keys: string[] = [];
    await run('InvoicesJob', 'run');
    await run('ReportsJob', 'run');
    await run('OrdersSync', 'sync');
    await run('UsersSync', 'sync');
    expect(keys).toEqual(['job:invoices:monday', 'job:reports:monday', 'sync:orders', 'sync:users']);
  });

  it('the examples of defaults lock what they say', async () => {
    type Methods = Record<string, (...args: unknown[]) => Promise<void>>;
    const { service, locks } = await instance(
      onPage<Type<Methods>>('docs/guide/keys.md', 'DefaultExamples'),
      [libTesting.RedisLockTestingModule.forRoot()],
    );
    const keys: string[] = [];
    locks.on('acquired', ({ key }) => keys.push(key));
    await service['report']!();
    await service['report']!('acme');
    await service['byPath']!();
    expect(keys).toEqual(['report:all', 'report:acme', 'cart:none:none']);
  });

  it('a named module locks in its own Redis', async () => {
    type Billing = { send(id: string): Promise<boolean> };
    const module = await Test.createTestingModule({
      imports: [onPage<Type>('docs/guide/several-modules.md', 'TwoDatabasesModule')],
    })
      .setLogger(new RecordingLogger())
      .compile();
    opened.push(await module.init());
    const unnamed: boolean[] = [];
    module
      .get<LockService>(lib.getLockServiceToken('billing'))
      .on('acquired', ({ key }) => unnamed.push(key === 'invoice:1'));
    expect(
      await module
        .get<Billing>(onPage<Type<Billing>>('docs/guide/several-modules.md', 'BillingService'))
        .send('1'),
    ).toBe(true);
    expect(unnamed).toEqual([true]);
    expect(await module.get(LockService).isLocked('invoice:1')).toBe(false);
  });

  it('the health check answers while Redis does', async () => {
    type Health = Type<{ check(): Promise<string> }>;
    const { service } = await instance(
      onPage<Health>('docs/operations/troubleshooting.md', 'HealthController'),
    );
    expect(await service.check()).toBe('ok');
  });

  it('render() fails open: it works without the lock while the store is away, and not while the lock is taken', async () => {
    type Thumbnails = Type<{ render(sku: string): Promise<void> }>;
    const type = onPage<Thumbnails>('docs/guide/errors.md', 'Thumbnails');
    const { service, locks } = await instance(type);
    await using _lease = await locks.acquire('thumbnail:tea');
    await expect(service.render('tea')).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    expect(names()).toEqual([]);
    const redis = `redis://127.0.0.1:${await freePort()}`;
    const away = await instance(type, [RedisLockModule.forRoot({ redis })]);
    await away.service.render('tea');
    expect(names()).toEqual(['report']);
  });

  it('render() does not repeat work that has begun and fails as a store does', async () => {
    type Thumbnails = Type<{ render(sku: string): Promise<void> }>;
    const { service } = await instance(onPage<Thumbnails>('docs/guide/errors.md', 'Thumbnails'));
    world.during.set('report', () => Promise.reject(new lib.LockStoreError('inner', 'not-executed')));
    await expect(service.render('tea')).rejects.toThrow('inner');
    expect(names()).toEqual(['report']);
  });

  it('the exclusive lock is taken around a method, around a function, and until the end of a block', async () => {
    const { service, locks } = await instance(onPage<Type<Reports>>('docs/locks/exclusive.md', 'Reports'));
    const keys: string[] = [];
    locks.on('acquired', ({ key }) => keys.push(key));
    await service.ofMonth('2026-11');
    await service.ofToday();
    expect(await service.ofYear()).toBe('done');
    expect(keys).toEqual(['report:2026-11', 'report:today', 'report:year']);
    expect(locks.held()).toEqual([]);
  });

  it('two memory stores with one space exclude each other', async () => {
    const [here, there] = ['here', 'there'].map((name) => onPage<LockStore>('docs/stores/memory.md', name));
    const servicesOn = await Promise.all(
      [here!, there!].map(async (store) => {
        const module = await Test.createTestingModule({ imports: [RedisLockModule.forRoot({ store })] })
          .setLogger(new RecordingLogger())
          .compile();
        opened.push(await module.init());
        return module.get(LockService);
      }),
    );
    const [one, other] = servicesOn as [LockService, LockService];
    await using _lease = await one.acquire('order');
    expect(await other.tryAcquire('order')).toBeNull();
  });

  it("a module is made with a store of one's own", async () => {
    type OnStore = (store: LockStore) => common.DynamicModule;
    const onStore = onPage<OnStore>('docs/stores/writing-a-store.md', 'onStore');
    const store = new libTesting.MemoryStore();
    const module = await Test.createTestingModule({ imports: [onStore(store)] })
      .setLogger(new RecordingLogger())
      .compile();
    opened.push(await module.init());
    await using _lease = await module.get(LockService).acquire('order');
    expect(store.space.inspect('shop:order')).not.toBeNull();
  });
});
