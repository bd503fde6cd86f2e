import { inspect } from 'node:util';
import { LockConfigurationError } from 'nest-redis-lock';
import { MemoryStore } from 'nest-redis-lock/testing';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { resolveOptions, type RedisLockModuleOptions } from '../../lib/nest/module/redis-lock.options.js';
import * as redisStores from '../../lib/entries/redis.js';
import { storeOn } from '../../lib/nest/module/store-of-options.js';
import { holdName } from '../support/redis/lab.js';
import { openLocks, type LocksOptions, type OpenLocks } from '../support/redis/open-locks.js';
import { RedisClusterServers } from '../support/servers/redis-cluster.js';
import { startReplica } from '../support/servers/redis-replicas.js';
import { RedisServer } from '../support/servers/redis-server.js';
import type { RedisSource } from '../../lib/stores/redis/topology-of.js';

const TEST_MS = 60_000;
const AT_ONCE = { delayAfterRestartMs: 0 } as const;

let cluster: RedisClusterServers;
let [alone, other]: RedisServer[] = [];
let replica: RedisServer;
const opened: OpenLocks[] = [];

beforeAll(async () => {
  [cluster, alone, other] = await Promise.all([
    RedisClusterServers.start({ replicas: false }),
    RedisServer.start(),
    RedisServer.start(),
  ]);
  replica = await startReplica(alone);
}, TEST_MS);
afterEach(async () => {
  for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
});
afterAll(async () => {
  await cluster[Symbol.asyncDispose]();
  for (const server of [alone!, other!, replica]) await server.stop();
});

const open = (redis: RedisSource | readonly RedisSource[], options: LocksOptions = {}): OpenLocks => {
  const one = openLocks(redis, options);
  opened.push(one);
  return one;
};

describe('servers that are something else than what redis says', { timeout: TEST_MS }, () => {
  /** A key whose slot the server has not. */
  const elsewhere = async (server: RedisServer): Promise<string> => {
    for (let i = 0; ; i++) {
      const key = `order:${i}`;
      if ((await cluster.masterOf(holdName(key))).port !== server.port) return key;
    }
  };

  it('one of a cluster that is named as if it were alone: a warning at start, and an error that says how to name it', async () => {
    const [server] = cluster.servers;
    const { locks, store } = open(server!.url);
    expect(await store.diagnose()).toEqual([
      expect.stringMatching(/one server of a Redis Cluster.*redis: \{ cluster/),
    ]);
    await expect(locks.acquire(await elsewhere(server!), { waitMs: 0 })).rejects.toThrow(
      /MOVED .*redis: \{ cluster/,
    );
  });

  it('a server without a cluster, named as one of a cluster: an error that says so', async () => {
    const { locks, store } = open({ cluster: [alone!.url] });
    await expect(locks.acquire('order', { waitMs: 0 })).rejects.toThrow(/is in no Redis Cluster/);
    await expect(store.diagnose()).rejects.toThrow(/is in no Redis Cluster/);
  });

  it('one of a cluster, or a replica of another node, in a quorum: warnings at start that name the node', async () => {
    const [part] = cluster.servers;
    const { store } = open([alone!.url, replica.url, part!.url], AT_ONCE);
    expect([...(await store.diagnose())].sort()).toEqual(
      [
        `${part!.host}:${part!.port}: Redis is one server of a Redis Cluster, and redis names it as if it were alone: locks whose slot another server has cannot be taken. Give redis: { cluster: [its address] }.`,
        `${replica.host}:${replica.port}: Redis is a replica of ${alone!.host}:${alone!.port}: no lock can be taken there. Give the address of its master, or those of its sentinels.`,
      ].sort(),
    );
  });

  it('what they are: nothing is said', async () => {
    expect(await open(alone!.url).store.diagnose()).toEqual([]);
    expect(await open(cluster.options).store.diagnose()).toEqual([]);
    expect(await open([alone!.url, other!.url], AT_ONCE).store.diagnose()).toEqual([]);
  });
});

describe('servers of a cluster that cannot be read keep the app from starting, and no password is shown', () => {
  it.each<[string, unknown]>([
    ['a URL whose password is not encoded', { cluster: ['redis://me:se#secret@127.0.0.1:1'] }],
    ['an address with a password before it', { cluster: ['secret@127.0.0.1:1'] }],
    ['a URL with one slash', { cluster: ['redis:/:secret@127.0.0.1:1'] }],
    ['a user name that is none', { cluster: [{ host: '127.0.0.1', username: 7 }], password: 'secret' }],
  ])('%s', (_, redis) => {
    let thrown: unknown;
    try {
      void storeOn(redisStores, resolveOptions({ redis } as RedisLockModuleOptions)).close();
    } catch (error) {
      thrown = error;
    }
    expect(thrown).toBeInstanceOf(LockConfigurationError);
    expect(inspect(thrown, { depth: 9, showHidden: true })).not.toContain('secret');
  });
});

describe('a prefix of which no key can be made keeps the app from starting', () => {
  const starting = (options: RedisLockModuleOptions) => () => {
    void storeOn(redisStores, resolveOptions(options)).close();
  };
  const servers = (): RedisSource => ({ cluster: [{ host: '127.0.0.1', port: 1 }] });

  it.each<[string, RedisLockModuleOptions]>([
    ['on one server', { redis: 'redis://127.0.0.1:1', keyPrefix: 'a{' }],
    ['on a cluster', { redis: servers(), keyPrefix: 'a{' }],
    ['on a quorum', { redis: ['redis://127.0.0.1:1', 'redis://127.0.0.1:2'], keyPrefix: '{}a' }],
    ['in memory', { store: new MemoryStore(), keyPrefix: 'a}' }],
    ['of the client', { redis: { host: '127.0.0.1', port: 1, keyPrefix: 'a{' } }],
    ['that fencing tokens have', { redis: 'redis://127.0.0.1:1', keyPrefix: 'nest_redis_lock:' }],
  ])('%s', (_, options) => {
    expect(starting(options)).toThrow(LockConfigurationError);
    expect(starting(options)).toThrow(/^keyPrefix, or that of redis,/);
  });

  it.each(['', 'lock:', '{app}:', 'a{b}c:'])('%j is none of them', (keyPrefix) => {
    expect(starting({ redis: servers(), keyPrefix })).not.toThrow();
  });
});
