import { Redis, type RedisOptions } from 'ioredis';
import { afterEach, describe, expect, it } from 'vitest';
import type { CreateRedisClient } from 'nest-redis-lock/redis';
import { RedisServer } from '../support/servers/redis-server.js';
import { until, within } from '../support/async.js';
import { newKey, useLab } from '../support/redis/lab.js';
import { openLocks, type OpenLocks } from '../support/redis/open-locks.js';

const lab = useLab();
const clients: Redis[] = [];

afterEach(() => {
  for (const client of clients.splice(0)) client.disconnect();
});

/** A client as an app has one, with whatever options it came to. */
const clientOfApp = (options: RedisOptions = {}): Redis => {
  const client = new Redis({ ...lab.server.clientOptions(), ...options });
  // What its options break is the app's own affair.
  client.on('error', () => undefined);
  clients.push(client);
  return client;
};

/** Takes, waits, hears, fences, renews and releases: everything a wrong option has ever broken. */
const expectLocksToWork = async (opened: OpenLocks, competitor: OpenLocks): Promise<void> => {
  const key = newKey();
  const lease = await opened.locks.acquire(key);
  expect(Number.isSafeInteger(lease.fencingToken)).toBe(true);
  expect(await competitor.locks.tryAcquire(key), 'the same key for both').toBeNull();
  await lease.extend(40_000);
  // The other one waits for our message, then we for theirs. Without messages both would sleep for 30 s.
  const theirs = competitor.locks.acquire(key, { waitMs: 20_000 });
  await until(() => competitor.store.subscriptions > 0);
  expect(await lease.release()).toBe('released');
  const their = await within(5_000, theirs, 'the competitor hears our release');
  const ours = opened.locks.acquire(key, { waitMs: 20_000 });
  await until(() => opened.store.subscriptions > 0);
  await their.release();
  const own = await within(5_000, ours, 'we hear the release of the competitor');
  expect(own.fencingToken).toBeGreaterThan(their.fencingToken);
  await own.release();
};

describe('the first command of a service', () => {
  it('waits for the connection: a store that is not yet connected is no failure', async () => {
    for (let i = 0; i < 5; i += 1) {
      const { locks } = lab.open();
      await expect(locks.withLock(newKey(), () => 'in')).resolves.toBe('in');
    }
  });

  it('fails at once where the client gives up: no timer would keep a script alive until it hears', async () => {
    const tls = { key: 'no key', cert: 'no certificate' };
    const { locks } = lab.open({ commandTimeoutMs: 20_000 }, { host: '127.0.0.1', tls });
    const failed = expect(locks.tryAcquire(newKey())).rejects.toThrow(/Redis cannot be reached.*PEM/);
    await within(5_000, failed, 'the failure');
  });

  it('is carried out by a Redis that starts within the command time-out', async () => {
    const proxy = await lab.proxy();
    proxy.refuse();
    const { locks } = lab.open({ commandTimeoutMs: 3_000 }, proxy.url);
    const wait = locks.acquire(newKey());
    await proxy.restore();
    expect(await (await wait).release()).toBe('released');
  });
});

describe('a client that is handed over', () => {
  const POISON: readonly [string, RedisOptions][] = [
    ['stringNumbers', { stringNumbers: true }],
    ['retryStrategy: null', { retryStrategy: () => null }],
    ["role: 'slave'", { role: 'slave' }],
    ['a tiny commandTimeout', { commandTimeout: 1 }],
    ['maxRetriesPerRequest: null', { maxRetriesPerRequest: null }],
    ['an offline queue and resending', { enableOfflineQueue: true, autoResendUnfulfilledCommands: true }],
    ['enableAutoPipelining', { enableAutoPipelining: true }],
    ['autoResubscribe', { autoResubscribe: true }],
    ['readOnly', { readOnly: true }],
    ['no ready check', { enableReadyCheck: false }],
    ['lazyConnect', { lazyConnect: true }],
    ['a name for its connections', { connectionName: 'app' }],
    ['RESP3', { protocol: 3 }],
    ['all of it', { stringNumbers: true, enableAutoPipelining: true, maxRetriesPerRequest: null, db: 3 }],
  ];

  it.each(POISON)('with %s: locks work all the same', async (_what, options) => {
    const competitor = lab.open({}, { ...lab.server.clientOptions(), db: options.db ?? 0 });
    await expectLocksToWork(lab.open({}, clientOfApp(options)), competitor);
  });

  it.each(POISON)('or options with %s: locks work all the same', async (_what, options) => {
    const competitor = lab.open({}, { ...lab.server.clientOptions(), db: options.db ?? 0 });
    await expectLocksToWork(lab.open({}, { ...lab.server.clientOptions(), ...options }), competitor);
  });

  it('its keyPrefix counts for hold and channel alike, as for a Java service on the full name', async () => {
    const client = clientOfApp({ keyPrefix: 'app:', lazyConnect: true });
    const prefixed = lab.open({ keyPrefix: 'lock:' }, client);
    const plain = lab.open({ keyPrefix: 'app:lock:' });
    await expectLocksToWork(prefixed, plain);
    const key = newKey();
    await prefixed.locks.withLock(key, async () => {
      expect(await lab.admin.exists(`app:lock:${key}`)).toBe(1);
      void plain.locks.tryAcquire(key, { waitMs: 5_000 }).then((lease) => lease?.release());
      await until(async () => {
        return (await lab.channels()).includes(`redisson_lock__channel:{app:lock:${key}}`);
      });
    });
    await until(() => plain.locks.usage.leases === 0);
    expect(client.status, 'nobody has connected it').toBe('wait');
  });

  it('is not used and not closed: the store has connections of its own', async () => {
    const client = clientOfApp();
    await client.subscribe('a channel of the app');
    const opened = openLocks(client);
    await expectLocksToWork(opened, lab.open());
    await opened.close();
    expect(client.status).toBe('ready');
    const received = new Promise((resolve) =>
      client.once('message', (_channel, message) => resolve(message)),
    );
    await lab.admin.publish('a channel of the app', 'still here');
    expect(await within(5_000, received)).toBe('still here');
  });
});

describe('a password that changes', () => {
  it('is read again for every connection, through a factory', async () => {
    await using server = await RedisServer.start({ password: 'first' });
    let password = 'first';
    const roles: string[] = [];
    const createClient: CreateRedisClient = (role, settings) => {
      roles.push(role);
      const client = new Redis({ host: server.host, port: server.port, ...settings, lazyConnect: true });
      // What an app with rotating credentials does: the password of now, for each attempt.
      client.on('connecting', () => (client.options.password = password));
      return client;
    };
    await using opened = openLocks(createClient, { commandTimeoutMs: 2_000 });
    const key = newKey();
    await opened.locks.withLock(key, () => undefined);
    password = 'second';
    await server.cli('CONFIG', 'SET', 'requirepass', 'second');
    await server.cli('CLIENT', 'KILL', 'TYPE', 'normal');
    await server.cli('CLIENT', 'KILL', 'TYPE', 'pubsub');
    await until(() => opened.locks.withLock(key, () => true), { what: 'locks work with the new password' });
    expect([...roles].sort()).toEqual(['commands', 'subscriber']);
  });
});
