// Mocking libraries and a class with locked methods, as people combine them who do not know this library yet.
import 'reflect-metadata';
import { Injectable, type Type } from '@nestjs/common';
import { Test, type TestingModuleBuilder } from '@nestjs/testing';
import { RedisLockTestingModule } from 'nest-redis-lock/testing';
import { Observable, of } from 'rxjs';
import { describe, expect, it, vi } from 'vitest';
import { Limited, LockConfigurationError, LockService, Locked, getLockServiceToken } from 'nest-redis-lock';

@Injectable()
class Payments {
  async charge(): Promise<string> {
    return 'charged';
  }
}

let bodies = 0;

@Injectable()
class Orders {
  constructor(private readonly payments: Payments) {}

  @Locked('order:<<id>>')
  async pay(id: string): Promise<string> {
    bodies++;
    return `${id} ${await this.payments.charge()}`;
  }

  @Locked('orders')
  all(): Observable<number> {
    return of(++bodies);
  }

  @Locked('orders')
  async *each(): AsyncGenerator<number> {
    yield ++bodies;
  }

  @Limited('bank', { permits: 3 })
  async limited(): Promise<number> {
    return ++bodies;
  }

  price(): number {
    return 7;
  }
}

@Injectable()
class Reports {
  constructor(private readonly locks: LockService) {}

  @Locked('report', { service: 'reports' })
  async write(): Promise<boolean> {
    return this.locks.isLocked('report');
  }
}

/**
 * A mock of everything, as @golevelup/ts-vitest and ts-jest make it: `createMock(token)` puts a Proxy around the token.
 * Each property of the proxy is a function that returns another such mock.
 */
const createMock = (partial: object = {}): object => {
  const known = new Map<PropertyKey, unknown>();
  return new Proxy(partial, {
    get: (target, name) => {
      if (name === 'then' || name === 'constructor' || typeof name === 'symbol') return undefined;
      if (!known.has(name)) {
        const given = (target as Record<PropertyKey, unknown>)[name];
        known.set(name, given ?? vi.fn(() => createMock()));
      }
      return known.get(name);
    },
  });
};

const compile = async (builder: TestingModuleBuilder): Promise<Orders> =>
  (await builder.compile()).get(Orders);

const expectRefused = async (call: () => Promise<unknown>): Promise<void> => {
  bodies = 0;
  const calling = call();
  await expect(calling).rejects.toThrow(LockConfigurationError);
  await expect(calling).rejects.toThrow(/mock.*RedisLockTestingModule from 'nest-redis-lock\/testing'/s);
  expect(bodies).toBe(0);
};

const expectAllRefused = async (orders: Orders): Promise<void> => {
  expect(orders.price()).toBe(7);
  await expectRefused(() => orders.pay('1'));
  await expectRefused(
    () =>
      new Promise((resolve, reject) => orders.all().subscribe({ complete: () => resolve(0), error: reject })),
  );
  await expectRefused(() => orders.each().next());
  await expectRefused(() => orders.limited());
};

describe('a mock in the place of the lock service lets the class be made; its locked methods say what to import', () => {
  it('useMocker(createMock)', async () => {
    const builder = Test.createTestingModule({ providers: [Orders] }).useMocker((token) =>
      createMock(token as object),
    );
    await expectAllRefused(await compile(builder));
  });

  it('useMocker(createMock), for a named service', async () => {
    const module = await Test.createTestingModule({ providers: [Reports] })
      .useMocker((token) => createMock(token as object))
      .compile();
    await expectRefused(() => module.get(Reports).write());
  });

  it('a mocker that makes a mock of classes only', async () => {
    const automock = (token: unknown): object | undefined => {
      if (typeof token !== 'function') return undefined;
      const methods = Object.getOwnPropertyNames((token as Type).prototype ?? {});
      return Object.fromEntries(methods.map((name) => [name, vi.fn()]));
    };
    const builder = Test.createTestingModule({ providers: [Orders] }).useMocker(automock);
    const orders = await compile(builder);
    expect(orders.price()).toBe(7);
    await expectRefused(() => orders.pay('1'));
  });

  it('useMocker(() => …) with functions that give nothing', async () => {
    const builder = Test.createTestingModule({ providers: [Orders] }).useMocker(() => ({
      withLock: vi.fn(),
    }));
    await expectAllRefused(await compile(builder));
  });

  it('a mock under the token of the lock service', async () => {
    const orders = await compile(
      Test.createTestingModule({
        providers: [Orders, Payments, { provide: getLockServiceToken(), useValue: createMock() }],
      }),
    );
    await expectAllRefused(orders);
  });
});

describe('RedisLockTestingModule beside mocks', () => {
  it('makes the locks work, and everything else is mocked', async () => {
    const builder = Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot()],
      providers: [Orders],
    }).useMocker((token) => createMock(token as object));
    await expect((await compile(builder)).pay('1')).resolves.toMatch(/^1 /);
  });
});

describe('what is missing in a test is told with the testing module', () => {
  it('when LockService itself is mocked, and @Locked has nothing', async () => {
    const builder = Test.createTestingModule({
      providers: [Orders, Payments, { provide: LockService, useValue: createMock() }],
    });
    await expect(builder.compile()).rejects.toThrow(
      /Orders.*LockService: import RedisLockModule\.forRoot\(\).*in a test, RedisLockTestingModule\.forRoot\(\) of 'nest-redis-lock\/testing'/s,
    );
  });

  it('also for a named service', async () => {
    const builder = Test.createTestingModule({
      imports: [RedisLockTestingModule.forRoot()],
      providers: [Reports],
    });
    await expect(builder.compile()).rejects.toThrow(
      /Reports.*RedisLockModule\.forRoot\(\{ name: 'reports' \}\).*RedisLockTestingModule\.forRoot\(\{ names: \['reports'\] \}\)/s,
    );
  });
});

describe('RedisLockTestingModule that is set up in a way that cannot work', () => {
  it('without forRoot() says that it needs one', async () => {
    const builder = Test.createTestingModule({
      imports: [RedisLockTestingModule],
      providers: [Orders, Payments],
    });
    await expect(builder.compile()).rejects.toThrow(/RedisLockTestingModule is imported without forRoot\(\)/);
  });
});
