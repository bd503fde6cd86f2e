import { Inject, Injectable, Module, type DynamicModule } from '@nestjs/common';
import { describe, expect, it } from 'vitest';
import {
  InjectLockService,
  LockConfigurationError,
  LockService,
  Locked,
  RedisLockModule,
  getLockServiceToken,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { useApps } from '../../support/nest/apps.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

@Injectable()
class Orders {
  constructor(readonly locks: LockService) {}

  @Locked('order')
  async pay(): Promise<string> {
    return world.work('order');
  }
}

const root = (...imports: DynamicModule[]): DynamicModule => ({
  module: class AppModule {},
  imports,
  providers: [Orders],
});

@Injectable()
class Config {
  readonly lockOptions = world.options();

  createRedisLockOptions(): RedisLockModuleOptions {
    return this.lockOptions;
  }
}

@Module({ providers: [Config], exports: [Config] })
class ConfigModule {}

describe('the ways to set the module up', () => {
  const ways: Record<string, () => DynamicModule> = {
    'forRoot': () => RedisLockModule.forRoot(world.options()),
    'forRootAsync with useFactory and inject': () =>
      RedisLockModule.forRootAsync({
        imports: [ConfigModule],
        inject: [Config],
        useFactory: async (config: Config) => config.lockOptions,
      }),
    'forRootAsync with useClass': () => RedisLockModule.forRootAsync({ useClass: Config }),
    'forRootAsync with useExisting': () =>
      RedisLockModule.forRootAsync({ imports: [ConfigModule], useExisting: Config }),
  }; // prettier-ignore

  it.each(Object.keys(ways))('lock the methods of providers: %s', async (way) => {
    const app = await apps.context(root(ways[way]!()));
    await world.expectLocked('order', () => app.get(Orders).pay());
  });

  it('LockService is injected by its class, without @Inject, everywhere', async () => {
    @Module({ providers: [Orders] })
    class Deep {}
    const app = await apps.context({
      module: class AppModule {},
      imports: [RedisLockModule.forRoot(world.options()), { module: class Between {}, imports: [Deep] }],
    });
    const { locks } = app.get(Orders, { strict: false });
    expect(locks).toBeInstanceOf(LockService);
    await expect(locks.withLock('by-hand', () => world.isTaken('by-hand'))).resolves.toBe(true);
    expect(app.get(LockService)).toBe(locks);
    expect(app.get(getLockServiceToken())).toBe(locks);
  });
});

describe('named modules', () => {
  @Injectable()
  class Billing {
    constructor(
      readonly locks: LockService,
      @InjectLockService('billing') readonly billing: LockService,
      @Inject(getLockServiceToken('billing')) readonly same: LockService,
    ) {}

    @Locked('invoice')
    async unnamed(): Promise<string> {
      return this.both();
    }

    @Locked('invoice', { service: 'billing' })
    async named(): Promise<string> {
      return this.both();
    }

    @Locked('invoice', { service: 'billing' })
    async outer(): Promise<string> {
      return this.unnamed();
    }

    private async both(): Promise<string> {
      return (await world.redis.keys('*:invoice')).sort().join(' ');
    }
  }

  const start = async (): Promise<Billing> => {
    const app = await apps.context({
      module: class AppModule {},
      imports: [
        RedisLockModule.forRoot(world.options({ keyPrefix: 'main:' })),
        RedisLockModule.forRoot({ name: 'billing', ...world.options({ keyPrefix: 'billing:' }) }),
      ],
      providers: [Billing],
    });
    return app.get(Billing);
  };

  it('have services of their own, injected by name', async () => {
    const { locks, billing, same } = await start();
    expect(billing).not.toBe(locks);
    expect(same).toBe(billing);
    await using _one = await locks.acquire('invoice');
    await using _two = await billing.acquire('invoice');
    expect(await world.redis.keys('*:invoice')).toHaveLength(2);
  });

  it('lock the methods that name them, each in its own place', async () => {
    const billing = await start();
    await expect(billing.unnamed()).resolves.toBe('main:invoice');
    await expect(billing.named()).resolves.toBe('billing:invoice');
  });

  it("never take one another's lock for their own: nesting takes both", async () => {
    // prettier-ignore
    const billing = await start();
    await expect(billing.outer()).resolves.toBe('billing:invoice main:invoice');
  });

  it('can be set up asynchronously, and without an unnamed one', async () => {
    @Injectable()
    class OnlyBilling {
      constructor(@InjectLockService('billing') readonly locks: LockService) {}

      @Locked('order', { service: 'billing' })
      async bill(): Promise<string> {
        return world.work('order');
      }
    }
    const app = await apps.context({
      module: class AppModule {},
      imports: [RedisLockModule.forRootAsync({ name: 'billing', useFactory: () => world.options() })],
      providers: [OnlyBilling],
    });
    await world.expectLocked('order', () => app.get(OnlyBilling).bill());
  });
});

describe('importing it twice', () => {
  it.each([
    ['with different options', { keyPrefix: 'a:' }, { keyPrefix: 'b:' }],
    ['with the same options', {}, {}],
    ['under the same name', { name: 'billing' }, { name: 'billing' }],
  ])('keeps the app from starting, %s', async (_how, first, second) => {
    const module = {
      module: class AppModule {},
      imports: [
        RedisLockModule.forRoot({ ...world.options(), ...first }),
        { module: class Feature {}, imports: [RedisLockModule.forRoot({ ...world.options(), ...second })] },
      ],
    };
    const starting = apps.context(module);
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow(/imported twice .*import it once, in the root module/s);
  });

  it('as one and the same object is fine: it is one module', async () => {
    const locks = RedisLockModule.forRoot(world.options());
    const feature: DynamicModule = { module: class Feature {}, imports: [locks] };
    const app = await apps.context(root(locks, feature));
    await world.expectLocked('order', () => app.get(Orders).pay());
  });
});
