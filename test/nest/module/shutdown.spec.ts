import { Controller, Get, Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { beforeEach, describe, expect, it } from 'vitest';
import { LockService, Locked, currentLease, type RedisLockModuleOptions } from 'nest-redis-lock';
import { deferred, until, within, type Deferred } from '../../support/async.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { Apps, rootModule } from '../../support/nest/apps.js';
import { createHttpApp, listen, PLATFORMS, type Platform } from '../../support/nest/http.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
let work: Deferred<string>;
let running: Deferred<void>;
let lost: Deferred<unknown>;
beforeEach(async () => {
  [work, running, lost] = [deferred(), deferred(), deferred()];
  await world.redis.flushall();
});

@Injectable()
@Controller()
class Orders {
  @Get('pay')
  @Locked('order', { waitMs: Infinity })
  async pay(): Promise<string> {
    running.resolve();
    return work.promise;
  }

  @Get('watch')
  @Locked('order', { waitMs: Infinity })
  async watchful(): Promise<string> {
    currentLease().signal.addEventListener('abort', (event) =>
      lost.resolve((event.target as AbortSignal).reason),
    );
    running.resolve();
    return work.promise;
  }
}

const startHttp = async (platform: Platform, options: Partial<RedisLockModuleOptions> = {}) => {
  const module = rootModule(world.options(options), { controllers: [Orders] });
  const app = await createHttpApp(new Apps(), platform, module, { forceCloseConnections: false });
  const http = await listen(app);
  // Otherwise the server would wait for connections that are kept for a next request.
  return { app, get: (path: string) => http.get(path, { headers: { connection: 'close' } }) };
};

describe.each(PLATFORMS)('closing an app on %s', (platform) => {
  it('refuses a handler that waits for a lock, so that the server does not wait for it', async () => {
    const http = await startHttp(platform);
    const free = await world.takeElsewhere('order');
    const answer = http.get('/pay');
    await until(() => http.app.get(LockService).usage.keys === 1, { what: 'the handler waits' });
    await within(5_000, http.app.close(), 'closing the app');
    expect((await answer).status).toBe(503);
    expect(await (await answer).json()).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    await free();
    expect(await world.holds()).toEqual([]);
  });

  it('lets a running handler end, and gives its lock back', async () => {
    const http = await startHttp(platform);
    const answer = http.get('/pay');
    await running.promise;
    const closing = http.app.close();
    expect(await world.isTaken('order')).toBe(true);
    work.resolve('paid');
    await within(5_000, closing, 'closing the app');
    expect(await (await answer).text()).toBe('paid');
    expect(await world.holds()).toEqual([]);
  });

  it('tells a handler that goes on past the grace period, and keeps others out for as long as it runs', async () => {
    // A slow network, so that what is sent last is still on its way when the app is about to be gone.
    await using proxy = await TcpProxy.start(world.server);
    const http = await startHttp(platform, { redis: proxy.url, shutdownGraceMs: 50, watchdogMs: 60_000 });
    const answer = http.get('/watch');
    await running.promise;
    proxy.delay(50);
    const closing = http.app.close();
    const reason = await within(5_000, lost.promise, 'the abort signal');
    expect(reason).toMatchObject({ code: 'LOCK_LOST', message: expect.stringContaining('app is stopping') });
    expect(await world.isTaken('order')).toBe(true);
    work.resolve('half done');
    await within(5_000, closing, 'closing the app');
    expect((await answer).status).toBe(200);
    expect(await world.holds()).toEqual([]);
  });
});

describe('an app that is closed', () => {
  it('grants no locks any more, and says why', async () => {
    const app = await NestFactory.createApplicationContext(rootModule(world.options()), {
      logger: ['fatal'],
    });
    const locks = app.get(LockService);
    await locks.withLock('order', () => undefined);
    await app.close();
    await expect(locks.acquire('order')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    await expect(locks.tryAcquire('order')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
  });

  it('has given back the lock of a call that did not wait for that', async () => {
    await using proxy = await TcpProxy.start(world.server);
    const module = rootModule(world.options({ redis: proxy.url, awaitRelease: false }));
    const app = await NestFactory.createApplicationContext(module, { logger: ['fatal'] });
    await app.get(LockService).withLock('order', () => proxy.delay(50));
    expect(await world.isTaken('order'), 'the release is on its way').toBe(true);
    await within(5_000, app.close(), 'closing the app');
    expect(await world.holds()).toEqual([]);
  });

  it('leaves the lock of work that never ends to the end of its lease', async () => {
    const options = world.options({ shutdownGraceMs: 50, watchdogMs: 60_000 });
    const app = await NestFactory.createApplicationContext(rootModule(options), { logger: ['fatal'] });
    void app.get(LockService).withLock('order', () => {
      running.resolve();
      return new Promise(() => undefined);
    });
    await running.promise;
    await within(5_000, app.close(), 'closing the app');
    expect(await world.redis.pttl('lock:order')).toBeGreaterThan(0);
  });

  it('can be closed twice: nothing is open any more, and locks are refused with the reason', async () => {
    const before = await world.connections();
    const app = await NestFactory.createApplicationContext(rootModule(world.options()), {
      logger: ['fatal'],
    });
    const locks = app.get(LockService);
    await locks.ping();
    const opened = (await world.connections()).filter((id) => !before.includes(id));
    expect(opened).not.toEqual([]);
    await Promise.all([app.close(), app.close()]);
    await app.close();
    await until(async () => !(await world.connections()).some((id) => opened.includes(id)), {
      what: 'the connections of the app are closed',
    });
    await expect(locks.acquire('order')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(locks.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
    expect(await world.holds()).toEqual([]);
  });
});
