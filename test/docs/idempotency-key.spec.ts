import 'reflect-metadata';
import type { Provider, Type } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Redis } from 'ioredis';
import { LockService, RedisLockModule, type RedisLockModuleOptions } from 'nest-redis-lock';
import { PostgresStore } from 'nest-redis-lock/postgres';
import { DataSource } from 'typeorm';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { deferred, until } from '../support/async.js';
import { codeBlocks } from '../support/markdown.js';
import { RecordingLogger } from '../support/nest/recording-logger.js';
import { PostgresServer } from '../support/servers/postgres-server.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { page } from './pages.js';
import { runPage } from './recipes.js';
import * as world from './world.js';

const PAGE = 'docs/recipes/idempotency-key.md';

interface Reply {
  readonly status: number;
  readonly body: unknown;
}

interface Replica {
  readonly locks: LockService;
  /** Sends a request of the user 7. */
  post(path: string, key: string | undefined, body: unknown, user?: string): Promise<Reply>;
}

interface AnyRequest {
  headers: Record<string, string | undefined>;
  user?: { id: string | undefined };
}

const opened: (() => Promise<unknown>)[] = [];

beforeEach(() => {
  world.calls.length = 0;
  world.during.clear();
});
afterEach(async () => {
  while (opened.length > 0) await opened.pop()!();
});

/** Starts an app with one controller of the page. Its guard takes the user from a header. */
const startReplica = async (
  controller: Type,
  options: RedisLockModuleOptions,
  ...providers: readonly Provider[]
): Promise<Replica> => {
  const module = await Test.createTestingModule({
    imports: [RedisLockModule.forRoot(options)],
    controllers: [controller],
    providers: [world.PaymentClient, ...providers],
  })
    .setLogger(new RecordingLogger())
    .compile();
  const app = module.createNestApplication();
  app.use((request: AnyRequest, _response: unknown, next: () => void) => {
    request.user = { id: request.headers['x-user'] };
    next();
  });
  await app.listen(0, '127.0.0.1');
  opened.push(() => app.close());
  const url = await app.getUrl();
  const post: Replica['post'] = async (path, key, body, user = '7') => {
    const headers = { 'content-type': 'application/json', 'x-user': user };
    const response = await fetch(`${url}/${path}`, {
      method: 'POST',
      headers: key === undefined ? headers : { ...headers, 'idempotency-key': key },
      body: JSON.stringify(body),
    });
    return { status: response.status, body: await response.json() };
  };
  return { locks: module.get(LockService), post };
};

/** A request, repeated at another replica while the first one works, and after it. All get one reply. */
const repeat = async (
  [first, second]: readonly [Replica, Replica],
  path: string,
  body: unknown,
  works: () => Promise<unknown>,
  finish: () => unknown,
): Promise<Reply> => {
  const one = first.post(path, 'k-1', body);
  await works();
  const during = second.post(path, 'k-1', body);
  await until(() => second.locks.usage.leases === 1, { what: 'the repeated request waits' });
  await finish();
  const reply = await one;
  expect(reply.status).toBe(201);
  expect(await during).toEqual(reply);
  expect(await second.post(path, 'k-1', body)).toEqual(reply);
  return reply;
};

/** What both recipes do with a key that is missing, is used for another request, or belongs to another user. */
const misuse = async ({ post }: Replica, path: string, body: object): Promise<Reply> => {
  expect(await post(path, undefined, body)).toMatchObject({
    status: 400,
    body: { code: 'LOCK_KEY_INVALID' },
  });
  expect((await post(path, 'k-1', { ...body, more: true })).status).toBe(422);
  return post(path, 'k-1', body, '8');
};

describe('a request with an Idempotency-Key', () => {
  it('places one order in PostgreSQL, however often it is sent', async () => {
    const server = await PostgresServer.start();
    opened.push(() => server.stop());
    const source = await new DataSource({ type: 'postgres', url: server.uri }).initialize();
    opened.push(() => source.destroy());
    await source.query(codeBlocks(page(PAGE), 'sql').join('\n'));
    await source.query('CREATE TABLE orders (id SERIAL PRIMARY KEY, sku TEXT, pieces INTEGER)');
    const { OrderByKeyController } = await runPage(PAGE, { host: '127.0.0.1', port: 1 });
    const replica = () =>
      startReplica(
        OrderByKeyController as Type,
        { store: new PostgresStore({ connectionString: server.uri, migrate: 'on start' }) },
        { provide: DataSource, useValue: source },
      );
    const replicas = [await replica(), await replica()] as const;
    // The first request inserts its order when this transaction ends.
    const blocker = source.createQueryRunner();
    await blocker.startTransaction();
    await blocker.query('LOCK TABLE orders IN SHARE MODE');
    const blocked = () =>
      until(
        async () => (await source.query<unknown[]>('SELECT 1 FROM pg_locks WHERE NOT granted')).length > 0,
        { what: 'the first request inserts its order' },
      );
    const tea = { sku: 'tea', pieces: 2 };
    const finish = async () => {
      await blocker.commitTransaction();
      await blocker.release();
    };
    const reply = await repeat(replicas, 'orders', tea, blocked, finish);
    expect(reply.body).toEqual({ orderId: 1 });
    expect((await misuse(replicas[1], 'orders', tea)).body).toEqual({ orderId: 2 });
    expect(await source.query('SELECT sku, pieces FROM orders')).toEqual([tea, tea]);
  });

  it('pays once, with its reply in Redis, however often it is sent', async () => {
    const server = await RedisServer.start();
    opened.push(() => server.stop());
    const redis = new Redis(server.clientOptions());
    opened.push(() => redis.quit());
    const { PaymentByKeyController } = await runPage(PAGE, server);
    const replica = () =>
      startReplica(
        PaymentByKeyController as Type,
        { redis: server.url },
        { provide: 'REDIS', useValue: redis },
      );
    const replicas = [await replica(), await replica()] as const;
    const paid = deferred();
    world.during.set('charge', () => paid.promise);
    const works = () => until(() => world.calls.length === 1, { what: 'the first request pays' });
    const reply = await repeat(replicas, 'payments', { id: 'o-1' }, works, () => paid.resolve());
    expect(reply.body).toEqual({ paid: 'o-1' });
    expect((await misuse(replicas[1], 'payments', { id: 'o-1' })).status).toBe(201);
    const keys = world.calls.map(({ args }) => (args[1] as { idempotencyKey: string }).idempotencyKey);
    expect(keys).toEqual(['pay-once:7:k-1', 'pay-once:8:k-1']);
  });
});
