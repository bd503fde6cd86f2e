import { AsyncLocalStorage } from 'node:async_hooks';
import {
  Controller,
  Get,
  Injectable,
  UseGuards,
  type CanActivate,
  type ExecutionContext,
  type MiddlewareConsumer,
  type NestModule,
  Module,
} from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { MessagePattern } from '@nestjs/microservices';
import { Cron, ScheduleModule, SchedulerRegistry } from '@nestjs/schedule';
import { describe, expect, it } from 'vitest';
import { LockService, Locked, currentLease } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { PLATFORMS, startHttp } from '../../support/nest/http.js';
import { startTcp } from '../../support/nest/tcp.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

const keys = async (): Promise<readonly string[]> => currentLease().keys;

@Injectable()
class AuthGuard implements CanActivate {
  canActivate(context: ExecutionContext): boolean {
    const request = context.switchToHttp().getRequest<Record<string, unknown>>();
    request['user'] = { id: 'alice' };
    return true;
  }
}

@Injectable()
class Carts {
  @Locked('cart:<<$request.user.id>>')
  keys(): Promise<readonly string[]> {
    return keys();
  }
}

@Controller()
@UseGuards(AuthGuard)
class CartController {
  constructor(private readonly carts: Carts) {}

  @Get('user')
  @Locked('cart:<<$request.user.id>>')
  user(): Promise<readonly string[]> {
    return keys();
  }

  @Get('item/:item')
  @Locked('item:<<$request.params.item>>:<<$request.query.color>>')
  item(): Promise<readonly string[]> {
    return keys();
  }

  @Get('deep')
  deep(): Promise<readonly string[]> {
    return this.carts.keys();
  }

  @Get('unknown')
  @Locked('cart:<<$request.nobody.id>>')
  unknown(): Promise<readonly string[]> {
    return keys();
  }
}

describe.each(PLATFORMS)('<<$request…>> on %s', (platform) => {
  const start = () =>
    startHttp(
      apps,
      platform,
      rootModule(world.options(), { controllers: [CartController], providers: [Carts] }),
    );

  it('reads what a guard put on the request, in the handler and in services below it', async () => {
    const http = await start();
    expect(await (await http.get('/user')).json()).toEqual(['cart:alice']);
    expect(await (await http.get('/deep')).json()).toEqual(['cart:alice']);
  });

  it('reads parameters and the query', async () => {
    const http = await start();
    expect(await (await http.get('/item/7?color=red')).json()).toEqual(['item:7:red']);
  });

  it('refuses what the request does not have', async () => {
    const http = await start();
    const answer = await http.get('/unknown');
    expect(answer.status).toBe(500);
    expect(await answer.json()).toMatchObject({ code: 'LOCK_KEY_INVALID' });
  });

  it('keeps the requests of several users apart', async () => {
    const http = await start();
    const answers = await Promise.all(
      ['a', 'b', 'c', 'd'].map(async (item) => (await http.get(`/item/${item}?color=red`)).json()),
    );
    expect(answers).toEqual(['a', 'b', 'c', 'd'].map((item) => [`item:${item}:red`]));
  });
});

describe('<<$request…>> elsewhere', () => {
  it('reads the request of a GraphQL operation', async () => {
    @Resolver()
    class CartResolver {
      @Query(() => [String])
      @Locked('cart:<<$request.headers.host>>')
      cart(): Promise<readonly string[]> {
        return keys();
      }
    }
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true });
    const module = rootModule(world.options(), { imports: [graphql], providers: [CartResolver] });
    const http = await startHttp(apps, 'express', module);
    const answer = await http.post('/graphql', { query: '{ cart }' });
    expect(await answer.json()).toEqual({ data: { cart: [`cart:127.0.0.1%3A${http.port}`] } });
  });

  it('is a LockKeyError where there is no request, and the method does not run', async () => {
    const app = await apps.context(rootModule(world.options(), { providers: [Carts] }));
    await expect(app.get(Carts).keys()).rejects.toMatchObject({
      code: 'LOCK_KEY_INVALID',
      message: expect.stringContaining('Carts.keys') as string,
    });
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
