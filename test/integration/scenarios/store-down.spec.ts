import { Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Locked, LockService, LockStoreError, RedisLockModule } from 'nest-redis-lock';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { collectUnhandledRejections, until, type RejectionCollector } from '../../support/async.js';
import { Lab } from '../../support/redis/lab.js';
import {
  COMMAND_TIMEOUT_MS as commandTimeoutMs,
  everythingFails,
  expectOneOutage,
  storeFailure,
  worksAgain,
} from '../../support/redis/store-failures.js';

let rejections: RejectionCollector;
beforeEach(() => {
  rejections = collectUnhandledRejections();
});
afterEach(async () => {
  expect(await rejections.finish()).toEqual([]);
});

describe('Redis is down', () => {
  it('at start: every call fails as a failure of the store, in time, and works once Redis is there', async () => {
    await using lab = await Lab.start();
    await lab.server.kill('SIGKILL');
    const opened = lab.open({ commandTimeoutMs });
    await everythingFails(opened, 'order', /no connection to Redis.*ECONNREFUSED/);
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
      imports: [RedisLockModule.forRoot({ redis: lab.server.url, commandTimeoutMs })],
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

  it('from some moment on: calls after it fail in time, and what is held is lost when its lease is over', async () => {
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

  it('while callers wait: they hear that the store failed, not that the lock is taken', async () => {
    await using lab = await Lab.start();
    const [holder, waiter] = [lab.open(), lab.open({ commandTimeoutMs })];
    await holder.locks.acquire('order');
    // The first of them talks to Redis, the others stand behind it in the process; one has hardly any time left.
    const waits = [20_000, 20_000, 1_000].map((waitMs) => waiter.locks.acquire('order', { waitMs }));
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

  it('and back while callers wait: they go on waiting as if nothing had been', async () => {
    await using lab = await Lab.start({ appendFsync: 'always' });
    const patient = { commandTimeoutMs: 10_000 };
    const [holder, waiter] = [lab.open(patient), lab.open(patient)];
    const lease = await holder.locks.acquire('order');
    const waiting = waiter.locks.acquire('order', { waitMs: 25_000 });
    await lab.waiting('order');
    await lab.server.restart();
    await lab.waiting('order');
    await until(async () => (await lease.release()) === 'released');
    await (await waiting).release();
    await lab.nothingLeft(holder, waiter);
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

  it('waitMs: 0 ends with the command time-out, and the answer is "failed", never null', async () => {
    await using lab = await Lab.start();
    const opened = lab.open({ commandTimeoutMs });
    await opened.locks.ping();
    await lab.server.kill('SIGSTOP');
    // The second stands behind the first, whose request nobody has answered.
    const tries = [1, 2, 3].map(() => storeFailure(opened.locks.tryAcquire('order'), /did not answer/));
    await Promise.all(tries);
    expect(opened.events('busy')).toEqual([]);
    await lab.server.kill('SIGCONT');
    await worksAgain(opened, 'order');
  });

  it('nor even takes the connection further than TCP: the same', async () => {
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
    await everythingFails(opened, 'order', /no connection to Redis.*WRONGPASS/);
    await lab.server.cli('CONFIG', 'SET', 'requirepass', 'wrong');
    await worksAgain(opened, 'order');
    expectOneOutage(opened);
    // Neither the password nor the address of the server with it has been logged.
    expect(opened.log.join('\n')).not.toMatch(/wrong/);
  });

  it('the same for a missing one', async () => {
    await using lab = await Lab.start({ password: 'right' });
    const { host, port } = lab.server;
    const opened = lab.open({ commandTimeoutMs }, { host, port });
    await everythingFails(opened, 'order', /NOAUTH/);
  });
});
