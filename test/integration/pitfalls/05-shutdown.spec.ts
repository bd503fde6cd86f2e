import { Controller, Get, Inject, Module, type INestApplication } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { Locked, LockService, RedisLockModule } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { deferred, until, within, type Deferred } from '../../support/async.js';
import { holdName, Lab, newKey } from '../../support/redis/lab.js';

let lab: Lab;
let work: Deferred<void>;
const key = newKey('shutdown');

@Controller()
class Orders {
  constructor(@Inject(LockService) readonly locks: LockService) {}

  @Get('wait')
  @Locked(() => key, { waitMs: Infinity })
  async wait(): Promise<string> {
    return 'got it';
  }

  @Get('work')
  @Locked(() => key)
  async work(): Promise<string> {
    await work.promise;
    return 'done';
  }
}

const startApp = async (shutdownGraceMs: number): Promise<{ app: INestApplication; url: string }> => {
  @Module({
    imports: [RedisLockModule.forRoot({ redis: lab.server.url, shutdownGraceMs })],
    controllers: [Orders],
  })
  class AppModule {}

  const testing = await Test.createTestingModule({ imports: [AppModule] }).compile();
  const app = testing.createNestApplication({ logger: false });
  await app.listen(0, '127.0.0.1');
  return { app, url: await app.getUrl() };
};

beforeAll(async () => {
  lab = await Lab.start();
});

afterEach(async () => {
  await lab.reset();
  await lab.admin.flushall();
});

afterAll(() => lab[Symbol.asyncDispose]());

describe('pitfall 5: shutdown', () => {
  it('is not held up by an HTTP request that waits for a lock: it is refused with 503', async () => {
    const { app, url } = await startApp(5_000);
    const other = lab.open();
    const lease = await other.locks.acquire(key);
    const waiting = fetch(`${url}/wait`);
    await lab.waiting(key);
    await within(3_000, app.close(), 'app.close()');
    const response = await waiting;
    expect(response.status).toBe(503);
    expect(await response.json()).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(await lease.release()).toBe('released');
  });

  it('lets a running section end, and releases its lock', async () => {
    work = deferred();
    const { app, url } = await startApp(20_000);
    const working = fetch(`${url}/work`);
    await until(() => lab.hold(key));
    const closing = app.close();
    await until(async () => (await fetch(`${url}/wait`).catch(() => undefined))?.status !== 200, {
      what: 'the app takes no locks any more',
    });
    expect(await lab.hold(key), 'the section still runs').not.toBeNull();
    work.resolve();
    expect(await (await working).text()).toBe('done');
    await within(5_000, closing, 'app.close()');
    expect(await lab.hold(key)).toBeNull();
  });

  it('leaves the lock of a section that does not end to its lease, and tells the section', async () => {
    const opened = lab.open({ shutdownGraceMs: 100, watchdogMs: 1_500 });
    const stuck = deferred();
    const told = deferred();
    const section = opened.locks.withLock(key, async (lease) => {
      lease.signal.addEventListener('abort', () => told.resolve());
      await stuck.promise;
    });
    await until(() => lab.hold(key));
    await within(1_400, opened.close(), 'the shutdown');
    await within(1_000, told.promise, 'the signal');
    expect(await lab.admin.exists(holdName(key)), 'nobody else is let in beside it').toBe(1);
    // Not renewed any more, it ends by itself.
    await until(async () => (await lab.hold(key)) === null, { timeoutMs: 4_000 });
    stuck.resolve();
    await section;
  });
});
