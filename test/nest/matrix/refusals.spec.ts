import { Injectable, Module } from '@nestjs/common';
import { NestFactory } from '@nestjs/core';
import { Test } from '@nestjs/testing';
import { describe, expect, it, vi } from 'vitest';
import {
  LockConfigurationError,
  LockService,
  Locked,
  RedisLockModule,
  getLockServiceToken,
} from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

@Injectable()
class Orders {
  @Locked('order:<<id>>')
  async pay(id: string): Promise<string> {
    return world.work(`order:${id}`);
  }
}

@Injectable()
class Billing {
  @Locked('invoice:<<id>>', { service: 'billing' })
  async bill(id: string): Promise<string> {
    return world.work(`invoice:${id}`);
  }
}

const startError = async (providers: (typeof Orders | typeof Billing)[]): Promise<Error> => {
  @Module({ providers })
  class AppModule {}
  const starting = NestFactory.createApplicationContext(AppModule, { logger: false, abortOnError: false });
  return starting.then(
    () => expect.fail('the app started'),
    (error: Error) => error,
  );
};

describe('a missing module', () => {
  it('keeps the app from starting, and the error says what to import', async () => {
    const { message } = await startError([Orders]);
    expect(message).toContain('import RedisLockModule.forRoot() into the root module');
    expect(message).toContain('Orders');
  });

  it('keeps the app from starting when only the named one is missing', async () => {
    const { message } = await startError([Billing]);
    expect(message).toContain(`import RedisLockModule.forRoot({ name: 'billing' }) into the root module`);
  });
});

describe('a mocked lock service', () => {
  const mocked = async (mock: unknown): Promise<Orders> => {
    const module = await Test.createTestingModule({ providers: [Orders] })
      .useMocker((token) => {
        expect(token).toBe(getLockServiceToken());
        return mock;
      })
      .compile();
    return apps.add(module).get(Orders);
  };

  it('that does not run the body is refused, instead of returning undefined', async () => {
    const orders = await mocked({ withLock: vi.fn() });
    await expect(orders.pay('1')).rejects.toThrow(LockConfigurationError);
    await expect(orders.pay('1')).rejects.toThrow(/Orders\.pay.*mock.*nest-redis-lock\/testing/s);
    expect(world.takeRuns()).toEqual([]);
  });

  it('that resolves to something is refused as well', async () => {
    const orders = await mocked({ withLock: async () => 'paid' });
    await expect(orders.pay('1')).rejects.toThrow(/mock/);
  });

  it('without withLock is refused', async () => {
    const orders = await mocked({});
    await expect(orders.pay('1')).rejects.toThrow(/Orders\.pay.*mock without withLock/);
  });

  it('that runs the body is good enough', async () => {
    const orders = await mocked({
      withLock: (_keys: string[], _options: object, body: () => Promise<unknown>) => body(),
    });
    await expect(orders.pay('1')).resolves.toBe('done');
    expect(world.takeRuns()).toEqual([{ key: 'order:1', locked: false }]);
  });
});

describe('overriding in a test module', () => {
  it('puts a mock in the place of the whole locked provider', async () => {
    const module = await Test.createTestingModule({
      imports: [rootModule(world.options(), { providers: [Orders] })],
    })
      .overrideProvider(Orders)
      .useValue({ pay: async () => 'mocked' })
      .compile();
    apps.add(await module.init());
    await expect(module.get(Orders, { strict: false }).pay('1')).resolves.toBe('mocked');
    expect(world.takeRuns()).toEqual([]);
  });

  it('locks a subclass that is put in its place', async () => {
    class TestOrders extends Orders {}
    const module = await Test.createTestingModule({
      imports: [rootModule(world.options(), { providers: [Orders] })],
    })
      .overrideProvider(Orders)
      .useClass(TestOrders)
      .compile();
    apps.add(await module.init());
    const orders = module.get(Orders, { strict: false });
    expect(orders).toBeInstanceOf(TestOrders);
    await world.expectLocked('order:1', () => orders.pay('1'));
  });

  it('serves the locked methods with an overridden LockService', async () => {
    const taken: unknown[] = [];
    const module = await Test.createTestingModule({
      imports: [RedisLockModule.forRoot(world.options())],
      providers: [Orders],
    })
      .overrideProvider(getLockServiceToken())
      .useValue({
        withLock: (keys: unknown, _options: object, body: () => Promise<unknown>) => {
          taken.push(keys);
          return body();
        },
      })
      .compile();
    apps.add(await module.init());
    await module.get(Orders).pay('1');
    expect(taken).toEqual([['order:1']]);
  });

  it('still injects the real LockService by its class', async () => {
    const module = await Test.createTestingModule({ imports: [rootModule(world.options())] }).compile();
    apps.add(await module.init());
    await expect(module.get(LockService).withLock('x', async () => world.isTaken('x'))).resolves.toBe(true);
  });
});
