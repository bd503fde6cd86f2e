// The lock module, imported or configured in a way that would leave the app without locks or with others.
import { Injectable, Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, Locked, RedisLockModule } from 'nest-redis-lock';
import { useApps } from '../../support/nest/apps.js';

const apps = useApps();

@Injectable()
class Orders {
  @Locked('orders')
  async pay(): Promise<string> {
    return 'paid';
  }
}

const start = (...imports: (DynamicModule | typeof RedisLockModule)[]): Promise<INestApplicationContext> =>
  apps.context({ module: class AppModule {}, imports, providers: [Orders] });

const loose = RedisLockModule as unknown as Record<
  'forRoot' | 'forRootAsync',
  (this: unknown, options?: unknown) => DynamicModule
>;

const withFactory = (options: object): DynamicModule => loose.forRootAsync({ useFactory: () => options });

const store = (): MemoryStore => new MemoryStore();

describe('RedisLockModule without forRoot()', () => {
  it('is told by name, and what to write', async () => {
    const starting = start(RedisLockModule);
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow(
      /RedisLockModule is imported without forRoot\(\): write RedisLockModule\.forRoot\(\{ redis: .*in the root module/s,
    );
  });

  it('is told as well in a feature module of an app whose root has it right', async () => {
    @Module({ imports: [RedisLockModule] })
    class Feature {}
    const starting = start(RedisLockModule.forRoot({ store: store() }), { module: Feature });
    await expect(starting).rejects.toThrow(/is global, so other modules need not import it/);
  });
});

describe('forRoot() and forRootAsync() without options', () => {
  it.each<[unknown]>([[undefined], [null], ['redis://localhost'], [[]]])(
    'throw, and show the right form: %o',
    (options) => {
      for (const method of ['forRoot', 'forRootAsync'] as const) {
        expect(() => loose[method](options)).toThrow(LockConfigurationError);
        expect(() => loose[method](options)).toThrow(
          `RedisLockModule.${method}() needs options: ${method}({`,
        );
      }
    },
  );
});

describe('what is no option of the module keeps the app from starting', () => {
  it('an option that does not exist, given to the factory of forRootAsync', async () => {
    const starting = start(withFactory({ store: store(), prefix: 'x' }));
    await expect(starting).rejects.toThrow(LockConfigurationError);
    await expect(starting).rejects.toThrow('prefix is no option of RedisLockModule. Its options are');
  });

  it('a name that the factory gives, which comes too late for it', async () => {
    const starting = start(withFactory({ store: store(), name: 'billing' }));
    await expect(starting).rejects.toThrow(
      /name is no option of RedisLockModule\..*beside the factory: forRootAsync\(\{ name, useFactory \}\)/,
    );
  });

  it.each<[object, string]>([
    [
      { redis: 'redis://localhost' },
      'redis is no option of RedisLockModule.forRootAsync() itself; the options come from',
    ],
    [{ waitMs: 5, useFactory: () => ({}) }, 'waitMs is no option of RedisLockModule.forRootAsync() itself'],
    [
      { useFactry: () => ({}) },
      'useFactry is no option of RedisLockModule.forRootAsync(). Did you mean useFactory?',
    ],
    [{ isGlobal: true, useFactory: () => ({}) }, 'The module is global in any case'],
    [{ inject: [] }, 'has no useFactory, useClass or useExisting'],
  ])('beside the factory: %o', (options, part) => {
    expect(() => loose.forRootAsync(options)).toThrow(LockConfigurationError);
    expect(() => loose.forRootAsync(options)).toThrow(part);
  });

  it('but an explicit undefined does nothing, so it may be there; and so may a name beside the factory', async () => {
    const app = await start(
      withFactory({ store: store(), prefix: undefined, name: undefined }),
      loose.forRootAsync({
        name: 'billing',
        inject: [],
        imports: [],
        useFactory: () => ({ store: store() }),
      }),
    );
    await expect(app.get(Orders).pay()).resolves.toBe('paid');
  });
});
