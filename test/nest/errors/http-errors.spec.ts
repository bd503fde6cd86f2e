import {
  Catch,
  Controller,
  Get,
  HttpException,
  NotFoundException,
  Query,
  type ArgumentsHost,
  type ExceptionFilter,
} from '@nestjs/common';
import { APP_FILTER, BaseExceptionFilter } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import {
  LockError,
  LockKeyError,
  LockLostError,
  LockNotAcquiredError,
  LockService,
  LockStoreError,
  Locked,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { until } from '../../support/async.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { PLATFORMS, startHttp, type HttpClient, type Platform } from '../../support/nest/http.js';
import { useWorld } from '../../support/nest/world.js';
import { RedisStore } from 'nest-redis-lock/redis';

const world = useWorld();
const apps = useApps();

const notFound = new NotFoundException('no such user');
const broken = new Error('database on fire');
const thrown: unknown[] = [];

/** What a team's own filter or error tracker sees. */
@Catch()
class Watching extends BaseExceptionFilter implements ExceptionFilter {
  override catch(exception: unknown, host: ArgumentsHost): void {
    thrown.push(exception);
    super.catch(exception, host);
  }
}

@Controller()
class UserController {
  constructor(private readonly locks: LockService) {}

  @Get('pay')
  @Locked('user:<<id>>')
  async pay(@Query('id') id?: string): Promise<string> {
    return world.work(`user:${id}`);
  }

  @Get('missing')
  @Locked('user:missing')
  async missing(): Promise<string> {
    throw notFound;
  }

  @Get('broken')
  @Locked('user:broken')
  async broken(): Promise<string> {
    throw broken;
  }

  @Get('lost')
  @Locked('user:lost', { onLost: 'throw' })
  async lost(): Promise<string> {
    await this.locks.forceUnlock('user:lost');
    return 'done';
  }
}

const start = (platform: Platform, options: Partial<RedisLockModuleOptions> = {}): Promise<HttpClient> => {
  thrown.length = 0;
  const providers = [{ provide: APP_FILTER, useClass: Watching }];
  const metadata = { controllers: [UserController], providers };
  return startHttp(apps, platform, rootModule(world.options(options), metadata));
};

describe.each(PLATFORMS)('lock errors over HTTP on %s', (platform) => {
  it('answer 423 with Retry-After when the lock is taken, and tell neither key nor owner', async () => {
    const http = await start(platform);
    const free = await world.takeElsewhere('user:alice@example.org');
    const answer = await http.get('/pay?id=alice@example.org');
    await free();
    expect(answer.status).toBe(423);
    expect(answer.headers.get('retry-after')).toBe('1');
    expect(await answer.json()).toEqual({
      statusCode: 423,
      code: 'LOCK_TAKEN',
      message: 'The resource is busy. Try again shortly.',
    });
  });

  it('answer with the status and the Retry-After that the module was given', async () => {
    const http = await start(platform, { interceptor: { takenStatus: 409, retryAfterSeconds: 7 } });
    const free = await world.takeElsewhere('user:1');
    const answer = await http.get('/pay?id=1');
    await free();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([409, '7']);
    expect(await answer.json()).toMatchObject({ statusCode: 409, code: 'LOCK_TAKEN' });
  });

  it('answer 423 when too many callers wait already', async () => {
    const http = await start(platform, { waitMs: 20_000, maxWaiters: 1 });
    const free = await world.takeElsewhere('user:1');
    const both = [http.get('/pay?id=1'), http.get('/pay?id=1')];
    const refused = await Promise.race(both);
    expect(refused.status).toBe(423);
    expect(await refused.json()).toMatchObject({ code: 'LOCK_QUEUE_FULL' });
    await free();
    expect((await Promise.all(both)).map(({ status }) => status).sort()).toEqual([200, 423]);
  });

  it('answer 400 for an argument of the client that cannot be part of a key, without showing it', async () => {
    const http = await start(platform);
    const answer = await http.get('/pay');
    expect(answer.status).toBe(400);
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(await answer.json()).toEqual({
      statusCode: 400,
      code: 'LOCK_KEY_INVALID',
      message: 'The value of <<id>> is missing or cannot be used.',
    });
    expect((thrown[0] as HttpException).cause).toBeInstanceOf(LockKeyError);
  });

  it('answer 500 when the lock was lost and onLost is throw', async () => {
    const http = await start(platform);
    const answer = await http.get('/lost');
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ code: 'LOCK_LOST' });
    expect((thrown[0] as HttpException).cause).toBeInstanceOf(LockLostError);
  });

  it('answer 503 when Redis is down, and the method works again when it is back', async () => {
    await using server = await RedisServer.start();
    const http = await start(platform, {
      redis: undefined,
      store: new RedisStore({ redis: server.url, commandTimeoutMs: 1_500 }),
    });
    expect((await http.get('/pay?id=1')).status).toBe(200);
    await server.kill('SIGKILL');
    world.takeRuns();
    const answer = await http.get('/pay?id=1');
    expect(answer.status).toBe(503);
    expect(await answer.json()).toEqual({
      statusCode: 503,
      code: 'LOCK_STORE_FAILED',
      message: 'The service is temporarily unavailable. Try again shortly.',
    });
    expect((thrown[0] as HttpException).cause).toBeInstanceOf(LockStoreError);
    expect(world.takeRuns()).toEqual([]);
    await server.restart();
    await until(async () => (await http.get('/pay?id=1')).status === 200, { what: 'a lock is taken again' });
    await apps.close();
  });

  it('reach filters as an HttpException whose cause is the original error, with its key', async () => {
    const http = await start(platform);
    const free = await world.takeElsewhere('user:1');
    await http.get('/pay?id=1');
    await free();
    expect(thrown).toHaveLength(1);
    const exception = thrown[0] as HttpException;
    expect(exception).toBeInstanceOf(HttpException);
    expect(exception.cause).toBeInstanceOf(LockNotAcquiredError);
    expect(exception.cause).toMatchObject({ key: 'user:1', code: 'LOCK_TAKEN' });
  });

  it('reach filters as they are with interceptor: false', async () => {
    const http = await start(platform, { interceptor: false });
    const free = await world.takeElsewhere('user:1');
    const answer = await http.get('/pay?id=1');
    await free();
    expect(answer.status).toBe(500);
    expect(answer.headers.get('retry-after')).toBeNull();
    expect(thrown).toEqual([expect.any(LockNotAcquiredError)]);
    expect(thrown[0]).toBeInstanceOf(LockError);
    expect(await answer.text()).not.toContain('user:1');
  });
});

describe.each(PLATFORMS)('errors of the method itself on %s', (platform) => {
  it('pass untouched: the same object, with its own status', async () => {
    const http = await start(platform);
    const answer = await http.get('/missing');
    expect(answer.status).toBe(404);
    expect(await answer.json()).toMatchObject({ message: 'no such user' });
    expect(thrown[0]).toBe(notFound);
    expect((await http.get('/broken')).status).toBe(500);
    expect(thrown[1]).toBe(broken);
    expect(await world.holds()).toEqual([]);
  });
});
