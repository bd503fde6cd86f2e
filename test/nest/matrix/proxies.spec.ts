// Objects that are not the ones that Nest made: proxies around them, or copies of them.
import {
  Controller,
  Get,
  Injectable,
  Module,
  Scope,
  type DynamicModule,
  type INestApplicationContext,
  type NestApplicationOptions,
} from '@nestjs/common';
import { LazyModuleLoader, ModuleRef, NestFactory } from '@nestjs/core';
import { createObserveModule } from '@nestjs/observe';
import { bindLocks } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, LockService, Locked } from 'nest-redis-lock';
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
class PrivateOrders {
  readonly #prefix = 'order:';

  @Locked('order:<<id>>')
  async pay(id: string): Promise<string> {
    return world.work(`${this.#prefix}${id}`);
  }
}

@Injectable({ scope: Scope.REQUEST })
class RequestOrders extends Orders {}

@Injectable({ scope: Scope.TRANSIENT })
class TransientOrders extends Orders {}

@Controller()
class OrdersController {
  @Get()
  @Locked('order:<<id>>')
  async pay(id: string): Promise<string> {
    return world.work(`order:${id}`);
  }
}

type Instrument = NonNullable<NestApplicationOptions['instrument']>;

/** Built-in objects work with themselves only, so a Proxy around Nest's own maps would break the app. */
const isObject = (value: unknown): value is object =>
  typeof value === 'object' && value !== null && !(value instanceof Map);

/** Around every instance, as agents for observability do it; none has a `set` trap. */
const INSTRUMENTS: Record<string, Instrument> = {
  'reads with its receiver': {
    instanceDecorator: (instance) =>
      isObject(instance)
        ? new Proxy(instance, {
            get: (target, name, receiver) => Reflect.get(target, name, receiver) as unknown,
          })
        : instance,
  },
  'reads from its target': {
    instanceDecorator: (instance) =>
      isObject(instance)
        ? new Proxy(instance, { get: (target, name) => Reflect.get(target, name) as unknown })
        : instance,
  },
  'has no traps': {
    instanceDecorator: (instance) => (isObject(instance) ? new Proxy(instance, {}) : instance),
  },
  'is that of @nestjs/observe': createObserveModule().ObserveInstrument as Instrument,
};

/** Providers of all kinds; each is locked, or the app under the instrument is broken. */
const expectAllLocked = async (app: INestApplicationContext): Promise<void> => {
  const made: { pay(id: string): Promise<string> }[] = [
    app.get(Orders),
    app.get(PrivateOrders),
    app.get(OrdersController),
    app.get<Orders>('FACTORY'),
    app.get<Orders>('VALUE'),
    app.get<Orders>('FROZEN'),
    await app.resolve(RequestOrders),
    await app.resolve(TransientOrders),
  ];
  for (const orders of made) await world.expectLocked('order:1', () => orders.pay('1'));
};

describe('an app whose instances are all behind a Proxy', () => {
  it.each(Object.entries(INSTRUMENTS))('locks them when the Proxy %s', async (_what, instrument) => {
    const root = rootModule(world.options(), {
      providers: [
        Orders,
        PrivateOrders,
        RequestOrders,
        TransientOrders,
        { provide: 'FACTORY', useFactory: () => new Orders() },
        { provide: 'VALUE', useValue: new Orders() },
        { provide: 'FROZEN', useValue: Object.freeze(new Orders()) },
      ],
      controllers: [OrdersController],
    });
    // A Proxy that gives everything its receiver breaks private fields, with locks and without.
    const isBroken = instrument !== INSTRUMENTS['is that of @nestjs/observe'];
    if (isBroken) root.providers = root.providers?.filter((provider) => provider !== PrivateOrders);
    if (isBroken) root.providers?.push({ provide: PrivateOrders, useExisting: Orders });
    const app = await NestFactory.create(root, { instrument, logger: false, abortOnError: false });
    await apps.add(app).init();
    await expectAllLocked(app);
  });
});

const providing = async (provider: NonNullable<DynamicModule['providers']>[number]): Promise<Orders> => {
  const app = await apps.context(rootModule(world.options(), { providers: [Orders, provider] }));
  return app.get<Orders>('ORDERS');
};

type Wrap = (orders: Orders) => Orders;
const WRAPS: [string, Wrap][] = [
  ['a Proxy', (orders) => new Proxy(orders, {})],
  [
    'a Proxy that reads from its target',
    (o) => new Proxy(o, { get: (target, name) => target[name as 'pay'] }),
  ],
  ['Object.create(provider)', (orders) => Object.create(orders) as Orders],
];

describe('an object that stands for a provider is locked', () => {
  it.each<[string, Wrap]>([
    ...WRAPS,
    [
      'a Proxy of a frozen one',
      (o) => new Proxy(Object.freeze(o), { get: (target, name) => target[name as 'pay'] }),
    ],
  ])('%s, around what Nest has made and around what a factory makes', async (_what, wrap) => {
    const ofNest = await providing({ provide: 'ORDERS', inject: [Orders], useFactory: wrap });
    await world.expectLocked('order:1', () => ofNest.pay('1'));
    const ofFactory = await providing({ provide: 'ORDERS', useFactory: () => wrap(new Orders()) });
    await world.expectLocked('order:1', () => ofFactory.pay('1'));
  });

  it.each(WRAPS)('%s, made by hand when the app runs', async (_what, wrap) => {
    const app = await apps.context(rootModule(world.options(), { providers: [Orders] }));
    const orders = wrap(app.get(Orders));
    await world.expectLocked('order:1', () => orders.pay('1'));
  });

  it('each of several in an array', async () => {
    const provider = { provide: 'ORDERS', useFactory: () => [new Orders(), new Orders()] };
    const app = await apps.context(rootModule(world.options(), { providers: [provider] }));
    for (const orders of app.get<Orders[]>('ORDERS'))
      await world.expectLocked('order:1', () => orders.pay('1'));
  });
});

describe('if an object cannot be bound, the error names what helps, and it does', () => {
  const refused = async (orders: Orders): Promise<void> => {
    const paying = orders.pay('1');
    await expect(paying).rejects.toThrow(LockConfigurationError);
    await expect(paying).rejects.toThrow(
      /Orders\.pay.*has no LockService.*moduleRef\.create\(TheClass\).*bindLocks/s,
    );
    expect(world.takeRuns()).toEqual([]);
  };

  const byHand = { provide: 'ORDERS', useFactory: () => new Orders() };
  const byNest = {
    provide: 'ORDERS',
    inject: [ModuleRef],
    useFactory: (ref: ModuleRef) => ref.create(Orders),
  };

  it('a factory in a lazily loaded module', async () => {
    const app = await apps.context(rootModule(world.options()));
    const load = async (provider: typeof byHand | typeof byNest): Promise<Orders> => {
      @Module({ providers: [provider] })
      class Lazy {}
      return (await app.get(LazyModuleLoader).load(() => Lazy)).get<Orders>('ORDERS');
    };
    await refused(await load(byHand));
    const orders = await load(byNest);
    await world.expectLocked('order:1', () => orders.pay('1'));
  });

  it('a request-scoped factory', async () => {
    const resolve = async (provider: typeof byHand | typeof byNest): Promise<Orders> => {
      const scoped = { ...provider, scope: Scope.REQUEST };
      const app = await apps.context(rootModule(world.options(), { providers: [scoped] }));
      return app.resolve<Orders>('ORDERS');
    };
    await refused(await resolve(byHand));
    const orders = await resolve(byNest);
    await world.expectLocked('order:1', () => orders.pay('1'));
  });

  it('one inside of another object, and one behind a Proxy that shows no symbols', async () => {
    const app = await apps.context(
      rootModule(world.options(), {
        providers: [Orders, { provide: 'ALL', useFactory: () => ({ orders: new Orders() }) }],
      }),
    );
    const { orders } = app.get<{ orders: Orders }>('ALL');
    await refused(orders);
    const shy = new Proxy(app.get(Orders), {
      get: (target, name) => (typeof name === 'symbol' ? undefined : target[name as 'pay']),
    });
    await refused(shy);
    const bound = bindLocks(orders, app.get(LockService));
    await world.expectLocked('order:1', () => bound.pay('1'));
    const created = await app.get(ModuleRef).create<Orders>(Orders);
    await world.expectLocked('order:1', () => created.pay('1'));
  });

  it('a method that its own constructor calls, since Nest injects the service afterwards', async () => {
    class Eager extends Orders {
      readonly paid = this.pay('1').catch((error: unknown) => error);
    }
    const app = await apps.context(rootModule(world.options(), { providers: [Eager] }));
    const eager = app.get(Eager);
    const error = await eager.paid;
    expect(error).toBeInstanceOf(LockConfigurationError);
    expect((error as Error).message).toMatch(/Orders\.pay.*constructor.*onModuleInit/s);
    expect(world.takeRuns()).toEqual([]);
    await world.expectLocked('order:1', () => eager.pay('1'));
  });

  it('a method that was taken off its object is told as such', async () => {
    const app = await apps.context(rootModule(world.options(), { providers: [Orders] }));
    const { pay } = app.get(Orders);
    await expect(pay('1')).rejects.toThrow(/Orders\.pay.*called without its object \(this\)/s);
    expect(world.takeRuns()).toEqual([]);
  });
});

describe('the service that an instance keeps', () => {
  it('is no part of what it shows, of copies of it, and of comparisons', async () => {
    const app = await apps.context(rootModule(world.options(), { providers: [Orders] }));
    const orders = app.get(Orders);
    expect(orders).toStrictEqual(new Orders());
    expect(Object.getOwnPropertySymbols({ ...orders })).toEqual([]);
    await expect(Object.assign(new Orders(), orders).pay('1')).rejects.toThrow(/has no LockService/);
    expect(JSON.stringify(orders)).toBe('{}');
  });
});
