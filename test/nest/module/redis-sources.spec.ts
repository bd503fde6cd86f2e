import { Cluster, Redis, type RedisOptions } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, LockService, type RedisLockModuleOptions } from 'nest-redis-lock';
import type { ConnectionRole } from 'nest-redis-lock/redis';
import { until } from '../../support/async.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { useWorld } from '../../support/nest/world.js';
import { RedisStore } from 'nest-redis-lock/redis';

const world = useWorld();
const apps = useApps();

type Source = RedisLockModuleOptions['redis'];

/** Uses a lock with a waiter, so that all connections are open. */
const useLocks = async (redis: Source, name = 'lock:order'): Promise<void> => {
  const app = await apps.context(rootModule({ redis }));
  const locks = app.get(LockService);
  const lease = await locks.acquire('order');
  expect(await world.redis.exists(name)).toBe(1);
  const free = await takeElsewhere(name.replace('order', 'other'));
  const waiter = locks.withLock('other', () => 'got it');
  await until(isSubscribed, { what: 'the waiter listens' });
  await free();
  await expect(waiter).resolves.toBe('got it');
  await lease.release();
};

const takeElsewhere = async (name: string): Promise<() => Promise<void>> => {
  await world.redis.multi().hset(name, 'another-process:1', '1').pexpire(name, 60_000).exec();
  return async () => {
    await world.redis.del(name);
    await world.redis.publish(`redisson_lock__channel:{${name}}`, '0');
  };
};

const isSubscribed = async (): Promise<boolean> =>
  (await world.redis.pubsub('CHANNELS', 'redisson_lock__channel:*')).length > 0;

const connections = async (): Promise<number> =>
  ((await world.redis.client('LIST')) as string).trim().split('\n').length;

const closed = (count: number) =>
  until(async () => (await connections()) === count, { what: `${count} connections are left` });

describe('the module takes Redis from', () => {
  it('a URL, and closes its connections when the app closes', async () => {
    const before = await connections();
    await useLocks(world.server.url);
    expect(await connections()).toBeGreaterThan(before);
    await apps.close();
    await closed(before);
  });

  it('ioredis options, and closes its connections when the app closes', async () => {
    const before = await connections();
    await useLocks(world.server.clientOptions());
    await apps.close();
    await closed(before);
  });

  it('an ioredis client, which stays open and usable', async () => {
    const client = new Redis(world.server.url);
    await client.ping();
    const before = await connections();
    await useLocks(client);
    await apps.close();
    await closed(before);
    expect(client.status).toBe('ready');
    await expect(client.ping()).resolves.toBe('PONG');
    client.disconnect();
  });

  it('an ioredis client with a keyPrefix: it goes before the name of the lock', async () => {
    const client = new Redis(world.server.url, { keyPrefix: 'app:' });
    await useLocks(client, 'app:lock:order');
    client.disconnect();
  });

  it('an ioredis client with a database: the locks are in that one', async () => {
    const client = new Redis(world.server.url);
    await client.select(5);
    const app = await apps.context(rootModule({ redis: client }));
    await app.get(LockService).withLock('order', async () => {
      expect(await client.exists('lock:order')).toBe(1);
      expect(await world.redis.exists('lock:order')).toBe(0);
    });
    client.disconnect();
  });

  it('a client that has not connected yet, without connecting it', async () => {
    const client = new Redis(world.server.url, { lazyConnect: true });
    await useLocks(client);
    expect(client.status).toBe('wait');
    client.disconnect();
  });

  it('a function that makes clients: it is asked for each role, and they are closed', async () => {
    const before = await connections();
    const asked: { role: ConnectionRole; settings: RedisOptions }[] = [];
    await useLocks((role, settings) => {
      asked.push({ role, settings });
      return new Redis({ ...world.server.clientOptions(), ...settings });
    });
    expect(asked.map(({ role }) => role).sort()).toEqual(['commands', 'subscriber']);
    expect(asked[0]?.settings).toMatchObject({
      maxRetriesPerRequest: 0,
      autoResendUnfulfilledCommands: false,
    });
    await apps.close();
    await closed(before);
  });
});

describe('the app does not start, and is told why, with', () => {
  /** What is refused leaves no connection behind. */
  const refused = async (redis: unknown, message: RegExp): Promise<void> => {
    const before = await connections();
    const starting = apps.context(rootModule({ redis: redis as Source }));
    const error: unknown = await starting.catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as Error).message).toMatch(message);
    await closed(before);
  };

  const cluster = (): Cluster =>
    new Cluster([{ host: world.server.host, port: world.server.port }], { lazyConnect: true });

  it('a number', () => refused(7, /^redis: expected/));

  it('a function that gives an ioredis Cluster', () =>
    refused(() => cluster(), /what the function gave is an ioredis Cluster.* Hand the Cluster itself over/s));

  /** As `createClient()` of node-redis gives one: an object of a class, with the methods that matter here. */
  class RedisClient {
    readonly options = { url: 'redis://127.0.0.1:6379' };
    readonly isOpen = true;
    readonly isReady = true;
    readonly on = () => this;
    readonly connect = () => Promise.resolve(this);
    readonly disconnect = () => Promise.resolve();
    readonly subscribe = () => Promise.resolve();
    readonly unsubscribe = () => Promise.resolve();
    readonly sendCommand = () => Promise.resolve('OK');
  }

  it.each([
    ['a client of node-redis', () => new RedisClient()],
    ['a function that gives one', () => () => new RedisClient()],
  ])('%s, named as such', (_what, make) =>
    refused(make(), /node-redis .* the locks need ioredis.* Give the URL of the client, or \{ host, port,/),
  );

  it('a function that gives one client for both roles', async () => {
    const shared = new Redis({ ...world.server.clientOptions(), lazyConnect: true });
    await refused(() => shared, /one client for both roles/);
    expect(shared.status, 'it is left as it was').toBe('wait');
  });

  it('a function that does not pass the settings on, so that its clients send commands again', () =>
    refused(
      () => new Redis({ ...world.server.clientOptions(), lazyConnect: true }),
      /enableOfflineQueue and autoResendUnfulfilledCommands, .* Pass the settings on/,
    ));

  it('a function that gives a promise of a client', () =>
    refused(() => Promise.resolve(new Redis({ lazyConnect: true })), /not a promise of one/));
});

describe('an app whose Redis is down', () => {
  it('starts, refuses locks with LockStoreError, and closes', async () => {
    const store = new RedisStore({ redis: 'redis://127.0.0.1:1', commandTimeoutMs: 200 });
    const app = await apps.context(rootModule({ store }));
    await expect(app.get(LockService).ping()).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await expect(app.get(LockService).acquire('order')).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
  });
});
