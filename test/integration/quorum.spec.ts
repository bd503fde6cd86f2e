import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import {
  currentLease,
  Locked,
  LockConfigurationError,
  LockStoreError,
  RedisLockModule,
} from 'nest-redis-lock';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { resolveOptions } from '../../lib/nest/module/redis-lock.options.js';
import * as redisStores from '../../lib/entries/redis.js';
import { storeOn } from '../../lib/nest/module/store-of-options.js';
import { RedisStore } from '../../lib/stores/redis/redis.store.js';
import { until } from '../support/async.js';
import { holdName, newKey } from '../support/redis/lab.js';
import { openLocks, type LocksOptions, type OpenLocks } from '../support/redis/open-locks.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { claimFor, expectGranted } from '../support/stores/harness.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';
import { QuorumStore } from 'nest-redis-lock/redis';

failOnUnhandledRejections();

/** Servers of a test have just been started. */
const AT_ONCE = { delayAfterRestartMs: 0 } as const;
const PATIENCE_MS = 30_000;

describe.each([3, 5])('a quorum of %i servers', { timeout: 60_000 }, (count) => {
  const servers: RedisServer[] = [];
  const opened: OpenLocks[] = [];

  beforeEach(async () => {
    servers.push(...(await Promise.all(Array.from({ length: count }, () => RedisServer.start()))));
  }, 60_000);
  afterEach(async () => {
    for (const one of opened.splice(0)) await one[Symbol.asyncDispose]();
    for (const server of servers.splice(0)) await server.stop();
  });

  const open = (options: LocksOptions = {}): OpenLocks => {
    const one = openLocks(
      servers.map(({ url }) => url),
      { ...AT_ONCE, waitMs: PATIENCE_MS, ...options },
    );
    opened.push(one);
    return one;
  };
  const minority = (): RedisServer[] => servers.slice(0, (count - 1) / 2);
  const nothingLeft = (key: string): Promise<unknown> =>
    until(async () => {
      const found = await Promise.all(servers.map((server) => server.cli('EXISTS', holdName(key))));
      return found.every((one) => one === 0);
    });

  it('with foreignHold counts a server with a string as one that another library has', async () => {
    const { locks } = open({ foreignHold: 'taken' });
    const key = newKey();
    const put = (server: RedisServer): Promise<unknown> =>
      server.cli('SET', holdName(key), 'x', 'PX', '20000');
    await Promise.all(minority().map(put));
    await (await locks.acquire(key)).release();
    await Promise.all(servers.slice(0, (count + 1) / 2).map(put));
    expect(await locks.tryAcquire(key)).toBeNull();
    await expect(locks.acquire(key, { waitMs: 100 })).rejects.toMatchObject({ heldAs: 'foreign' });
    expect(await locks.inspect(key)).toMatchObject({ heldAs: 'foreign' });
    expect(await locks.forceUnlock(key)).toBe(false);
    const waiting = locks.acquire(key);
    await servers[0]!.cli('DEL', holdName(key));
    await (await waiting).release();
    await Promise.all(minority().map((server) => server.cli('DEL', holdName(key))));
  });

  it('with foreignHold reports strings that block only because another server is down', async () => {
    const { locks } = open({ foreignHold: 'taken' });
    const key = newKey();
    await Promise.all(minority().map((server) => server.cli('SET', holdName(key), 'x')));
    await (await locks.acquire(key)).release();
    await servers.at(-1)!.kill('SIGKILL');
    for (const waitMs of [0, 100]) {
      const failure = locks.acquire(key, { waitMs });
      await expect(failure).rejects.toMatchObject({
        heldAs: 'foreign',
        message: expect.stringContaining('no expiry') as unknown,
      });
    }
  });

  it('grants a lock to one service, wakes the waiter of another, and its tokens grow', async () => {
    const [a, b] = [open(), open()];
    const key = newKey();
    const lease = await a.locks.acquire(key);
    expect(lease.grantedBy().length).toBeGreaterThan(count / 2);
    expect(await b.locks.tryAcquire(key)).toBeNull();
    const waiting = b.locks.acquire(key);
    await until(
      async () =>
        Number(
          await servers
            .at(-1)!
            .cli('PUBSUB', 'NUMSUB', `redisson_lock__channel:{${holdName(key)}}`)
            .then((reply) => (reply as unknown[])[1]),
        ) > 0,
    );
    expect(await lease.release()).toBe('released');
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    await nothingLeft(key);
  });

  it('lets services take turns: no service keeps the key for long while callers of another one wait', async () => {
    const services = [open(), open()];
    const key = newKey();
    const order: number[] = [];
    let left = 1_000;
    await Promise.all(
      services.flatMap(({ locks }, service) =>
        Array.from({ length: 8 }, async () => {
          while (left-- > 0) await locks.withLock(key, () => void order.push(service));
        }),
      ),
    );
    let longest = 0;
    let inARow = 0;
    for (const [i, service] of order.entries()) {
      inARow = service === order[i - 1] ? inARow + 1 : 1;
      longest = Math.max(longest, inARow);
    }
    // A turn has 64 sections at most; two may follow each other.
    expect(longest).toBeLessThanOrEqual(3 * 64);
  });

  it('goes on while a minority is dead, and names who gave the lock', async () => {
    const { locks } = open();
    await locks.ping();
    for (const server of minority()) await server.kill('SIGKILL');
    for (let i = 0; i < 10; i++) {
      const lease = await locks.acquire(newKey());
      for (const { port } of minority()) expect(lease.grantedBy()).not.toContain(`127.0.0.1:${port}`);
      expect(await lease.verify()).toBe(true);
      expect(await lease.release()).toBe('released');
    }
  });

  it('does not wait for a hanging minority', async () => {
    const { locks } = open({ commandTimeoutMs: 5_000 });
    await locks.ping();
    for (const server of minority()) await server.kill('SIGSTOP');
    const startedAt = performance.now();
    for (let i = 0; i < 10; i++) await locks.withLock(newKey(), () => undefined);
    expect(performance.now() - startedAt).toBeLessThan(5_000);
    for (const server of minority()) await server.kill('SIGCONT');
  });

  it('fails with the cause of each dead server when a majority is dead, and works when it is back', async () => {
    const { locks } = open({ commandTimeoutMs: 500 });
    await locks.ping();
    const dead = servers.slice(0, (count + 1) / 2);
    for (const server of dead) await server.kill('SIGKILL');
    const key = newKey();
    const failure = (await locks.acquire(key).catch((error: unknown) => error)) as LockStoreError;
    expect(failure).toBeInstanceOf(LockStoreError);
    for (const { port } of dead) expect(failure.message).toContain(`127.0.0.1:${port}: `);
    for (const server of dead) await server.restart();
    await until(() => locks.withLock(key, () => true), { timeoutMs: PATIENCE_MS, what: 'a lock again' });
  });

  it('does not count a server that has restarted, and says for how long', async () => {
    await until(
      async () =>
        Number(/uptime_in_seconds:(\d+)/.exec(await servers.at(-1)!.text('INFO', 'server'))![1]) > 4,
    );
    const delayed = open({ delayAfterRestartMs: 2_500, commandTimeoutMs: 500 });
    const [restarted] = servers;
    const { locks, log } = delayed;
    await until(() => locks.withLock(newKey(), () => true));
    await restarted!.restart({ keepData: false });
    const name = `127.0.0.1:${restarted!.port}`;
    await until(async () => {
      const lease = await locks.acquire(newKey());
      expect(lease.grantedBy()).not.toContain(name);
      await lease.release();
      return log.some((line) => line.includes(name));
    });
    expect(log.find((line) => line.includes(name))).toMatch(
      /counts as failed: its server was started .* again in [\d.]+ s/,
    );
    // It counts again, and this time it has to.
    for (const server of servers.slice(1, (count + 1) / 2)) await server.kill('SIGKILL');
    await until(
      async () => {
        await using lease = await locks.acquire(newKey());
        return lease.grantedBy().includes(name);
      },
      { timeoutMs: PATIENCE_MS, what: 'the server counts again' },
    );
  });

  it('never has two holders, and no token twice, while servers die and come back', async () => {
    const services = [
      open({ commandTimeoutMs: 500 }),
      open({ commandTimeoutMs: 500 }),
      open({ commandTimeoutMs: 500 }),
    ];
    const key = newKey();
    let [inside, max, last, done] = [0, 0, 0, 0];
    let isOver = false;
    const work = async ({ locks }: OpenLocks): Promise<void> => {
      while (!isOver) {
        try {
          await locks.withLock(key, async ({ fencingToken, signal }) => {
            inside += 1;
            max = Math.max(max, inside);
            expect(fencingToken).toBeGreaterThan(last);
            last = fencingToken;
            await locks.ping().catch(() => undefined);
            if (!signal.aborted) done += 1;
            inside -= 1;
          });
        } catch (error) {
          if (!(error instanceof LockStoreError)) throw error;
        }
      }
    };
    const working = services.flatMap((service) => [work(service), work(service), work(service)]);
    for (const server of minority()) {
      const before = done;
      await server.kill('SIGKILL');
      await until(() => done > before + 50);
      await server.restart();
      await until(() => done > before + 100);
    }
    isOver = true;
    await Promise.all(working);
    expect(max).toBe(1);
  });

  it('has readers and writers', async () => {
    const [a, b] = [open(), open()];
    const key = newKey();
    await minority()[0]!.kill('SIGKILL');
    const readers = [
      await a.locks.acquire(key, { mode: 'read' }),
      await b.locks.acquire(key, { mode: 'read' }),
    ];
    expect(await a.locks.tryAcquire(key, { mode: 'write' })).toBeNull();
    for (const reader of readers) expect(await reader.release()).toBe('released');
    const writer = await a.locks.acquire(key, { mode: 'write' });
    expect(await b.locks.tryAcquire(key, { mode: 'read' })).toBeNull();
    await writer.downgrade();
    expect(await (await b.locks.acquire(key, { mode: 'read' })).release()).toBe('released');
    expect(await writer.release()).toBe('released');
  });

  it('keeps a lock alive, whichever minority is dead, and forces one open', async () => {
    const { locks } = open({ watchdogMs: 3_000, commandTimeoutMs: 300 });
    const lease = await locks.acquire(newKey());
    for (const server of minority()) {
      await server.kill('SIGKILL');
      let [renewals, leftMs] = [0, lease.remainingMs()];
      await until(() => {
        const before = leftMs;
        leftMs = lease.remainingMs();
        if (leftMs > before) renewals += 1;
        // The first one may have been sent before the server was killed.
        return renewals === 2;
      });
      expect(await lease.verify()).toBe(true);
      await server.restart();
    }
    expect(await locks.forceUnlock(lease.key)).toBe(true);
    await until(() => lease.lost);
  });

  it('refuses what it cannot keep, by name', async () => {
    const { locks } = open();
    await expect(locks.acquire(newKey(), { mode: 'fair' })).rejects.toThrow(
      /cannot keep locks of the kind "fair"/,
    );
    await expect(locks.permits(newKey(), { permits: 1 }).acquire()).rejects.toThrow(/kind "permit"/);
    expect(() => locks.semaphore(newKey())).toThrow(LockConfigurationError);
    expect(() => locks.countDownLatch(newKey())).toThrow(LockConfigurationError);
  });
});

describe('a quorum in an app', () => {
  it('locks a method, and closes all connections with the app', async () => {
    const servers = await Promise.all([1, 2, 3].map(() => RedisServer.start()));
    /** Of each server, beside the one that asks. */
    const connections = async (): Promise<number[]> => {
      const lists = await Promise.all(servers.map((server) => server.text('CLIENT', 'LIST')));
      return lists.map((list) => list.trim().split('\n').length - 1);
    };
    class Orders {
      @Locked('order:<<id>>')
      async place(id: string): Promise<readonly string[]> {
        return currentLease().grantedBy().concat(id);
      }
    }
    const nodes = servers.map(({ url }) => new RedisStore({ redis: url }));
    @Module({
      imports: [RedisLockModule.forRoot({ store: new QuorumStore({ nodes, delayAfterRestartMs: 0 }) })],
      providers: [Orders],
    })
    class AppModule {}
    try {
      const app = await NestFactory.createApplicationContext(AppModule, { logger: false });
      expect((await app.get(Orders).place('7')).length).toBeGreaterThan(2);
      for (const count of await connections()) expect(count).toBeGreaterThan(0);
      await app.close();
      await until(async () => (await connections()).every((count) => count === 0));
    } finally {
      for (const server of servers) await server.stop();
    }
  });

  it('counts a server that is given under two names once', async () => {
    const servers = await Promise.all([1, 2].map(() => RedisServer.start()));
    const [one, two] = servers;
    const redis = [one!.url, `redis://127.1:${one!.port}`, two!.url];
    await using opened = openLocks(redis, { ...AT_ONCE, commandTimeoutMs: 500 });
    try {
      const lease = await until(() => opened.locks.acquire(newKey()));
      expect(lease.grantedBy()).toHaveLength(2);
      expect(lease.grantedBy()).toContain(`127.0.0.1:${two!.port}`);
      await lease.release();
      await two!.kill('SIGKILL');
      await expect(opened.locks.acquire(newKey())).rejects.toThrow(
        /: it is the same server as 127\.(0\.0\.)?1:/,
      );
    } finally {
      for (const server of servers) await server.stop();
    }
  });

  it('is told how the tokens of a server go with its clock', async () => {
    await using server = await RedisServer.start();
    const store = new RedisStore({ redis: server.url });
    try {
      const before = await store.serverTimes();
      const reply = await store.kinds.exclusive.acquire(claimFor(newKey()));
      const after = await store.serverTimes();
      expectGranted(reply);
      const givenAtMs = reply.token! / before.tokensPerMs!;
      expect(givenAtMs).toBeGreaterThanOrEqual(before.clockMs);
      expect(givenAtMs).toBeLessThanOrEqual(after.clockMs);
    } finally {
      await store.close();
    }
  });

  it.each([
    ['one server', { redis: ['redis://a'] }, /redis is a list of 1: a quorum needs at least 2/],
    ['no server', { redis: [] }, /list of 0/],
    [
      'one server twice',
      { redis: ['redis://a', 'redis://b', 'redis://A:6379/3'] },
      /Two nodes are the same server, a:6379/,
    ],
    [
      'localhost twice',
      { redis: ['redis://localhost', { host: '127.0.0.1' }] },
      /are the same server, 127\.0\.0\.1:6379/,
    ],
    [
      'a node that is wrong',
      { redis: ['redis://a', 'http://b'] },
      /redis\[1\]: a URL starts with redis:\/\//,
    ],
    [
      'a node behind Sentinel',
      { redis: ['redis://a', { sentinels: [{ host: 'b' }], name: 'm' }] },
      /^The node .* is a Redis Cluster or behind Sentinel/,
    ],
    [
      "Java's tokens",
      { redis: ['redis://a', 'redis://b'], fencing: 'redisson' },
      /fencing: 'redisson': .* does not count the tokens of a key/,
    ],
  ])('is refused by name with %s', (_, options, message) => {
    const open = () => storeOn(redisStores, resolveOptions(options as never));
    expect(open).toThrow(LockConfigurationError);
    expect(open).toThrow(message);
  });
});
