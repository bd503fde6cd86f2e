// Keys with a <<$name>> that no call can get a value for.
import { Injectable, Scope, type INestApplicationContext } from '@nestjs/common';
import { MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it, vi } from 'vitest';
import {
  Limited,
  LockConfigurationError,
  Locked,
  RedisLockModule,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { useApps } from '../../support/nest/apps.js';

const apps = useApps();

const serviceWith = (key: string | readonly string[], service?: string) => {
  @Injectable()
  class Orders {
    @Locked(key, { service })
    async pay(): Promise<void> {}
  }
  return Orders;
};

const start = (
  provider: new () => object,
  options: Partial<RedisLockModuleOptions> = {},
  ...others: ReturnType<typeof RedisLockModule.forRoot>[]
): Promise<INestApplicationContext> =>
  apps.context({
    module: class AppModule {},
    imports: [RedisLockModule.forRoot({ store: new MemoryStore(), ...options }), ...others],
    providers: [provider],
  });

describe('an app does not start when a key has', () => {
  it.each([
    [
      'a $name without a context option',
      'a:<<$tenant>>',
      {},
      /^Orders\.pay: the key has <<\$tenant>>, which never has a value\. .*no context option: add context: \(\) => \(\{ tenant: /,
    ],
    ['one in a list', ['a', 'b:<<$tenant.id>>'], {}, /<<\$tenant\.id>>/],
  ] as const)('%s', async (_what, key, options, message) => {
    const store = new MemoryStore();
    const close = vi.spyOn(store, 'close');
    const starting = start(serviceWith(key), { store, ...options });
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow(message);
    expect(close).toHaveBeenCalledOnce();
  });

  it('a $name that only another module has a context for', async () => {
    const named = RedisLockModule.forRoot({ name: 'billing', store: new MemoryStore() });
    const starting = start(
      serviceWith('a:<<$tenant>>', 'billing'),
      { context: () => ({ tenant: 1 }) },
      named,
    );
    await expect(starting).rejects.toThrow(/Orders\.pay: the key has <<\$tenant>>/);
  });

  it('a $name on a method of a request-scoped provider', async () => {
    @Injectable({ scope: Scope.REQUEST })
    class Carts extends serviceWith('a:<<$tenant>>') {}
    await expect(start(Carts)).rejects.toThrow(/Orders\.pay: the key has <<\$tenant>>/);
  });

  it('a $name on a method with @Limited', async () => {
    class Crm {
      @Limited('crm:<<$tenant>>', { permits: 2 })
      async sync(): Promise<void> {}
    }
    await expect(start(Crm)).rejects.toThrow(/Crm\.sync: the key has <<\$tenant>>/);
  });
});

describe('an app starts when a key has', () => {
  it('a $name, with a context option', async () => {
    await expect(start(serviceWith('a:<<$tenant>>'), { context: () => ({}) })).resolves.toBeDefined();
  });

  it('a $name in a method that a subclass overrides', async () => {
    class JobOrders extends serviceWith('a:<<$tenant>>') {
      @Locked('a')
      override async pay(): Promise<void> {}
    }
    await expect(start(JobOrders)).resolves.toBeDefined();
  });
});
