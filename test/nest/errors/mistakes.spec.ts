import {
  Controller,
  Get,
  Injectable,
  Param,
  UseGuards,
  type CanActivate,
  type ModuleMetadata,
} from '@nestjs/common';
import { APP_FILTER } from '@nestjs/core';
import { MessagePattern } from '@nestjs/microservices';
import { beforeEach, describe, expect, it } from 'vitest';
import { LockExceptionFilter, LockService, Locked, type RedisLockModuleOptions } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { createHttpApp, listen, PLATFORMS, type Platform } from '../../support/nest/http.js';
import { RecordingLogger } from '../../support/nest/recording-logger.js';
import { startTcp } from '../../support/nest/tcp.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
let logger: RecordingLogger;
const apps = useApps();
beforeEach(() => (logger = new RecordingLogger()));

@Injectable()
class TenantGuard implements CanActivate {
  @Locked('tenant:<<$tenant>>')
  async canActivate(): Promise<boolean> {
    return true;
  }
}

@Injectable()
@Controller()
class Reports {
  constructor(private readonly locks: LockService) {}

  @Get('report/:id')
  @MessagePattern('report')
  @Locked('tenant:<<$tenant>>:report')
  async report(): Promise<string> {
    return 'done';
  }

  @Get('nested/:id')
  @Locked('nested')
  async nested(@Param('id') id: string): Promise<string> {
    return this.locks.withLock(`nested`, { waitMs: Infinity }, () => id);
  }

  @Get('options')
  async options(): Promise<string> {
    return this.locks.withLock('options', { waitMs: -1 }, () => 'done');
  }

  @Get('guarded/:id')
  @UseGuards(TenantGuard)
  guarded(): string {
    return 'done';
  }

  @Get('taken')
  @Locked('taken')
  async taken(): Promise<string> {
    return 'done';
  }

  @Get('lost')
  @Locked('lost', { onLost: 'throw' })
  async lost(): Promise<string> {
    await this.locks.forceUnlock('lost');
    return 'done';
  }
}

const start = async (
  platform: Platform,
  options: Partial<RedisLockModuleOptions> = {},
  providers: ModuleMetadata['providers'] = [],
) => {
  const metadata = { controllers: [Reports], providers: [TenantGuard, ...providers] };
  const app = await createHttpApp(
    apps,
    platform,
    rootModule(world.options({ context: () => ({}), ...options }), metadata),
  );
  app.useLogger(logger);
  return listen(app);
};

describe.each(PLATFORMS)('a mistake in the code that a client on %s hears of as 500', (platform) => {
  it.each([
    ['report/1', 'LOCK_KEY_INVALID', 'Reports.report', '<<$tenant>> is undefined'],
    ['nested/1', 'LOCK_NOT_REENTRANT', 'Reports.nested', 'waitMs is Infinity'],
    ['options', 'LOCK_CONFIGURATION', 'Reports.options', 'waitMs must be'],
  ])('is in the log, once: %s, %s', async (path, code, where, what) => {
    const http = await start(platform);
    for (const _ of [1, 2]) {
      const answer = await http.get(`/${path}`);
      expect([answer.status, ((await answer.json()) as { code: string }).code]).toEqual([500, code]);
    }
    expect(logger.errors).toEqual([expect.stringContaining(`${where} failed with ${code}: `)]);
    expect(logger.errors[0]).toContain(what);
  });

  it('is in the log once for each method', async () => {
    const http = await start(platform);
    for (const path of ['report/1', 'options', 'nested/1', 'nested/2']) await http.get(`/${path}`);
    expect(logger.errors).toHaveLength(3);
  });

  it('is in the log for each of two methods of one name', async () => {
    const ordersAt = (path: string) => {
      @Controller(path)
      class Orders {
        @Get()
        @Locked('order:<<$tenant>>')
        async order(): Promise<string> {
          return 'done';
        }
      }
      return Orders;
    };
    const app = await createHttpApp(
      apps,
      platform,
      rootModule(world.options({ context: () => ({}) }), { controllers: ['a', 'b'].map(ordersAt) }),
    );
    app.useLogger(logger);
    const http = await listen(app);
    for (const path of ['a', 'b', 'a', 'b']) expect((await http.get(`/${path}`)).status).toBe(500);
    expect(logger.errors).toEqual([1, 2].map(() => expect.stringContaining('Orders.order failed with ')));
  });

  it.each(['guarded/1', 'report/1'])(
    'is in the log when the filter answers, with its route: %s',
    async (path) => {
      const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };
      const http = await start(platform, { interceptor: false }, [filter]);
      for (const _ of [1, 2]) expect((await http.get(`/${path}`)).status).toBe(500);
      const route = `GET /${path.replace('1', ':id')}`;
      expect(logger.errors).toEqual([expect.stringContaining(`${route} failed with LOCK_KEY_INVALID: `)]);
      expect(logger.errors[0]).toContain('<<$tenant>> is undefined');
    },
  );

  it('is all that is logged: not what is taken, and not what was lost, which has a line of its own', async () => {
    const http = await start(platform);
    const free = await world.takeElsewhere('taken');
    expect((await http.get('/taken')).status).toBe(423);
    await free();
    expect((await http.get('/lost')).status).toBe(500);
    expect(logger.errors).toEqual([]);
  });
});

describe('a mistake in the code that a caller of a microservice hears of', () => {
  it('is in the log, once', async () => {
    const client = await startTcp(
      apps,
      rootModule(world.options({ context: () => ({}) }), { controllers: [Reports] }),
      logger,
    );
    for (const _ of [1, 2]) {
      await expect(client.send('report', {})).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    }
    expect(logger.errors).toEqual([expect.stringContaining('Reports.report failed with LOCK_KEY_INVALID: ')]);
  });
});
