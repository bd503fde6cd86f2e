import { AsyncLocalStorage } from 'node:async_hooks';
import {
  Controller,
  Get,
  Headers,
  Injectable,
  Req,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type MiddlewareConsumer,
  type NestModule,
  Module,
} from '@nestjs/common';
import { MessagePattern } from '@nestjs/microservices';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { describe, expect, it } from 'vitest';
import { LockKeyError, LockService, Locked, currentLease } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { PLATFORMS, startHttp, type HttpClient } from '../../support/nest/http.js';
import { startTcp } from '../../support/nest/tcp.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

const keys = async (..._args: unknown[]): Promise<readonly string[]> => currentLease().keys;

@Injectable()
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Record<string, unknown>>();
    request['user'] = { id: 'alice' };
    return true;
  }
}

@Controller()
@UseGuards(AuthGuard)
class CartController {
  @Get('user')
  @Locked('cart:<<request.user.id>>')
  user(@Req() request: unknown): Promise<readonly string[]> {
    return keys(request);
  }

  @Get('item/:item')
  @Locked('item:<<request.params.item>>:<<request.query.color>>:<<headers.x-id>>')
  item(@Req() request: unknown, @Headers() headers: unknown): Promise<readonly string[]> {
    return keys(request, headers);
  }
}

describe.each(PLATFORMS)('a key of the request, which the handler is given, on %s', (platform) => {
  const start = () =>
    startHttp(apps, platform, rootModule(world.options(), { controllers: [CartController] }));
  const item = async (http: HttpClient, name: string): Promise<unknown> =>
    (await http.get(`/item/${name}?color=red`, { headers: { 'X-Id': 'h' } })).json();

  it('has what a guard put on the request', async () => {
    const http = await start();
    expect(await (await http.get('/user')).json()).toEqual(['cart:alice']);
  });

  it('has parameters, the query and headers, and keeps the requests of several users apart', async () => {
    const http = await start();
    const replies = await Promise.all(['a', 'b', 'c', 'd'].map((name) => item(http, name)));
    expect(replies).toEqual(['a', 'b', 'c', 'd'].map((name) => [`item:${name}:red:h`]));
  });
});

describe('a class is not loaded whose key', () => {
  it('reads the request by its context', () => {
    const load = (): unknown => {
      class Carts {
        @Locked('cart:<<$request.headers.x-user>>')
        async pay(): Promise<void> {}
      }
      return Carts;
    };
    expect(load).toThrow(LockKeyError);
    expect(load).toThrow(
      /^Carts\.pay\(\): .* @Headers\(\) headers with <<headers\.x-user>>, or @Req\(\) req with /,
    );
  });

  it.each(['headers', 'request'])('names a header in upper case: %s', (name) => {
    const load = (): unknown => {
      class Carts {
        @Get()
        @Locked(name === 'headers' ? 'cart:<<headers.X-User>>' : 'cart:<<request.headers.X-User>>')
        async pay(@Headers() headers: unknown, @Req() request: unknown): Promise<void> {
          await keys(headers, request);
        }
      }
      return Carts;
    };
    expect(load).toThrow(/header names are in lower case\. Write <<(request\.)?headers\.x-user>>/);
  });
});

const tenants = new AsyncLocalStorage<string>();

@Controller()
class TenantController {
  @Get('tenant')
  @Locked('<<$tenant>>:order')
  http(): Promise<readonly string[]> {
    return keys();
  }

  @MessagePattern('tenant')
  @Locked('<<$tenant>>:order')
  rpc(): Promise<readonly string[]> {
    return keys();
  }
}

@Injectable()
class TenantJobs {
  readonly seen: (readonly string[])[] = [];

  @Cron('0 0 0 1 1 *', { name: 'tenant' })
  @Locked('<<$tenant>>:job')
  async run(): Promise<void> {
    this.seen.push(await keys());
  }
}

/** As `nestjs-cls` and others do: a store that middleware opens. */
@Module({ controllers: [TenantController] })
class TenantModule implements NestModule {
  configure(consumer: MiddlewareConsumer): void {
    consumer
      .apply((request: { headers: Record<string, string> }, _response: unknown, next: () => void) =>
        tenants.run(request.headers['x-tenant'] ?? 'none', next),
      )
      .forRoutes('tenant');
  }
}

describe('<<$name>> from context', () => {
  const options = () => world.options({ context: () => ({ tenant: tenants.getStore() ?? 'acme' }) });

  it.each(PLATFORMS)('is asked at every HTTP call on %s', async (platform) => {
    const http = await startHttp(apps, platform, rootModule(options(), { imports: [TenantModule] }));
    const ask = async (tenant: string) =>
      (await http.get('/tenant', { headers: { 'x-tenant': tenant } })).json();
    expect(await Promise.all([ask('one'), ask('two')])).toEqual([['one:order'], ['two:order']]);
  });

  it('is asked for messages', async () => {
    const client = await startTcp(apps, rootModule(options(), { controllers: [TenantController] }));
    expect(await client.send('tenant', {})).toEqual(['acme:order']);
  });

  it('is asked for cron jobs', async () => {
    const imports = [ScheduleModule.forRoot()];
    const app = await apps.context(rootModule(options(), { imports, providers: [TenantJobs] }));
    const job = app.get(SchedulerRegistry).getCronJob('tenant');
    const released = new Promise((resolve) => app.get(LockService).on('released', resolve));
    await job.fireOnTick();
    await released;
    expect(app.get(TenantJobs).seen).toEqual([['acme:job']]);
  });

  it('is a LockKeyError where it gives no such name', async () => {
    const app = await apps.context(
      rootModule(world.options({ context: () => ({}) }), { providers: [TenantJobs] }),
    );
    await expect(app.get(TenantJobs).run()).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
    expect(app.get(TenantJobs).seen).toEqual([]);
  });

  it('does not read what every object has', async () => {
    class Odd {
      @Locked('x:<<$constructor>>')
      async run(): Promise<void> {}
    }
    const app = await apps.context(rootModule(options(), { providers: [Odd] }));
    await expect(app.get(Odd).run()).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
  });
});
