import { inspect } from 'node:util';
import { Test } from '@nestjs/testing';
import { Cluster, Redis } from 'ioredis';
import * as main from 'nest-redis-lock';
import * as fencing from 'nest-redis-lock/fencing';
import * as mysql from 'nest-redis-lock/mysql';
import * as opentelemetry from 'nest-redis-lock/opentelemetry';
import * as postgres from 'nest-redis-lock/postgres';
import * as redis from 'nest-redis-lock/redis';
import * as storeSeam from 'nest-redis-lock/store';
import * as testing from 'nest-redis-lock/testing';
import * as zookeeper from 'nest-redis-lock/zookeeper';
import { describe, expect, it } from 'vitest';
import type { LockStore } from '../../lib/core/seam/lock-store.js';
import { until } from '../support/async.js';
import { MysqlLab } from '../support/mysql/mysql-lab.js';
import { PostgresLab } from '../support/postgres/postgres-lab.js';
import { Lab } from '../support/redis/lab.js';
import { RedisSentinels } from '../support/servers/redis-sentinels.js';
import { openLocksOn } from '../support/stores/open-locks-on.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';
import { ZooKeeperLab } from '../support/zookeeper/zookeeper-lab.js';
import { expectHidden, expectNotPrinted } from './support/hidden.js';

failOnUnhandledRejections();

const { createLockService, LockService, RedisLockModule, withLocks } = main;
const { QuorumStore, RedisStore } = redis;
const { MysqlStore } = mysql;
const { PostgresStore } = postgres;
const { ZooKeeperStore } = zookeeper;
const { LossReport, MemoryStore, RedisLockTestingModule, createTestingLocks } = testing;
const { StoreFailure, StoreHosts, StoreQueueEntry } = storeSeam;
const { RedisLockInstrumentation } = opentelemetry;

const PASSWORD = 'S3cretPw';
const OTHER = 'S3cretOther';
const PASSWORDS = /S3cret/;
const KEY = 'user:anna@example.org';
const KEYS = /anna@/;
const redactKey = (): string => 'user:*';

describe('a text with a secret in it is found', () => {
  it.each<[string, unknown]>([
    ['a hidden property', Object.defineProperty({}, 'url', { value: PASSWORD })],
    ['the name of a property', { [PASSWORD]: 1 }],
    ['a property of a symbol', { [Symbol('url')]: { of: PASSWORD } }],
    ['a function', Object.assign(() => undefined, { url: [PASSWORD] })],
    ['a map', new Map([[{ key: { of: PASSWORD } }, 1]])],
    ['a map of weak references', new WeakMap([[inspect, PASSWORD]])],
    ['a promise', Promise.resolve({ of: PASSWORD })],
    ['what an object says of itself', { [inspect.custom]: () => PASSWORD }],
    ['what an object says as JSON', { toJSON: () => PASSWORD }],
  ])('in %s', (_what, value) => {
    expect(() => expectHidden({ deep: [{ down: value }] }, PASSWORDS, 'it')).toThrow('a secret');
  });
});

const commandTimeoutMs = 300;
const dead = { host: '127.0.0.1', port: 1, password: PASSWORD };
const sentinels = {
  ...{ sentinels: [{ host: '127.0.0.1', port: 1 }], name: 'locks', password: PASSWORD },
  ...{ sentinelPassword: OTHER, sentinelRetryStrategy: () => 10 },
};

/** Each kind of store, with a password, on a server that cannot be reached. */
const STORES: Readonly<Record<string, () => LockStore>> = {
  'Redis by URL': () => new RedisStore({ redis: `redis://:${PASSWORD}@127.0.0.1:1`, commandTimeoutMs }),
  'Redis by options': () => new RedisStore({ redis: dead, commandTimeoutMs }),
  'Redis by a client': () =>
    new RedisStore({ redis: new Redis({ ...dead, lazyConnect: true }), commandTimeoutMs }),
  'Redis by a function': () =>
    new RedisStore({
      redis: (_role, settings) => new Redis({ ...dead, ...settings }),
      commandTimeoutMs,
    }),
  'Redis behind Sentinel': () => new RedisStore({ redis: sentinels, commandTimeoutMs }),
  'Redis Cluster by options': () =>
    new RedisStore({ redis: { cluster: ['127.0.0.1:1'], password: PASSWORD }, commandTimeoutMs }),
  'Redis Cluster by a client': () =>
    new RedisStore({
      redis: new Cluster([{ host: '127.0.0.1', port: 1 }], {
        ...{ lazyConnect: true, redisOptions: { password: PASSWORD } },
      }),
      commandTimeoutMs,
    }),
  'a quorum': () =>
    new QuorumStore({
      nodes: [2, 1].map((port) => new RedisStore({ redis: { ...dead, port }, commandTimeoutMs })),
    }),
  'PostgreSQL by address': () =>
    new PostgresStore({
      connectionString: `postgres://app:${PASSWORD}@127.0.0.1:1/app`,
      listenUrl: `postgres://app:${OTHER}@127.0.0.1:1/app`,
    }),
  'PostgreSQL by settings': () =>
    new PostgresStore({ settings: { ...dead, user: 'app', ssl: { passphrase: OTHER } } }),
  'MySQL by address': () => new MysqlStore({ uri: `mysql://app:${PASSWORD}@127.0.0.1:1/app` }),
  'MySQL by options': () => new MysqlStore({ options: { ...dead, user: 'app' } }),
  ZooKeeper: () =>
    new ZooKeeperStore({
      ...{ connect: '127.0.0.1:1', auth: { digest: `app:${PASSWORD}` }, tls: { passphrase: OTHER } },
      commandTimeoutMs,
    }),
  memory: () => new MemoryStore(),
};

/** Classes whose instances were printed. */
const printed = new Set<unknown>();

const print = (value: object, secret: RegExp, what: string): void => {
  for (let at: unknown = value; at !== null; at = Object.getPrototypeOf(at))
    printed.add((at as { constructor: unknown }).constructor);
  expectNotPrinted(value, secret, what);
};

const rejected = (call: Promise<unknown>): Promise<Error> =>
  call.then(() => expect.fail('it did not fail'), (error: Error) => error); // prettier-ignore

describe('no password is in a print of', () => {
  it.each(Object.entries(STORES))('%s, nor in a property that can be reached from it', async (name, make) => {
    const store = make();
    print(store, PASSWORDS, 'the store');
    expectHidden(store, PASSWORDS, 'the store');
    expect(inspect(store)).toContain(store.place);
    await using opened = openLocksOn(store, { waitMs: 100 });
    const { locks } = opened;
    if (name === 'memory') await locks.acquire(KEY);
    else {
      const error = await rejected(locks.acquire(KEY));
      expect(error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
      print(error, PASSWORDS, 'the error');
      expectHidden(error, PASSWORDS, 'the error');
    }
    for (const one of [locks, store]) expectHidden(one, PASSWORDS, 'the used store or service');
    await store.close();
    for (const one of [locks, store]) expectHidden(one, PASSWORDS, 'the closed store or service');
  });

  it('a module, as Nest makes it', async () => {
    const app = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot({ redis: { ...dead, lazyConnect: true } })],
    }).compile();
    for (const type of [RedisLockModule, LockService, main.LockHealthIndicator]) {
      const instance = app.get<object>(type);
      print(instance, PASSWORDS, type.name);
    }
    await app.close();
  });
});

/** Connects a store of each server with a password of its own. */
const CONNECTED: Readonly<Record<string, () => Promise<{ open: () => LockStore; server: AsyncDisposable }>>> =
  {
    Redis: async () => {
      const server = await Lab.start({ users: [`app on >${PASSWORD} ~* &* +@all`] });
      const login = { username: 'app', password: PASSWORD };
      return {
        server,
        open: () => new RedisStore({ redis: { ...server.server.clientOptions(), ...login } }),
      };
    },
    'Redis behind Sentinel': async () => {
      const server = await RedisSentinels.start({ replicas: 0 });
      const login = { username: 'app', password: PASSWORD };
      for (const one of [...server.servers, ...server.sentinels])
        await one.cli('ACL', 'SETUSER', 'app', 'on', `>${PASSWORD}`, '~*', '&*', '+@all');
      const source = { ...server.options, ...login, sentinelUsername: 'app', sentinelPassword: PASSWORD };
      return { server, open: () => new RedisStore({ redis: source }) };
    },
    PostgreSQL: async () => {
      const server = await PostgresLab.start();
      await server.query(`ALTER USER app PASSWORD '${PASSWORD}'`);
      const address = new URL(server.server.uri);
      address.password = PASSWORD;
      return { server, open: () => new PostgresStore({ connectionString: address.href }) };
    },
    MySQL: async () => {
      const server = await MysqlLab.start();
      await server.query(`ALTER USER 'app'@'%' IDENTIFIED BY '${PASSWORD}'`);
      const address = new URL(server.server.uri);
      address.password = PASSWORD;
      return { server, open: () => new MysqlStore({ uri: address.href }) };
    },
    ZooKeeper: async () => {
      const server = await ZooKeeperLab.start();
      const options = { connect: server.connect, auth: { digest: `app:${PASSWORD}` } };
      return { server, open: () => new ZooKeeperStore(options) };
    },
  };

describe('nothing that is connected, and holds a key or waits for it, shows its password', () => {
  it.each(Object.entries(CONNECTED))('%s', { timeout: 60_000 }, async (_name, connect) => {
    const { open, server } = await connect();
    await using _server = server;
    const [holding, waiting] = [open(), open()];
    await using holder = openLocksOn(holding);
    await using waiter = openLocksOn(waiting, { waitMs: 60_000, slowWaitMs: 10 });
    const lease = await holder.locks.acquire(KEY);
    const isWaiting = new Promise((resolve) => void waiter.locks.on('waiting', resolve));
    const later = waiter.locks.acquire(KEY);
    await isWaiting;
    for (const one of [holding, waiting, holder.locks, waiter.locks, lease])
      expectHidden(one, PASSWORDS, 'it');
    await lease.release();
    await (await later).release();
  });
});

describe('with redactKey, no key is in a print of', () => {
  const expectNoKey = (value: object, what: string): void => print(value, KEYS, what);

  it('the service, its objects, leases and errors while a key is held and waited for', async () => {
    const store = new MemoryStore();
    const settings = { store, redactKey, waitMs: 0, shutdownGraceMs: 0 };
    await using locks = await createLockService(settings);
    await using others = await createLockService(settings);
    const lease = await locks.acquire(KEY);
    const abort = new AbortController();
    const waiting = locks.acquire(KEY, { waitMs: 60_000, signal: abort.signal });
    await until(() => locks.usage.leases === 2);
    const leaderships: main.Leadership[] = [];
    const candidate = locks.lead(`${KEY}/leader`, (leadership) => void leaderships.push(leadership));
    await until(() => leaderships.length > 0, { what: 'the process leads' });
    expectNoKey({ candidate, leaderships }, 'a leader');
    const permits = locks.permits(`${KEY}/p`, { permits: 1 });
    const semaphore = locks.semaphore(`${KEY}/s`);
    await semaphore.trySetPermits(1);
    const latch = locks.countDownLatch(`${KEY}/l`);
    for (const mode of ['fair', 'read', 'write'] as const)
      expectNoKey(await locks.acquire(`${KEY}/${mode}`, { mode }), mode);
    const parts = [
      { service: locks, key: `${KEY}/1` },
      { service: others, key: `${KEY}/2` },
    ];
    await withLocks(parts, (several) => expectNoKey(several, 'the lease of withLocks'));
    const permit = await permits.acquire();
    for (const one of [locks, store, store.space, lease, permits, permit, semaphore, latch])
      expectNoKey(one, one.constructor.name);
    for (const call of [
      () => locks.acquire(KEY),
      () => locks.acquire('{' + KEY),
      () => locks.acquire(KEY, { waitMs: 'no' as never }),
      () => permits.acquire(),
    ])
      expectNoKey(await rejected(call()), 'an error');
    abort.abort();
    expectNoKey(await rejected(waiting), 'an abort');
    await locks.forceUnlock(KEY);
    expectNoKey(lease.loss!, 'a loss');
    expectNoKey(lease, 'a lost lease');
  });

  it('a statement that MySQL refuses', async () => {
    await using server = await MysqlLab.start();
    const { locks } = server.open({ redactKey, waitMs: 0 }, { pooled: true });
    await locks.inspect(KEY);
    await server.query('DROP TABLE nest_lock');
    const error = await rejected(locks.acquire(KEY));
    expect(String(error.cause)).toContain('nest_lock');
    expectNotPrinted(error, KEYS, 'the error');
    expectNotPrinted(error, new RegExp(Buffer.from('anna@').toString('hex'), 'i'), 'the error');
  });

  it('each other class of the package', async () => {
    const failure = new StoreFailure('the store is down', 'unknown');
    const locks = createTestingLocks('memory', { redactKey });
    const failed = new main.LockStoreError('failed', 'unknown', { cause: failure });
    const modules = await Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot({ redactKey })],
    }).compile();
    const held = [await locks.acquire(KEY), await locks.testing.hold(`${KEY}/outside`)];
    for (const one of [
      ...[...held, locks, locks.testing, failure, failed, new LossReport(1, 2, 1, 0, [])],
      ...[new StoreHosts(), new StoreQueueEntry(() => Promise.resolve())],
      ...[new main.LockExceptionFilter(), new main.LockHttpException('LOCK_TAKEN', 423, failed)],
      ...[modules.get(RedisLockTestingModule), new RedisLockInstrumentation({ enabled: false })],
    ])
      expectNoKey(one, one.constructor.name);
    await modules.close();
  });

  it('nothing is left out: each class of the package was printed', () => {
    const entries = [
      main,
      fencing,
      mysql,
      opentelemetry,
      postgres,
      redis,
      storeSeam,
      testing,
      zookeeper,
    ] as const;
    const classes = entries
      .flatMap((entry): [string, unknown][] => Object.entries(entry))
      .filter(([, value]) => typeof value === 'function' && /^class\b/.test(String(value)));
    expect(classes.filter(([, one]) => !printed.has(one)).map(([name]) => name)).toEqual([]);
  });
});
