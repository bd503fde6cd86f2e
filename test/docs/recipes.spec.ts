import 'reflect-metadata';
import type { Type } from '@nestjs/common';
import { ScheduleModule } from '@nestjs/schedule';
import { Test } from '@nestjs/testing';
import { createLockService, currentLease, LockService, RedisLockModule } from 'nest-redis-lock';
import { FENCING_MIGRATIONS, fenceTransaction } from 'nest-redis-lock/fencing';
import { DataSource, type MigrationInterface, type QueryRunner } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { until, within } from '../support/async.js';
import { codeBlocks } from '../support/markdown.js';
import { RecordingLogger } from '../support/nest/recording-logger.js';
import { BOOT_MS, useLab } from '../support/redis/lab.js';
import { TestWorker } from '../support/worker.js';
import { page } from './pages.js';
import { runPage } from './recipes.js';
import type { FromRecipe, Recipe, ToRecipe } from './workers/recipe.worker.js';
import * as world from './world.js';

const WORKER = new URL('./workers/recipe.worker.ts', import.meta.url);
const JOBS = 'docs/recipes/scheduled-jobs.md';
const FENCE = 'docs/guide/two-holders-one-commit.md';
const DEPLOYMENT = 'docs/recipes/deployment.md';
/** What a process needs after its work to close connections and to end, in ms. */
const MARGIN_MS = 5_000;

const lab = useLab();
const opened: { close(): Promise<unknown> }[] = [];

beforeEach(() => {
  world.calls.length = 0;
  world.during.clear();
});
afterEach(async () => {
  while (opened.length > 0) await opened.pop()!.close();
});

const start = async (
  recipe: Recipe,
  options: { server?: { host: string; port: number }; how?: string } = {},
) => {
  const { host, port } = options.server ?? lab.server;
  const args = [recipe, JSON.stringify({ host, port }), ...(options.how ? [options.how] : [])];
  const worker = lab.track(TestWorker.start<ToRecipe, FromRecipe>(WORKER, { args }));
  await worker.next('ready', { timeoutMs: BOOT_MS });
  return worker;
};

const openService = async () => {
  const locks = await createLockService({ redis: lab.server.url });
  opened.push(locks);
  return locks;
};

describe('scheduled jobs', () => {
  it('run once for all replicas, started by real triggers', async () => {
    const { StockJobs } = await runPage(JOBS, lab.server, (source) =>
      source.replace('0 3 * * *', '* * * * * *'),
    );
    const events: string[] = [];
    for (const replica of ['one', 'two']) {
      const module = await Test.createTestingModule({
        imports: [ScheduleModule.forRoot(), RedisLockModule.forRoot({ redis: lab.server.url })],
        providers: [StockJobs as Type, world.StockRepository],
      })
        .setLogger(new RecordingLogger())
        .compile();
      opened.push(module);
      const locks = module.get(LockService);
      locks.on('acquired', () => events.push(`${replica} runs`));
      locks.on('busy', () => events.push(`${replica} skips`));
      await module.init();
    }
    const seen = (text: string) => events.filter((event) => event.endsWith(text)).length;
    await until(() => seen('one skips') + seen('two skips') >= 3, { what: 'three triggers are skipped' });
    expect(seen('runs')).toBe(1);
    expect(world.calls.map(({ name }) => name)).toEqual(['report']);
  });
});

describe('a job that succeeds once an hour', () => {
  it('runs again after an error, and not after a success', async () => {
    const { InvoiceJobs } = await runPage(JOBS, lab.server);
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ redis: lab.server.url })],
      providers: [InvoiceJobs as Type, world.StockRepository],
    })
      .setLogger(new RecordingLogger())
      .compile();
    opened.push(module);
    await module.init();
    const job = module.get<{ send(): Promise<void> }>(InvoiceJobs as Type);
    const stock = module.get(world.StockRepository);
    vi.spyOn(stock, 'report').mockRejectedValueOnce(new Error('no paper'));
    await expect(job.send()).rejects.toThrow('no paper');
    for (const _trigger of [1, 2, 3]) await job.send();
    expect(world.calls.map(({ name }) => name)).toEqual(['report']);
  });
});

describe('a job that is made at run time', () => {
  it('runs once for all replicas in its window', async () => {
    const { SavedJobs } = await runPage(JOBS, lab.server);
    const database = await new DataSource({ type: 'sqljs' }).initialize();
    await database.query('CREATE TABLE job (name TEXT, cron TEXT)');
    await database.query("INSERT INTO job VALUES ('prices', '* * * * * *')");
    const skips: string[] = [];
    for (const _replica of ['one', 'two']) {
      const module = await Test.createTestingModule({
        imports: [ScheduleModule.forRoot(), RedisLockModule.forRoot({ redis: lab.server.url })],
        providers: [SavedJobs as Type, world.StockRepository, { provide: DataSource, useValue: database }],
      })
        .setLogger(new RecordingLogger())
        .compile();
      opened.push(module);
      module.get(LockService).on('busy', ({ key }) => skips.push(key));
      await module.init();
    }
    await until(() => skips.length >= 2, { what: 'two triggers are skipped' });
    expect(new Set(skips)).toEqual(new Set(['job:prices']));
    expect(world.calls.map(({ name }) => name)).toEqual(['report']);
    await database.destroy();
  });
});

describe('a job with a row', () => {
  it('runs again after an error, and not after a success, on a store without windows', async () => {
    const { JobsWithRow } = await runPage(JOBS, lab.server);
    const database = await new DataSource({ type: 'sqljs' }).initialize();
    await database.query('CREATE TABLE job_run (job TEXT, day TEXT, PRIMARY KEY (job, day))');
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ redis: lab.server.url })],
      providers: [JobsWithRow as Type, world.StockRepository, { provide: DataSource, useValue: database }],
    })
      .setLogger(new RecordingLogger())
      .compile();
    opened.push(module);
    await module.init();
    const job = module.get<{ nightly(): Promise<void> }>(JobsWithRow as Type);
    vi.spyOn(module.get(world.StockRepository), 'report').mockRejectedValueOnce(new Error('no paper'));
    await expect(job.nightly()).rejects.toThrow('no paper');
    for (const _trigger of [1, 2, 3]) await job.nightly();
    expect(world.calls.map(({ name }) => name)).toEqual(['report']);
    await database.destroy();
  });
});

describe('the leader', () => {
  it(
    'is one process, and another one after SIGSTOP, SIGTERM and SIGKILL',
    { timeout: BOOT_MS * 3 },
    async () => {
      const workers = [await start('leader'), await start('leader')] as const;
      const leads = (worker: (typeof workers)[number], times: number) =>
        until(() => worker.all('leading').length === times, { what: `a process leads ${times} times` });
      const [first, second] = workers;
      await leads(first, 1);
      expect(second.all('leading')).toEqual([]);
      await first.kill('SIGSTOP');
      await leads(second, 1);
      await first.kill('SIGCONT');
      await first.next('stopped leading');
      expect(first.all('leading')).toHaveLength(1);
      await second.kill('SIGTERM');
      expect(second.all('stopped leading')).toHaveLength(1);
      await leads(first, 2);
      await first.kill('SIGKILL');
      await using lease = await (await openService()).acquire('leader:index', { waitMs: 10_000 });
      expect(lease.lost).toBe(false);
    },
  );
});

describe('migrations', () => {
  it('run once when two replicas start, and the second finds nothing to do', async () => {
    const { migrate } = (await runPage(JOBS, lab.server)) as {
      migrate: (locks: LockService, database: DataSource) => Promise<void>;
    };
    let ran = 0;
    let running = 0;
    class CreateStock1700000000000 implements MigrationInterface {
      async up(queryRunner: QueryRunner): Promise<void> {
        ran += 1;
        running += 1;
        expect(running).toBe(1);
        await queryRunner.query('CREATE TABLE stock (sku TEXT PRIMARY KEY, reserved INTEGER NOT NULL)');
        running -= 1;
      }
      async down(): Promise<void> {}
    }
    const database = await new DataSource({
      type: 'sqljs',
      migrations: [CreateStock1700000000000],
    }).initialize();
    const replicas = [await openService(), await openService()];
    await Promise.all(replicas.map((locks) => migrate(locks, database)));
    expect(ran).toBe(1);
    await database.destroy();
  });
});

describe('the table of the fence', () => {
  it('is created by a migration, and the fence works with it', async () => {
    const { LockFence1700000000000 } = await runPage(FENCE, lab.server);
    const migrations = [LockFence1700000000000 as new () => MigrationInterface];
    const database = await new DataSource({ type: 'sqljs', migrations }).initialize();
    await database.runMigrations();
    await using lease = await (await openService()).acquire('stock:tea');
    const fence = () => database.transaction((tx) => fenceTransaction(tx, lease));
    await fence();
    await database.query('UPDATE lock_fence SET fence = fence + 1000000000');
    await expect(fence()).rejects.toMatchObject({ code: 'LOCK_LOST', reason: 'fenced' });
    await database.undoLastMigration();
    await expect(fence()).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    await database.destroy();
  });
});

describe('Prisma', () => {
  it('a later holder passes, and an earlier one is rolled back', async () => {
    const { ReservationService } = await runPage('docs/recipes/databases.md', lab.server);
    const database = await new DataSource({ type: 'sqljs' }).initialize();
    await database.query(FENCING_MIGRATIONS.sqlite);
    await database.query('CREATE TABLE stock (sku TEXT PRIMARY KEY, reserved INTEGER NOT NULL)');
    await database.query("INSERT INTO stock VALUES ('tea', 0)");
    const prisma = new world.PrismaService();
    prisma.begin = (work) =>
      database.transaction((manager) => {
        const query = (sql: string, ...parameters: unknown[]) => manager.query(sql, parameters);
        return work({ _activeProvider: 'sqlite', $queryRawUnsafe: query, $executeRawUnsafe: query } as never);
      });
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ redis: lab.server.url })],
      providers: [ReservationService as Type, { provide: world.PrismaService, useValue: prisma }],
    })
      .setLogger(new RecordingLogger())
      .compile();
    opened.push(await module.init());
    type Reservations = { reserve(sku: string, pieces: number): Promise<void> };
    const reservations = module.get<Reservations>(ReservationService as Type<Reservations>);
    const reserved = async () =>
      (await database.query<{ reserved: number }[]>('SELECT reserved FROM stock'))[0];
    await reservations.reserve('tea', 2);
    expect(await reserved()).toEqual({ reserved: 2 });
    await database.query('UPDATE lock_fence SET fence = fence + 1000000000');
    await expect(reservations.reserve('tea', 3)).rejects.toMatchObject({
      code: 'LOCK_LOST',
      reason: 'fenced',
    });
    expect(await reserved()).toEqual({ reserved: 2 });
    await database.destroy();
  });
});

describe('tenants', () => {
  it('have locks of their own, and a request without a tenant gets none', async () => {
    const { TenantsModule } = await runPage('docs/recipes/tenants.md', lab.server);
    const module = await Test.createTestingModule({ imports: [TenantsModule as Type] })
      .setLogger(new RecordingLogger())
      .compile();
    const app = module.createNestApplication();
    await app.listen(0, '127.0.0.1');
    opened.push(app);
    const url = await app.getUrl();
    const bothInside = { acme: false, other: false };
    // Each of the two works until the other one is inside its lock, too.
    world.during.set('report', () => {
      const { key } = currentLease();
      bothInside[key.split(':')[1] as 'acme' | 'other'] = true;
      return until(() => bothInside.acme && bothInside.other);
    });
    const get = async (tenant?: string) => {
      const response = await fetch(`${url}/stock/tea`, { headers: tenant ? { 'x-tenant': tenant } : {} });
      return [response.status, await response.text()];
    };
    expect(await Promise.all([get('acme'), get('other')])).toEqual([
      [200, 'stock:acme:tea'],
      [200, 'stock:other:tea'],
    ]);
    expect((await get())[0]).toBe(500);
    expect(world.calls).toHaveLength(2);
  });
});

describe('deployment', { timeout: BOOT_MS * 2 }, () => {
  it('gives Kubernetes more time than preStop, the sections and the end of the process need', () => {
    const [yaml = ''] = codeBlocks(page(DEPLOYMENT), 'yaml');
    const seconds = (name: string): number => Number(new RegExp(`^ *${name}: (\\d+)`, 'm').exec(yaml)?.[1]);
    const graceMs = Number(/shutdownGraceMs: ([\d_]+)/.exec(page(DEPLOYMENT))?.[1]!.replaceAll('_', ''));
    const neededMs = seconds('seconds') * 1_000 + graceMs + MARGIN_MS;
    expect(neededMs).toBeGreaterThan(MARGIN_MS);
    expect(seconds('terminationGracePeriodSeconds') * 1_000).toBeGreaterThan(neededMs);
  });

  it('a section that runs at SIGTERM goes on, and releases its lock before the process ends', async () => {
    const worker = await start('deployment');
    await worker.next('working');
    const ended = worker.kill('SIGTERM');
    expect(await lab.hold('deployed')).not.toBeNull();
    worker.send({ type: 'finish' });
    expect(await worker.next('worked')).toMatchObject({ lost: false });
    await within(10_000, ended);
    expect(await lab.hold('deployed')).toBeNull();
  });
});

describe('Lambda', { timeout: BOOT_MS * 2 }, () => {
  it('a call after a freeze succeeds, although the connection died meanwhile', async () => {
    const proxy = await lab.proxy();
    const worker = await start('lambda', { server: proxy });
    worker.send({ type: 'invoke', sku: 'tea' });
    expect((await worker.next('invoked')).result).toBe('tea reported');
    await worker.kill('SIGSTOP');
    for (const connection of proxy.connections) connection.cut();
    await worker.kill('SIGCONT');
    worker.send({ type: 'invoke', sku: 'tea' });
    expect((await worker.next('invoked')).result).toBe('tea reported');
  });

  it('a lock that is held during a freeze expires, so that others get it', async () => {
    const worker = await start('lambda', { how: 'slow' });
    worker.send({ type: 'invoke', sku: 'tea' });
    await worker.next('working');
    await worker.kill('SIGSTOP');
    const elsewhere = await openService();
    const lease = await elsewhere.acquire('stock:tea', { waitMs: 10_000 });
    await worker.kill('SIGCONT');
    worker.send({ type: 'finish' });
    await worker.next('invoked');
    expect(await lease.verify()).toBe(true);
    await lease.release();
  });
});
