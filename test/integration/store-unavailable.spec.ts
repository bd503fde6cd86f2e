import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Locked, LockService, LockStoreError, RedisLockModule } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import type { RedisServer } from '../support/servers/redis-server.js';
import { Lab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import {
  COMMAND_TIMEOUT_MS as commandTimeoutMs,
  everythingFails,
  expectOneOutage,
  storeFailure,
  worksAgain,
} from '../support/redis/store-failures.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';
import { RedisStore } from 'nest-redis-lock/redis';

failOnUnhandledRejections();

describe('Redis is down', () => {
  it('at start: every call fails as a failure of the store, in time, and works once Redis is there', async () => {
    await using lab = await Lab.start();
    await lab.server.kill('SIGKILL');
    const opened = lab.open({ commandTimeoutMs });
    await everythingFails(opened, 'order', /no connection to Redis.*ECONNREFUSED/);
    const failure = await storeFailure(opened.locks.acquire('order'), /ECONNREFUSED/);
    expect(failure.outcome).toBe('not-executed');
    await lab.server.restart();
    await worksAgain(opened, 'order');
    expectOneOutage(opened);
    await lab.nothingLeft(opened);
  });

  it('at start: the Nest app starts, its locked method refuses to run, and runs once Redis is there', async () => {
    class Orders {
      runs = 0;
      @Locked('order')
      async place(): Promise<string> {
        this.runs += 1;
        return 'placed';
      }
    }
    await using lab = await Lab.start();
    await lab.server.kill('SIGKILL');
    @Module({
      imports: [
        RedisLockModule.forRoot({ store: new RedisStore({ redis: lab.server.url, commandTimeoutMs }) }),
      ],
      providers: [Orders],
    })
    class App {}
    const app = await NestFactory.createApplicationContext(App, { logger: false });
    try {
      const orders = app.get(Orders);
      await storeFailure(orders.place(), /ECONNREFUSED/);
      expect(orders.runs).toBe(0);
      await lab.server.restart();
      await until(async () => (await orders.place()) === 'placed');
      expect(app.get<LockService>(LockService).usage).toMatchObject({ leases: 0, keys: 0, holds: 0 });
    } finally {
      await app.close();
    }
  });

  it('while a lock is held: calls fail in time, and the lock is lost when its lease expires', async () => {
    await using lab = await Lab.start();
    const opened = lab.open({ commandTimeoutMs, watchdogMs: 1_000 });
    const lease = await opened.locks.acquire('held');
    await lab.server.kill('SIGKILL');
    await everythingFails(opened, 'order', /connection to Redis|ECONNREFUSED/);
    await until(() => lease.signal.aborted);
    expect(lease.signal.reason).toMatchObject({ code: 'LOCK_LOST', key: 'held' });
    expect(opened.events('lost')).toMatchObject([{ key: 'held', reason: 'expired' }]);
    expect(await lease.release()).toBe('lost');
    await lab.server.restart();
    await worksAgain(opened, 'order');
    expectOneOutage(opened);
  });

  it('while callers wait: their wait ends with a failure of the store, not with "taken"', async () => {
    await using lab = await Lab.start();
    const [holder, waiter] = [lab.open(), lab.open({ commandTimeoutMs })];
    await holder.locks.acquire('order');
    // The first of them talks to Redis, the others stand behind it in the process; one has hardly any time left.
    const waits = [3_000, 3_000, 1_000].map((waitMs) => waiter.locks.acquire('order', { waitMs }));
    const outcomes = Promise.allSettled(waits);
    await lab.waiting('order');
    await lab.server.kill('SIGKILL');
    const killedAt = performance.now();
    for (const outcome of await outcomes) {
      expect(outcome.status === 'rejected' && (outcome.reason as unknown)).toBeInstanceOf(LockStoreError);
    }
    expect(performance.now() - killedAt).toBeLessThan(5_000);
    expect(waiter.events('busy')).toEqual([]);
    await lab.server.restart();
    await worksAgain(waiter, 'order');
    expectOneOutage(waiter);
  });

  it('and up again while callers wait: they keep waiting and get the lock', async () => {
    await using lab = await Lab.start({ appendFsync: 'always' });
    const patient = { commandTimeoutMs: 10_000 };
    const [holder, waiter] = [lab.open(patient), lab.open(patient)];
    const lease = await holder.locks.acquire('order');
    const waiting = waiter.locks.acquire('order', { waitMs: 25_000 });
    await lab.waiting('order');
    // Nothing of it is under way any more.
    await lab.subscribed('order');
    await lab.server.restart();
    await lab.waiting('order');
    await until(async () => (await lease.release()) === 'released');
    await (await waiting).release();
    await lab.nothingLeft(holder, waiter);
  });

  it('for a moment, and keeps its data: holds survive its crash, and it goes on where it was', async () => {
    await using own = await Lab.start({ appendFsync: 'always' });
    const [one, two] = [own.open({ watchdogMs: 3_000 }), own.open()];
    const lease = await one.locks.acquire('order');
    const waiting = two.locks.acquire('stock', { waitMs: 10_000 });
    await (await waiting).release();
    await own.server.kill('SIGKILL');
    await own.server.restart();
    expect(await two.locks.tryAcquire('order')).toBeNull();
    await lease.extend(5_000);
    expect(lease.signal.aborted).toBe(false);
    const next = two.locks.acquire('order', { waitMs: 20_000 });
    await own.waiting('order');
    expect(await lease.release()).toBe('released');
    expect((await within(5_000, next)).fencingToken).toBeGreaterThan(lease.fencingToken);
    await (await next).release();
  });
});

describe('Redis does not answer', () => {
  it('a request under way ends with the command time-out; what it may have done is undone', async () => {
    await using lab = await Lab.start();
    const opened = lab.open({ commandTimeoutMs });
    await opened.locks.ping();
    await lab.server.kill('SIGSTOP');
    const failure = await storeFailure(opened.locks.acquire('order', { waitMs: 20_000 }), /did not answer/);
    expect(failure.outcome).toBe('unknown');
    // It waits in the socket of the server, and is done when that goes on.
    await lab.server.kill('SIGCONT');
    await worksAgain(opened, 'order');
    await lab.nothingLeft(opened);
    expectOneOutage(opened);
  });

  it('nor even takes the connection further than TCP: every call fails in time, and works once it does', async () => {
    await using lab = await Lab.start();
    const proxy = await lab.proxy();
    proxy.blackhole();
    const opened = lab.open({ commandTimeoutMs }, proxy.url);
    await everythingFails(opened, 'order', /no connection to Redis/);
    await proxy.restore();
    await worksAgain(opened, 'order');
    expectOneOutage(opened);
  });
});

describe('Redis refuses the password', () => {
  it('with the reason as the cause, and works once it is the right one', async () => {
    await using lab = await Lab.start({ password: 'right' });
    const wrong = lab.server.url.replace('right', 'wrong');
    const opened = lab.open({ commandTimeoutMs }, wrong);
    await everythingFails(opened, 'order', /not ready within \d+ ms: WRONGPASS/);
    await lab.server.cli('CONFIG', 'SET', 'requirepass', 'wrong');
    await worksAgain(opened, 'order');
    expectOneOutage(opened);
    // Neither the password nor the address of the server with it has been logged.
    expect(opened.log.join('\n')).not.toMatch(/wrong/);
  });

  it('of a client that has none: every call fails with that as the cause', async () => {
    await using lab = await Lab.start({ password: 'right' });
    const { host, port } = lab.server;
    const opened = lab.open({ commandTimeoutMs }, { host, port });
    await everythingFails(opened, 'order', /NOAUTH/);
  });
});

describe('a connection that is cut', () => {
  it('costs the commands under way at most, and no lock that is held', async () => {
    await using lab = await Lab.start();
    const proxy = await lab.proxy();
    const { locks, events } = lab.open({}, proxy.url);
    const lease = await locks.acquire('held');
    for (let cuts = 0; cuts < 5; cuts += 1) {
      const stop = proxy.onData((connection, direction, chunk) => {
        if (direction !== 'toServer' || !chunk.includes('lock:another')) return;
        stop();
        connection.cut();
      });
      await expect(locks.acquire('another')).rejects.toBeInstanceOf(LockStoreError);
      await (await locks.acquire('another')).release();
    }
    expect([events('lost'), await lease.release()]).toEqual([[], 'released']);
  });
});

const reasonsOf = async (attempts: readonly Promise<unknown>[]): Promise<unknown[]> => {
  const settled = await Promise.allSettled(attempts);
  return settled.map((one) => (one.status === 'rejected' ? one.reason : one.value));
};

const expectStoreFailures = (reasons: readonly unknown[]): void => {
  for (const reason of reasons) expect(reason).toBeInstanceOf(LockStoreError);
};

describe.each([
  ['is stopped (SIGSTOP)', true],
  ['is killed', false],
])('Redis %s: "taken" is never the answer', (_what, stops) => {
  let server: RedisServer;

  const withServer = async (test: (opened: OpenLocks) => Promise<void>): Promise<void> => {
    await using lab = await Lab.start();
    ({ server } = lab);
    const opened = lab.open({ commandTimeoutMs, waitMs: 30_000 });
    try {
      await opened.locks.ping();
      await test(opened);
    } finally {
      if (stops && server.isRunning) await server.kill('SIGCONT');
    }
  };

  const takeDown = () => server.kill(stops ? 'SIGSTOP' : 'SIGKILL');
  const bringBack = () => (stops ? server.kill('SIGCONT') : server.restart());

  it('all callers hear of the store, none hears "taken": the head and the 99 behind it', () =>
    withServer(async ({ locks, events }) => {
      await takeDown();
      const waits = [0, 1, 50, 300, 30_000];
      const reasons = await reasonsOf(
        Array.from({ length: 100 }, (_, i) => locks.acquire('k', { waitMs: waits[i % waits.length]! })),
      );
      expectStoreFailures(reasons);
      expect(events('store-down')).toHaveLength(1);
      expect(events('busy')).toEqual([]);
      expect(locks.usage).toMatchObject({ leases: 0, keys: 0 });
    }));

  it('tryAcquire throws after the command time-out, alone and behind a caller whose request is unanswered', () =>
    withServer(async ({ locks, events }) => {
      await takeDown();
      const startedAt = performance.now();
      expectStoreFailures(
        await reasonsOf([
          locks.tryAcquire('k'),
          locks.tryAcquire('k', { waitMs: 0 }),
          locks.acquire('k', { waitMs: 0 }),
          locks.tryAcquire('k', { waitMs: 50 }),
        ]),
      );
      const tookMs = performance.now() - startedAt;
      if (stops) expect(tookMs).toBeGreaterThanOrEqual(commandTimeoutMs - 1);
      expect(tookMs).toBeLessThan(commandTimeoutMs + 5_000);
      const contender = locks.acquire('l');
      await until(() => locks.usage.keys > 0);
      expectStoreFailures(await reasonsOf([locks.tryAcquire('l'), contender]));
      expect(events('busy')).toEqual([]);
    }));

  it('a holder keeps its lock through a short outage, and inspect and ping report the failure', () =>
    withServer(async ({ locks, events }) => {
      // A Redis that is killed loses everything: then the lock is lost, and that is said.
      const lease = await locks.acquire('k');
      await takeDown();
      expectStoreFailures(await reasonsOf([locks.inspect('k'), locks.ping()]));
      await bringBack();
      await until(() => locks.ping().then(() => true), { what: 'it answers again' });
      expect(await lease.release()).toBe(stops ? 'released' : 'lost');
      expect(events('lost')).toHaveLength(stops ? 0 : 1);
    }));
});
