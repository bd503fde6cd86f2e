import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Cluster } from 'ioredis';
import {
  currentLease,
  Locked,
  LockConfigurationError,
  LockKeyError,
  RedisLockModule,
  type LockMode,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { keysInSlots, listenersAt, PATIENCE_MS, TEST_MS, useCluster } from '../support/redis/cluster-lab.js';
import type { RedisServer } from '../support/servers/redis-server.js';
import { holdName, newKey } from '../support/redis/lab.js';
import { openLocks, type OpenLocks } from '../support/redis/open-locks.js';
import { ManualClock } from '../support/redis/manual-clock.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';
import type { RedisSource } from '../../lib/stores/redis/topology-of.js';

failOnUnhandledRejections();

const lab = useCluster({ replicas: false });

describe('locks on a Redis Cluster', { timeout: TEST_MS }, () => {
  const burst = async ({ locks }: OpenLocks): Promise<void> => {
    const leases = await Promise.all(keysInSlots(60).map((key) => locks.acquire(key)));
    const owners = await Promise.all(leases.map(({ key }) => lab.redis.masterOf(holdName(key))));
    expect(new Set(owners).size).toBe(3);
    for (const [i, { key }] of leases.entries())
      expect(await owners[i]!.cli('EXISTS', holdName(key))).toBe(1);
    const released = await Promise.all(leases.map((lease) => lease.release()));
    expect(new Set(released)).toEqual(new Set(['released']));
  };

  it.each<[string, () => RedisSource]>([
    ['addresses', () => lab.redis.options],
    ['one address', () => ({ cluster: [`127.0.0.1:${lab.redis.servers[1]!.port}`] })],
    ['URLs', () => ({ cluster: lab.redis.servers.map(({ url }) => url) })],
    [
      'a server that is down and one that is there',
      () => ({ cluster: [{ host: '127.0.0.1', port: 1 }, lab.redis.servers[2]!.url] }),
    ],
  ])('are all given by the first burst, found from %s', async (_, source) => {
    await burst(lab.open({}, source()));
  });

  it('are all given by the first burst, found from an ioredis Cluster, which stays as it was', async () => {
    const nodes = lab.redis.servers.map(({ host, port }) => ({ host, port }));
    const client = new Cluster(nodes, { lazyConnect: true, keyPrefix: '' });
    await burst(lab.open({}, client));
    expect(client.status).toBe('wait');
    client.disconnect();
  });

  it('are kept, each in its own slot, for longer than a lease', async () => {
    const a = lab.open({ watchdogMs: 1_000, commandTimeoutMs: 900 });
    const leases = await Promise.all(keysInSlots(40).map((key) => a.locks.acquire(key)));
    const until1 = performance.now() + 2_000;
    await until(() => performance.now() > until1, { timeoutMs: 10_000 });
    expect(await Promise.all(leases.map((lease) => lease.verify()))).toEqual(leases.map(() => true));
    expect(a.events('lost')).toEqual([]);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it('pass from one service to the other, in the order of arrival, without a timer', async () => {
    const clock = new ManualClock();
    const [a, b] = [lab.open({}, undefined, clock.runtime('timeless')), lab.open()];
    for (const key of keysInSlots(5)) {
      const lease = await a.locks.acquire(key);
      const order: number[] = [];
      const done = [];
      for (let i = 0; i < 3; i++) {
        const own = b.locks.acquire(key, { waitMs: PATIENCE_MS }).then(async (next) => {
          order.push(i);
          await next.release();
        });
        done.push(own);
        await lab.waiting(a, key, 1);
      }
      await lease.release();
      await Promise.all(done);
      expect(order).toEqual([0, 1, 2]);
    }
  });

  it.each([
    ['fair', { mode: 'fair' }],
    ['read', { mode: 'read' }],
    ['write', { mode: 'write' }],
  ] as [string, { mode: LockMode }][])(
    'of the kind %s pass from one service to the other',
    async (_, options) => {
      const [a, b] = [lab.open(), lab.open()];
      const key = newKey();
      const lease = await a.locks.acquire(key, options.mode === 'fair' ? options : { mode: 'write' });
      const waiting = b.locks.acquire(key, { waitMs: PATIENCE_MS, ...options });
      await until(async () => b.store.subscriptions > 0);
      await lease.release();
      await (await waiting).release();
    },
  );

  it.each<LockMode>(['exclusive', 'fair', 'read', 'write'])(
    'of the kind %s wait for a string of another library, with foreignHold',
    async (mode) => {
      const a = lab.open({ foreignHold: 'taken', waitMs: PATIENCE_MS });
      const key = newKey();
      const server = await lab.redis.masterOf(holdName(key));
      await server.cli('SET', holdName(key), 'x');
      expect(await a.locks.tryAcquire(key, { mode })).toBeNull();
      const waiting = a.locks.acquire(key, { mode });
      await until(() => a.store.subscriptions > 0);
      expect(await a.locks.forceUnlock(key)).toBe(false);
      expect(await a.locks.inspect(key)).toMatchObject({ heldAs: 'foreign' });
      expect(await server.cli('DEL', holdName(key))).toBe(1);
      expect(await (await waiting).release()).toBe('released');
    },
  );

  it('have tokens that grow, whichever key of a slot they are for', async () => {
    const { locks } = lab.open();
    let last = 0;
    for (let i = 0; i < 10; i++) {
      const lease = await locks.acquire(`{same}:${i}`);
      expect(lease.fencingToken).toBeGreaterThan(last);
      last = lease.fencingToken;
      await lease.release();
    }
  });

  it('open a subscriber connection only on servers with waiters, and close it with the service', async () => {
    const [a, b] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await a.locks.acquire(key);
    const waiting = b.locks.acquire(key, { waitMs: PATIENCE_MS });
    await lab.waiting(a, key, 1);
    const listening = () => Promise.all(lab.redis.servers.map((server) => listenersAt(server)));
    await until(async () => (await listening()).some((count) => count > 0));
    expect((await listening()).reduce((sum, one) => sum + one, 0)).toBe(1);
    await lease.release();
    await (await waiting).release();
    await b.close();
    await until(async () => (await listening()).every((count) => count === 0));
  });

  it('listen in a bounded number of slots, however many there were waiters in', async () => {
    const [a, b] = [lab.open(), lab.open()];
    for (const keys of [keysInSlots(100), keysInSlots(100)]) {
      await Promise.all(
        keys.map(async (key) => {
          const lease = await a.locks.acquire(key);
          const waiting = b.locks.acquire(key, { waitMs: PATIENCE_MS });
          await lab.waiting(a, key, 1);
          await lease.release();
          await (await waiting).release();
        }),
      );
    }
    // Subscriptions of the second hundred may stay. The first hundred were closed when they were no longer needed.
    const channels = await Promise.all(
      lab.redis.servers.map(async (one) => (await one.cli('PUBSUB', 'SHARDCHANNELS')) as string[]),
    );
    expect(channels.flat().length).toBeLessThanOrEqual(130);
  });

  it('tell what servers warn of, once for all that say the same, and else which ones', async () => {
    const masters = await lab.redis.masters();
    const warned = /^Redis has maxmemory-policy "allkeys-lru"/;
    const policy = (server: RedisServer, name: string) =>
      server.cli('CONFIG', 'SET', 'maxmemory-policy', name);
    try {
      await policy(masters[1]!, 'allkeys-lru');
      const [one, ...others] = await lab.open().store.diagnose();
      expect(one).toMatch(new RegExp(`^${masters[1]!.host}:${masters[1]!.port}: Redis has maxmemory-policy`));
      expect(others).toEqual([]);
      for (const server of masters) await policy(server, 'allkeys-lru');
      expect(await lab.open().store.diagnose()).toEqual([expect.stringMatching(warned)]);
    } finally {
      for (const server of masters) await policy(server, 'noeviction');
    }
  });

  it('are refused by name where the cluster, or the key, cannot be meant', async () => {
    const refused = (redis: unknown, options = {}): string => {
      try {
        void openLocks(redis as RedisSource, options).close();
      } catch (error) {
        expect(error).toBeInstanceOf(LockConfigurationError);
        return (error as Error).message;
      }
      return expect.unreachable();
    };
    const [node] = lab.redis.options.cluster;
    expect(refused({ cluster: [] })).toMatch(/^redis.cluster is empty/);
    expect(refused({ cluster: [7.5] })).toMatch(/^redis.cluster\[0\]/);
    expect(refused({ cluster: [node], db: 1 })).toMatch(
      /^redis.db is 1, but a Redis Cluster has only database 0/,
    );
    expect(refused({ cluster: ['redis://127.0.0.1/2'] })).toMatch(/^redis.db is 2/);
    expect(refused({ cluster: [node], name: 'x' })).toMatch(/^redis.name does not go with a Redis Cluster/);
    expect(refused('redis://127.0.0.1', { shardedPubSub: true })).toMatch(/belongs to a Redis Cluster/);
    expect(refused([{ cluster: [node] }, 'redis://127.0.0.1'])).toMatch(/^The node .* is a Redis Cluster/);
    const client = new Cluster([], { lazyConnect: true });
    expect(refused(client)).toMatch(/startup nodes/);
    expect(refused(() => client)).toMatch(/Hand the Cluster itself over/);
    client.disconnect();
    const { locks } = lab.open();
    await expect(locks.acquire('a{b')).rejects.toBeInstanceOf(LockKeyError);
    await expect(locks.countDownLatch('a{b}c').trySetCount(1)).rejects.toThrow(
      /Choose a name without braces/,
    );
  });
});

describe('a cluster in an app', { timeout: TEST_MS }, () => {
  const clusterClient = (): Cluster =>
    new Cluster(
      lab.redis.servers.map(({ host, port }) => ({ host, port })),
      { lazyConnect: true },
    );

  it.each<[string, () => RedisLockModuleOptions['redis']]>([
    ['its addresses', () => lab.redis.options],
    ['an ioredis Cluster', clusterClient],
  ])('locks methods, found from %s, and closes all connections with the app', async (_, redis) => {
    class Orders {
      @Locked('order:<<id>>')
      async place(id: string): Promise<number> {
        expect(currentLease().key).toBe(`order:${id}`);
        return currentLease().fencingToken;
      }
    }
    @Module({
      imports: [RedisLockModule.forRootAsync({ useFactory: () => ({ redis: redis() }) })],
      providers: [Orders],
    })
    class AppModule {}
    const connections = async (): Promise<number> => {
      const lists = await Promise.all(lab.redis.servers.map((one) => one.text('CLIENT', 'LIST')));
      return lists.flatMap((list) => list.match(/ lib-name=ioredis| cmd=(evalsha|ssubscribe)/g) ?? []).length;
    };
    const before = await connections();
    const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
    const orders = app.get(Orders);
    // One order at a time is placed for each id, and the tokens of an id grow.
    const ids = ['1', '2', '3', '4', '5', '6'];
    const first = await Promise.all(ids.map((id) => orders.place(id)));
    const second = await Promise.all([...ids, ...ids].map((id) => orders.place(id)));
    for (const [i, token] of second.entries()) expect(token).toBeGreaterThan(first[i % ids.length]!);
    expect(await connections()).toBeGreaterThan(before);
    await app.close();
    await until(async () => (await connections()) <= before);
  });
});
