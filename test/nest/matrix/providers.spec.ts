import {
  Inject,
  Injectable,
  Module,
  Scope,
  type DynamicModule,
  type INestApplicationContext,
} from '@nestjs/common';
import { LazyModuleLoader, ModuleRef } from '@nestjs/core';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, LockService, Locked, currentLease } from 'nest-redis-lock';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

/** Starts an app with this module beside the locks. */
const start = (module: DynamicModule): Promise<INestApplicationContext> =>
  apps.context(rootModule(world.options(), { imports: [module] }));

const SYMBOL = Symbol('pay');

@Injectable()
class Orders {
  @Locked('order:<<id>>')
  async pay(id: string): Promise<string> {
    return world.work(`order:${id}`);
  }

  async payAll(): Promise<string> {
    return this.pay('1');
  }

  @Locked('order:<<0>>')
  async [SYMBOL](id: string): Promise<string> {
    return world.work(`order:${id}`);
  }
}

@Injectable({ scope: Scope.REQUEST })
class RequestOrders extends Orders {}

@Injectable({ scope: Scope.TRANSIENT })
class TransientOrders {
  @Locked('order:<<id>>')
  async pay(id: string): Promise<string> {
    return world.work(`order:${id}`);
  }
}

const moduleWith = (...providers: DynamicModule['providers'] & object): DynamicModule => ({
  module: class OrdersModule {},
  providers,
});

describe('a provider that Nest makes', () => {
  it('is locked as a singleton, and when the method is called through this', async () => {
    const app = await start(moduleWith(Orders));
    const orders = app.get(Orders, { strict: false });
    await world.expectLocked('order:1', () => orders.pay('1'));
    await world.expectLocked('order:1', () => orders.payAll());
  });

  it('is locked when its method has a symbol for a name', async () => {
    const app = await start(moduleWith(Orders));
    await world.expectLocked('order:1', () => app.get(Orders, { strict: false })[SYMBOL]('1'));
  });

  it('is locked in each of two modules that provide the same class', async () => {
    @Module({ providers: [Orders], exports: [Orders] })
    class One {}
    @Module({ providers: [Orders], exports: [Orders] })
    class Two {}
    const app = await start({ module: class Both {}, imports: [One, Two] });
    const [one, two] = [
      app.select(One).get(Orders, { strict: true }),
      app.select(Two).get(Orders, { strict: true }),
    ];
    expect(one).not.toBe(two);
    await world.expectLocked('order:1', () => one.pay('1'));
    await world.expectLocked('order:1', () => two.pay('1'));
  });

  it('is locked when it is reached by useExisting', async () => {
    const app = await start(moduleWith(Orders, { provide: 'ALIAS', useExisting: Orders }));
    await world.expectLocked('order:1', () => app.get<Orders>('ALIAS', { strict: false }).pay('1'));
  });

  it('is locked when it is request-scoped', async () => {
    const app = await start(moduleWith(RequestOrders));
    const [one, two] = [
      await app.resolve(RequestOrders, undefined, { strict: false }),
      await app.resolve(RequestOrders, undefined, { strict: false }),
    ];
    expect(one).not.toBe(two);
    await world.expectLocked('order:1', () => one.pay('1'));
    await world.expectLocked('order:1', () => two.pay('1'));
  });

  it('is locked when it is transient', async () => {
    @Injectable()
    class Checkout {
      constructor(readonly orders: TransientOrders) {}
    }
    const app = await start(moduleWith(TransientOrders, Checkout));
    const resolved = await app.resolve(TransientOrders, undefined, { strict: false });
    const { orders } = app.get(Checkout, { strict: false });
    expect(orders).not.toBe(resolved);
    await world.expectLocked('order:1', () => orders.pay('1'));
    await world.expectLocked('order:1', () => resolved.pay('1'));
  });

  it('is locked when moduleRef.create() makes it', async () => {
    const app = await start(moduleWith());
    const orders = await app.get(ModuleRef).create(Orders);
    await world.expectLocked('order:1', () => orders.pay('1'));
  });

  it('is locked when its module is loaded lazily', async () => {
    const app = await start(moduleWith());
    const loaded = await app.get(LazyModuleLoader).load(() => moduleWith(Orders));
    await world.expectLocked('order:1', () => loaded.get(Orders).pay('1'));
  });
});

describe('a provider that the user makes', () => {
  it('is locked with useFactory', async () => {
    const app = await start(moduleWith({ provide: Orders, useFactory: () => new Orders() }));
    await world.expectLocked('order:1', () => app.get(Orders, { strict: false }).pay('1'));
  });

  it('is locked with useValue', async () => {
    const app = await start(moduleWith({ provide: 'ORDERS', useValue: new Orders() }));
    await world.expectLocked('order:1', () => app.get<Orders>('ORDERS', { strict: false }).pay('1'));
  });

  it('is locked when the instance is frozen', async () => {
    const frozen = Object.freeze(new Orders());
    const app = await start(moduleWith({ provide: Orders, useValue: frozen }));
    expect(app.get(Orders, { strict: false })).toBe(frozen);
    await world.expectLocked('order:1', () => frozen.pay('1'));
  });

  it('is rejected at the first call if it cannot be bound: a request-scoped factory', async () => {
    const app = await start(
      moduleWith({ provide: 'ORDERS', scope: Scope.REQUEST, useFactory: () => new Orders() }),
    );
    const orders = await app.resolve<Orders>('ORDERS', undefined, { strict: false });
    await expect(orders.pay('1')).rejects.toThrow(/Orders\.pay is @Locked.*request-scoped factory/s);
    expect(world.takeRuns()).toEqual([]);
  });

  it('keeps the lock service out of what the instance shows', async () => {
    const app = await start(moduleWith(Orders));
    const orders = app.get(Orders, { strict: false });
    expect(Object.keys(orders)).toEqual([]);
    expect(Reflect.ownKeys({ ...orders })).toEqual([]);
    expect(JSON.stringify(orders)).toBe('{}');
  });
});

describe('two apps in one process', () => {
  @Injectable()
  class Asking {
    constructor(@Inject(LockService) readonly locks: LockService) {}

    @Locked('shared')
    async ask(): Promise<string[]> {
      return this.locks.held().map(({ key }) => key);
    }
  }

  it('use their own service each, also for one and the same class', async () => {
    const make = (keyPrefix: string) =>
      apps.context(rootModule(world.options({ keyPrefix }), { providers: [Asking] }));
    const [one, two] = [await make('one:'), await make('two:')];
    await world.redis.hset('one:shared', 'another-process:1', '1');
    await expect(one.get(Asking).ask()).rejects.toThrow('"shared" is taken');
    await expect(two.get(Asking).ask()).resolves.toEqual(['shared']);
    await one.close();
    await expect(two.get(Asking).ask(), 'the end of one is not that of the other').resolves.toEqual([
      'shared',
    ]);
    await world.redis.del('one:shared');
  });
});

describe('new, by hand', () => {
  it('throws, names what to import, and does not run the method', async () => {
    await expect(new Orders().pay('1')).rejects.toThrow(LockConfigurationError);
    await expect(new Orders().pay('1')).rejects.toThrow(
      /Orders\.pay.*RedisLockModule\.forRoot\(\).*bindLocks/s,
    );
    expect(world.takeRuns()).toEqual([]);
  });
});

describe('inside the method', () => {
  it('currentLease() is the lease of the method, as the module made it', async () => {
    @Injectable()
    class Reader {
      @Locked('read:<<id>>')
      async read(id: number): Promise<readonly [readonly string[], number]> {
        const lease = currentLease(`read:${id}`);
        return [lease.keys, lease.fencingToken];
      }
    }
    const app = await start(moduleWith(Reader));
    const reader = app.get(Reader, { strict: false });
    const [keys, first] = await reader.read(7);
    const [, second] = await reader.read(7);
    expect(keys).toEqual(['read:7']);
    expect(second).toBeGreaterThan(first);
  });
});
