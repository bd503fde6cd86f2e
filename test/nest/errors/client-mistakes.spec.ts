import {
  Body,
  Controller,
  createParamDecorator,
  Get,
  Headers,
  Injectable,
  Param,
  Post,
  Query,
  Req,
} from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { APP_FILTER } from '@nestjs/core';
import { Args, Context, GraphQLModule, Query as GraphQLQuery, Resolver } from '@nestjs/graphql';
import { MessagePattern, Payload } from '@nestjs/microservices';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  Limited,
  LockExceptionFilter,
  Locked,
  currentLease,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { createHttpApp, listen, PLATFORMS, type Platform } from '../../support/nest/http.js';
import { RecordingLogger } from '../../support/nest/recording-logger.js';
import { startTcp } from '../../support/nest/tcp.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();
let logger: RecordingLogger;
beforeEach(() => (logger = new RecordingLogger()));

const keys = async (..._args: unknown[]): Promise<readonly string[]> => currentLease().keys;

const Tenant = createParamDecorator(() => undefined);

@Injectable()
class Stock {
  @Locked('stock:<<sku>>')
  reserve(sku: unknown): Promise<readonly string[]> {
    return keys(sku);
  }
}

@Controller()
class Orders {
  constructor(private readonly stock: Stock) {}

  @Get('query')
  @Locked('order:<<id>>')
  query(@Query('id') id: unknown): Promise<readonly string[]> {
    return keys(id);
  }

  @Get('param/:id')
  @Limited('order:<<0>>', { permits: 1 })
  param(@Param('id') id: string): Promise<readonly string[]> {
    return keys(id);
  }

  @Get('header')
  @Locked('order:<<tenant>>')
  header(@Headers('X-Tenant') tenant?: string): Promise<readonly string[]> {
    return keys(tenant);
  }

  @Post('body')
  @Locked('order:<<order.id>>')
  body(@Body() order: unknown): Promise<readonly string[]> {
    return keys(order);
  }

  @Post('request-body')
  @Locked('order:<<request.body.id>>')
  requestBody(@Req() request: unknown): Promise<readonly string[]> {
    return keys(request);
  }

  @Get('request')
  @Locked('order:<<request.headers.x-tenant>>:<<request.query.id|none>>')
  request(@Req() request: unknown): Promise<readonly string[]> {
    return keys(request);
  }

  @Get('request/:id')
  @Limited('order:<<0.query.kind>>:<<0.params.id>>', { permits: 1 })
  requestParam(@Req() request: unknown): Promise<readonly string[]> {
    return keys(request);
  }

  @Get('headers')
  @Locked('order:<<headers.x-tenant>>')
  headers(@Headers() headers: unknown): Promise<readonly string[]> {
    return keys(headers);
  }

  @Get('upper-case')
  @Locked('order:<<0.X-Tenant>>')
  upperCase(@Headers() headers: unknown): Promise<readonly string[]> {
    return keys(headers);
  }

  @Get('custom')
  @Locked('order:<<tenant>>')
  custom(@Tenant() tenant: unknown): Promise<readonly string[]> {
    return keys(tenant);
  }

  @Get('user')
  @Locked('order:<<request.user.id>>')
  user(@Req() request: unknown): Promise<readonly string[]> {
    return keys(request);
  }

  @Get('wrong-part')
  @Locked('order:<<request.header.id>>')
  wrongPart(@Req() request: unknown): Promise<readonly string[]> {
    return keys(request);
  }

  @Get('function')
  @Locked((id: string) => id)
  function(@Query('id') id: string): Promise<readonly string[]> {
    return keys(id);
  }

  @Get('whole')
  @Locked('order:<<all>>')
  whole(@Query() all: unknown): Promise<readonly string[]> {
    return keys(all);
  }

  @Get('service')
  service(@Query('sku') sku: string): Promise<readonly string[]> {
    return this.stock.reserve(sku);
  }

  @Get('direct')
  direct(): Promise<readonly string[]> {
    return this.query(undefined);
  }

  @Get('direct-request')
  directRequest(): Promise<readonly string[]> {
    return this.request({ headers: {}, query: {} });
  }

  @MessagePattern('message')
  @Locked('order:<<id>>')
  message(@Payload('id') id: unknown): Promise<readonly string[]> {
    return keys(id);
  }
}

const metadata = { controllers: [Orders], providers: [Stock] };
const filter = { provide: APP_FILTER, useClass: LockExceptionFilter };

const start = async (platform: Platform, options: Partial<RedisLockModuleOptions> = {}) => {
  const filtered = { controllers: [FilterOrders], providers: [filter] };
  const module = rootModule(world.options(options), options.interceptor === false ? filtered : metadata);
  const app = await createHttpApp(apps, platform, module);
  app.useLogger(logger);
  return listen(app);
};

/** Handlers whose keys need no interceptor. */
@Controller()
class FilterOrders {
  @Get('query')
  @Locked('order:<<id>>')
  query(@Query('id') id: string): Promise<readonly string[]> {
    return keys(id);
  }

  @Get('custom')
  @Locked('order:<<tenant>>')
  custom(@Tenant() tenant: unknown): Promise<readonly string[]> {
    return keys(tenant);
  }
}

const mistake = (placeholder: string) => ({
  statusCode: 400,
  code: 'LOCK_KEY_INVALID',
  message: `The value of ${placeholder} is missing or cannot be used.`,
});

describe.each(PLATFORMS)('a value of the client that cannot be part of a key, on %s', (platform) => {
  it.each([
    ['/query', '<<id>>'],
    ['/query?id=', '<<id>>'],
    ['/query?id=1&id=2', '<<id>>'],
    ['/header', '<<tenant>>'],
    ['/headers', '<<headers.x-tenant>>'],
    ['/request?id=7', '<<request.headers.x-tenant>>'],
    ['/request/7', '<<0.query.kind>>'],
    ['/request/7?kind=a&kind=b', '<<0.query.kind>>'],
  ])('is 400, with the placeholder only: GET %s', async (path, placeholder) => {
    const http = await start(platform);
    for (const _ of [1, 2]) {
      const reply = await http.get(path);
      expect([reply.status, await reply.json()]).toEqual([400, mistake(placeholder)]);
    }
    expect(logger.errors).toEqual([]);
    const debug = logger.debugLines.filter((line) => line.includes('refused a value of its client'));
    expect(debug).toHaveLength(2);
    expect(debug[0]).toContain(placeholder);
  });

  it.each([
    ['/body', {}, '<<order.id>>'],
    ['/body', { id: { secret: 1 } }, '<<order.id>>'],
    ['/body', { id: '\ud800' }, '<<order.id>>'],
    ['/body', { id: 'x'.repeat(70_000) }, '<<order.id>>'],
    ['/request-body', {}, '<<request.body.id>>'],
    ['/request-body', { id: ['x'] }, '<<request.body.id>>'],
  ])('is 400 in a body: POST %s %o', async (path, body, placeholder) => {
    const http = await start(platform);
    const reply = await http.post(path, body);
    expect([reply.status, await reply.json()]).toEqual([400, mistake(placeholder)]);
  });

  it.each([
    ['/query?id=a', 'order:a'],
    ['/param/7', 'order:7'],
    ['/request/7?kind=tea', 'order:tea:7'],
  ])('has a key otherwise: GET %s', async (path, key) => {
    const http = await start(platform);
    expect(await (await http.get(path)).json()).toEqual([key]);
  });

  it('has the key of its default where it is missing', async () => {
    const http = await start(platform);
    const headers = { 'x-tenant': 't' };
    for (const query of ['', '?id=', '?id=none']) {
      expect(await (await http.get(`/request${query}`, { headers })).json()).toEqual(['order:t:none']);
    }
  });

  it.each([
    ...['/custom', '/user', '/wrong-part', '/upper-case', '/function', '/whole', '/service'],
    ...['/direct', '/direct-request'],
  ])('is a 500 where the code is to blame: GET %s', async (path) => {
    const http = await start(platform);
    const reply = await http.get(path);
    const { message } = (await reply.json()) as { message: string };
    expect([reply.status, message]).toEqual([500, 'Internal server error']);
    expect(logger.errors).toHaveLength(1);
  });

  it('is 400 when the filter maps the errors', async () => {
    const http = await start(platform, { interceptor: false });
    const reply = await http.get('/query');
    expect([reply.status, await reply.json()]).toEqual([400, mistake('<<id>>')]);
    expect((await http.get('/custom')).status).toBe(500);
    expect(logger.errors).toHaveLength(1);
  });
});

describe('a value that cannot be part of a key, in GraphQL', () => {
  @Resolver()
  class OrderResolver {
    @GraphQLQuery(() => [String])
    @Locked('order:<<context.req.headers.x-tenant>>')
    whole(@Context() context: unknown): Promise<readonly string[]> {
      return keys(context);
    }

    @GraphQLQuery(() => [String])
    @Locked('order:<<request.headers.x-tenant>>')
    part(@Context('req') request: unknown): Promise<readonly string[]> {
      return keys(request);
    }

    @GraphQLQuery(() => [String])
    @Locked('order:<<context.req.user.id>>')
    user(@Context() context: unknown): Promise<readonly string[]> {
      return keys(context);
    }

    @GraphQLQuery(() => [String])
    @Locked('order:<<id>>')
    argument(@Args('id', { nullable: true }) id: string): Promise<readonly string[]> {
      return keys(id);
    }
  }

  const ask = async (query: string, headers: Record<string, string> = {}): Promise<unknown> => {
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true });
    const module = rootModule(world.options(), { imports: [graphql], providers: [OrderResolver] });
    const app = await createHttpApp(apps, 'express', module);
    app.useLogger(logger);
    const http = await listen(app);
    const reply = await http.get('/graphql', {
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
      body: JSON.stringify({ query }),
    });
    return reply.json();
  };

  it.each([
    ['whole', '<<context.req.headers.x-tenant>>'],
    ['part', '<<request.headers.x-tenant>>'],
  ])('is 400 for the request of the context: %s', async (name, placeholder) => {
    const { message, code } = mistake(placeholder);
    expect(await ask(`{ ${name} }`)).toMatchObject({
      errors: [{ message, extensions: { code, status: 400 } }],
    });
    expect(logger.errors).toEqual([]);
    expect(await ask(`{ ${name} }`, { 'x-tenant': 't' })).toEqual({ data: { [name]: ['order:t'] } });
  });

  it.each(['user', 'argument'])('is 500 for anything else: %s', async (name) => {
    expect(await ask(`{ ${name} }`)).toMatchObject({ errors: [{ extensions: { status: 500 } }] });
    expect(logger.errors).toHaveLength(1);
  });
});

describe('a value that cannot be part of a key, in a microservice', () => {
  it('is a mistake in the code for the payload of a message', async () => {
    const client = await startTcp(apps, rootModule(world.options(), metadata), logger);
    await expect(client.send('message', {})).rejects.toMatchObject({
      status: 500,
      code: 'LOCK_KEY_INVALID',
    });
    expect(logger.errors).toHaveLength(1);
  });
});
