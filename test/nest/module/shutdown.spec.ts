import { Controller, Get, Injectable } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  getLockServiceToken,
  LockService,
  Locked,
  currentLease,
  RedisLockModule,
  withLocks,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
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

describe('an app with several lock modules that stops', () => {
  const GRACE_MS = 10_000;
  let destroyed: Deferred<void>;
  beforeEach(() => {
    destroyed = deferred();
  });
  const twoModules = async () => {
    const module = rootModule(world.options({ shutdownGraceMs: GRACE_MS }), {
      providers: [{ provide: 'last', useValue: { onModuleDestroy: () => destroyed.resolve() } }],
      imports: [
        RedisLockModule.forRoot({
          ...world.options({ keyPrefix: 'billing:', shutdownGraceMs: GRACE_MS }),
          name: 'billing',
        }),
      ],
    });
    const app = await NestFactory.createApplicationContext(module, { logger: ['fatal'] });
    return {
      app,
      first: app.get(LockService),
      second: app.get<LockService>(getLockServiceToken('billing')),
    };
  };
  type Modules = Awaited<ReturnType<typeof twoModules>>;

  const OUTER: Record<string, (modules: Modules, section: () => Promise<string>) => Promise<string>> = {
    'the first module': ({ first }, section) => first.withLock('outer', section),
    'the second module': ({ second }, section) => second.withLock('outer', section),
    'both modules': ({ first, second }, section) =>
      withLocks(
        [first, second].map((service) => ({ service, key: 'outer' })),
        section,
      ),
  };
  const INNER: Record<string, (modules: Modules) => Promise<string>> = {
    'a lock of the first': ({ first }) => first.withLock('inner', () => 'ran'),
    'a lock of the second': ({ second }) => second.withLock('inner', () => 'ran'),
    'a permit of the first': ({ first }) => first.permits('permit', { permits: 1 }).withPermit(() => 'ran'),
    'a read lock of the second': ({ second }) => second.withLock('rw', { mode: 'read' }, () => 'ran'),
    'locks of both': ({ first, second }) =>
      withLocks(
        [first, second].map((service) => ({ service, key: 'inner' })),
        () => 'ran',
      ),
    'permits of a semaphore of the first': async ({ first }) => {
      await first.semaphore('seats').release(1);
      await first.semaphore('seats').acquire(1);
      return 'ran';
    },
  };

  it.each(Object.keys(OUTER))(
    'lets a section under a lock of %s take locks of every module',
    async (outer) => {
      const modules = await twoModules();
      const section = OUTER[outer]!(modules, async () => {
        running.resolve();
        await work.promise;
        const taken: string[] = [];
        for (const [what, take] of Object.entries(INNER)) taken.push(`${await take(modules)}: ${what}`);
        return taken.join();
      });
      await running.promise;
      const closing = modules.app.close();
      await destroyed.promise;
      // A few round trips later a module without work would have closed.
      for (let i = 0; i < 5; i += 1) await world.redis.ping();
      work.resolve('go on');
      expect(await section).toBe(
        Object.keys(INNER)
          .map((what) => `ran: ${what}`)
          .join(),
      );
      await within(5_000, closing, 'closing the app');
      expect(await world.redis.keys('*:{outer}*')).toEqual([]);
    },
  );

  it('does not count a section of another app in the same process as its own', async () => {
    const [stopping, other] = [await twoModules(), await twoModules()];
    await other.first.withLock('outer', async () => {
      await stopping.app.close();
      await expect(stopping.second.acquire('inner')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
      expect(await other.second.withLock('inner', () => 'ran')).toBe('ran');
    });
    await other.app.close();
  });
});
