import { Controller, Get, Module, UseGuards, type MiddlewareConsumer, type NestModule } from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { LockExceptionFilter, LockService, Locked, RedisLockModule } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { createHttpApp, listen, PLATFORMS, startHttp } from '../../support/nest/http.js';
import { QuotaGuard } from '../../support/nest/quota-guard.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

@Controller()
class GuardedController {
  @Get('guarded')
  @UseGuards(QuotaGuard)
  guarded(): string {
    return 'done';
  }

  @Get('locked')
  @Locked('order')
  async locked(): Promise<string> {
    return 'done';
  }
}

const metadata = { controllers: [GuardedController], providers: [QuotaGuard] };

describe.each(PLATFORMS)('a lock error of a guard on %s', (platform) => {
  it('is a bare 500 with interceptor: false', async () => {
    const http = await startHttp(apps, platform, rootModule(world.options({ interceptor: false }), metadata));
    const free = await world.takeElsewhere('quota:bob');
    const answer = await http.get('/guarded');
    await free();
    expect(answer.status).toBe(500);
    expect(await answer.text()).not.toContain('bob');
  });

  it('answers 423 with Retry-After when LockExceptionFilter is an APP_FILTER', async () => {
    const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };
    const module = rootModule(world.options(), { ...metadata, providers: [QuotaGuard, filter] });
    const http = await startHttp(apps, platform, module);
    const free = await world.takeElsewhere('quota:bob');
    const answer = await http.get('/guarded');
    await free();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([423, '1']);
    expect(await answer.json()).toEqual({
      statusCode: 423,
      code: 'LOCK_TAKEN',
      message: 'The resource is busy. Try again shortly.',
    });
    expect((await http.get('/guarded')).status).toBe(200);
  });

  it('answers as told when LockExceptionFilter is a global filter made by hand', async () => {
    const app = await createHttpApp(apps, platform, rootModule(world.options(), metadata));
    app.useGlobalFilters(
      new LockExceptionFilter(app.getHttpAdapter(), { takenStatus: 409, retryAfterSeconds: 3 }),
    );
    const http = await listen(app);
    const free = await world.takeElsewhere('quota:bob');
    const answer = await http.get('/guarded');
    await free();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([409, '3']);
  });

  it('does the whole mapping with interceptor: false, for handlers too', async () => {
    const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };
    const module = rootModule(world.options({ interceptor: false }), {
      ...metadata,
      providers: [QuotaGuard, filter],
    });
    const http = await startHttp(apps, platform, module);
    const free = await world.takeElsewhere('order');
    const answer = await http.get('/locked');
    await free();
    expect([answer.status, answer.headers.get('retry-after')]).toEqual([423, '1']);
  });

  it('answers 423 for a lock error of middleware', async () => {
    @Module({ controllers: [GuardedController], providers: [QuotaGuard] })
    class WithMiddleware implements NestModule {
      constructor(private readonly locks: LockService) {}

      configure(consumer: MiddlewareConsumer): void {
        consumer
          .apply(async (_request: unknown, _response: unknown, next: (error?: unknown) => void) => {
            await this.locks.withLock('middleware', () => undefined);
            next();
          })
          .forRoutes('locked');
      }
    }
    const http = await startHttp(apps, platform, {
      module: class App {},
      imports: [RedisLockModule.forRoot(world.options()), WithMiddleware],
      providers: [{ provide: APP_FILTER, useClass: LockExceptionFilter }],
    });
    const free = await world.takeElsewhere('middleware');
    const answer = await http.get('/locked');
    await free();
    expect(answer.status).toBe(423);
    expect((await http.get('/locked')).status).toBe(200);
  });

  it('refuses settings that make no sense', () => {
    expect(() => new LockExceptionFilter(undefined, { takenStatus: 200 })).toThrow('takenStatus');
  });
});
