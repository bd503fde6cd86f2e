import 'reflect-metadata';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import {
  Controller,
  Get,
  Inject,
  Param,
  Post,
  UseInterceptors,
  type NestInterceptor,
  type Type,
} from '@nestjs/common';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { ClientsModule, Transport } from '@nestjs/microservices';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { currentLease, LockService } from 'nest-redis-lock';
import { RedisLockTestingModule, TestingLockService } from 'nest-redis-lock/testing';
import { afterEach, beforeAll, beforeEach, describe, expect, it, vi } from 'vitest';
import { freePort, LOOPBACK } from '../support/loopback.js';
import { Apps } from '../support/nest/apps.js';
import { listen, type HttpClient } from '../support/nest/http.js';
import { RecordingLogger } from '../support/nest/recording-logger.js';
import { RedisServer } from '../support/servers/redis-server.js';
import { runPage } from './recipes.js';
import * as world from './world.js';

const PAGE = 'docs/recipes/everyday-nest.md';
/** What a call is told of a key that another process holds. */
const TAKEN = { statusCode: 423, code: 'LOCK_TAKEN' };

const apps = new Apps();
let declared: Record<string, unknown>;

const classOf = <T = object>(name: string): Type<T> => {
  if (!(name in declared)) throw new Error(`${PAGE} declares no ${name}`);
  return declared[name] as Type<T>;
};

beforeAll(async () => {
  declared = await runPage(PAGE, { host: LOOPBACK, port: 1 });
});
beforeEach(() => {
  world.calls.length = 0;
  world.during.clear();
});
afterEach(async () => {
  await apps.close();
  vi.unstubAllEnvs();
});

const names = (): string[] => world.calls.map(({ name }) => name);

const quiet = (module: TestingModuleBuilder): TestingModuleBuilder => module.setLogger(new RecordingLogger());

const LOCKS = RedisLockTestingModule.forRoot({ maxWaitMs: 20 });

/** Starts an HTTP app whose requests have the user 7. */
const startHttp = async (
  metadata: Parameters<typeof Test.createTestingModule>[0],
): Promise<{ http: HttpClient; locks: TestingLockService }> => {
  const module = await quiet(
    Test.createTestingModule({ ...metadata, imports: [LOCKS, ...(metadata.imports ?? [])] }),
  ).compile();
  const app = apps.add(module.createNestApplication());
  app.use((request: { user?: object }, _response: unknown, next: () => void) => {
    request.user = { id: '7' };
    next();
  });
  return { http: await listen(app), locks: module.get(TestingLockService) };
};

/** Calls while another process holds the key, and returns the reply. */
const whileHeld = async <T>(locks: TestingLockService, key: string, call: () => Promise<T>): Promise<T> => {
  await using _outside = await locks.testing.hold(key);
  return await call();
};

describe('a lock in a guard', () => {
  it('has ended when the handler begins, which has a lock of its own', async () => {
    const { http, locks } = await startHttp({
      controllers: [classOf('ReportController')],
      providers: [world.Credits, world.StockRepository],
    });
    const held: string[][] = [];
    for (const name of ['take', 'report'])
      world.during.set(name, async () => void held.push(locks.held().map(({ key }) => key)));
    expect((await http.post('/reports', {})).status).toBe(201);
    expect(names()).toEqual(['take', 'report']);
    expect(held).toEqual([['credits:7'], ['report:7']]);
    for (const key of ['credits:7', 'report:7']) {
      const reply = await whileHeld(locks, key, () => http.post('/reports', {}));
      expect(await reply.json()).toMatchObject(TAKEN);
    }
    expect(names()).toEqual(['take', 'report', 'take']);
  });
});

describe('a lock in an interceptor', () => {
  it('is held until the handler has ended', async () => {
    @Controller('documents')
    @UseInterceptors(classOf<NestInterceptor>('OneAtATime'))
    class DocumentController {
      constructor(@Inject(LockService) private readonly locks: LockService) {}

      @Get(':id')
      read(@Param('id') id: string): Promise<boolean> {
        return this.locks.isLocked(`document:${id}`);
      }

      @Post(':id')
      write(): void {}
    }
    const { http, locks } = await startHttp({ controllers: [DocumentController] });
    expect(await (await http.get('/documents/5')).json()).toBe(true);
    expect(await locks.isLocked('document:5')).toBe(false);
    expect((await http.post('/documents/5', {})).status).toBe(201);
    const reply = await whileHeld(locks, 'document:5', () => http.get('/documents/5'));
    expect(await reply.json()).toMatchObject(TAKEN);
  });
});

describe('a lock in a resolver', () => {
  it('tells the client the code and the status of the error', async () => {
    @Resolver()
    class Pieces {
      @Query(() => String)
      sku(): string {
        return 'tea';
      }
    }
    const { http, locks } = await startHttp({
      imports: [GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true })],
      providers: [classOf('CartResolver'), Pieces, world.StockRepository],
    });
    const reserve = async (): Promise<unknown> =>
      (await http.post('/graphql', { query: 'mutation { reserve(sku: "tea") }' })).json();
    expect(await reserve()).toEqual({ data: { reserve: -1 } });
    expect(await whileHeld(locks, 'sku:tea', reserve)).toMatchObject({
      errors: [{ extensions: { code: 'LOCK_TAKEN', status: 423 } }],
    });
    expect(names()).toEqual(['add']);
  });
});

describe('a lock in a message handler', () => {
  it('is an HTTP error with its status at the gateway, and another failure stays what it is', async () => {
    const port = await freePort();
    const options = { host: LOOPBACK, port };
    const handler = await quiet(
      Test.createTestingModule({
        imports: [LOCKS],
        controllers: [classOf('RefundHandler')],
        providers: [world.StockRepository],
      }),
    ).compile();
    await apps.add(handler.createNestMicroservice({ transport: Transport.TCP, options })).listen();
    const { http } = await startHttp({
      imports: [ClientsModule.register([{ name: 'REFUNDS', transport: Transport.TCP, options }])],
      controllers: [classOf('RefundGateway')],
    });
    const refund = async (): Promise<unknown> => (await http.post('/refunds/9', {})).text();
    expect(await refund()).toBe('refunded 9');
    const reply = await whileHeld(handler.get(TestingLockService), 'refund:9', refund);
    expect(JSON.parse(reply as string)).toMatchObject(TAKEN);
    expect(reply).not.toContain('refund:9');
    world.during.set('report', () => Promise.reject(new Error('no paper')));
    expect(await refund()).toContain('"statusCode":500');
  });
});

describe('a lock in a request-scoped provider', () => {
  it('is the same for two requests of one user, and another one for another user', async () => {
    const checkout = classOf<{ pay(): Promise<void> }>('Checkout');

    @Controller('checkout')
    class CheckoutController {
      constructor(@Inject(checkout) private readonly checkout: { pay(): Promise<void> }) {}

      @Post()
      pay(): Promise<void> {
        return this.checkout.pay();
      }
    }
    const { http, locks } = await startHttp({
      controllers: [CheckoutController],
      providers: [checkout, world.StockRepository],
    });
    const pay = () => http.post('/checkout', {});
    expect(await (await whileHeld(locks, 'checkout:7', pay)).json()).toMatchObject(TAKEN);
    expect((await whileHeld(locks, 'checkout:8', pay)).status).toBe(201);
    expect(names()).toEqual(['report']);
  });
});

describe('a lock of an object from a factory', () => {
  it('is acquired, and the method of an object that Nest does not know rejects', async () => {
    type Warehouse = { count(): Promise<void> };
    const module = await quiet(
      Test.createTestingModule({ imports: [LOCKS, classOf('WarehouseModule')] }),
    ).compile();
    apps.add(await module.init());
    const keys: string[] = [];
    module.get(LockService).on('acquired', ({ key }) => keys.push(key));
    await module.get<Warehouse>('WAREHOUSE_EU').count();
    expect(keys).toEqual(['warehouse:eu']);
    const unknown = new (classOf<Warehouse>('Warehouse'))('us', world.stock);
    await expect(unknown.count()).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    expect(names()).toEqual(['report']);
  });
});

describe('options from ConfigService', () => {
  it('are those of the locks and of one method', async () => {
    const server = await RedisServer.start();
    apps.add({ close: () => server.stop() });
    vi.stubEnv('REDIS_URL', server.url);
    vi.stubEnv('WAIT_MS', '30');
    vi.stubEnv('IMPORT_LEASE_MS', '60000');
    const module = await quiet(Test.createTestingModule({ imports: [classOf('PriceModule')] })).compile();
    apps.add(await module.init());
    const locks = module.get(LockService);
    world.during.set('report', async () => {
      // More than the watchdog gives.
      expect(currentLease().remainingMs()).toBeGreaterThan(45_000);
      await expect(locks.acquire('price-import')).rejects.toThrow('(waitMs: 30)');
    });
    await module.get(classOf<{ run(): Promise<void> }>('PriceImport')).run();
    expect(names()).toEqual(['report']);
  });
});
