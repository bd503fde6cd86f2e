// The lock module, imported or configured in a way that would leave the app without locks or with others.
import { Injectable, Module, type DynamicModule, type INestApplicationContext } from '@nestjs/common';
import { MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, LockService, Locked, RedisLockModule } from 'nest-redis-lock';
import { useApps } from '../../support/nest/apps.js';

const apps = useApps();

@Injectable()
class Orders {
  @Locked()
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
  it.each<[object, string]>([
    [{ prefix: 'x' }, 'prefix is no option of RedisLockModule. Its options are'],
    [{ keyprefix: 'x' }, 'Did you mean keyPrefix?'],
    [{ wait: 5 }, 'wait is no option of RedisLockModule. Did you mean waitMs?'],
    [{ watchDogMS: 5_000 }, 'Did you mean watchdogMs?'],
    [{ holdAtLeastMs: 5 }, 'holdAtLeastMs is no option of RedisLockModule. It is one of @Locked'],
    [{ onBusy: 'skip' }, 'onBusy is no option of RedisLockModule. It is one of @Locked'],
    [{ isGlobal: true }, 'The module is global in any case'],
    [
      { takenStatus: 409 },
      'takenStatus is no option of RedisLockModule. It is one of RedisLockModule.forRoot(), in its interceptor',
    ],
    [
      { interceptor: { takenstatus: 409 } },
      'takenstatus is no option of interceptor. Did you mean takenStatus?',
    ],
    [{ interceptor: { status: 409 } }, 'status is no option of interceptor'],
  ])('%o', async (wrong, part) => {
    for (const module of [
      loose.forRoot({ store: store(), ...wrong }),
      withFactory({ store: store(), ...wrong }),
    ]) {
      const starting = start(module);
      await expect(starting).rejects.toThrow(LockConfigurationError);
      await expect(starting).rejects.toThrow(part);
    }
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

describe('what is no option of a call is refused, before a lock is taken', () => {
  type Call = (
    locks: Record<string, (...args: unknown[]) => Promise<unknown>>,
    options: object,
  ) => Promise<unknown>;
  const CALLS: Record<string, Call> = {
    acquire: (locks, options) => locks['acquire']!('k', options),
    tryAcquire: (locks, options) => locks['tryAcquire']!('k', options),
    withLock: (locks, options) => locks['withLock']!('k', options, () => 'ran'),
  };

  it.each<[string, object, string]>([
    ['acquire', { wait: 5 }, 'Did you mean waitMs?'],
    [
      'acquire',
      { onLost: 'throw' },
      'onLost is no option of acquire. It is one of @Locked, of @Limited, of withLock',
    ],
    ['acquire', { onBusy: 'skip' }, 'onBusy is no option of acquire. It is one of @Locked'],
    ['acquire', { service: 'billing' }, 'service is no option of acquire. It is one of @Locked'],
    [
      'acquire',
      { keyPrefix: '' },
      'keyPrefix is no option of acquire. It is one of RedisLockModule.forRoot()',
    ],
    [
      'acquire',
      { awaitRelease: false },
      'awaitRelease is no option of acquire. It is one of @Locked, of @Limited, of withLock',
    ],
    ['tryAcquire', { onLost: 'throw' }, 'onLost is no option of tryAcquire'],
    ['tryAcquire', { onBusy: () => 1 }, 'onBusy is no option of tryAcquire'],
    ['withLock', { timeout: 5 }, 'timeout is no option of withLock. Its options are waitMs, leaseMs'],
    ['withLock', { onBusy: 'skip' }, 'onBusy is no option of withLock. It is one of @Locked'],
    ['withLock', { service: 'billing' }, 'service is no option of withLock'],
    ['withLock', { holdAtLeast: 5 }, 'Did you mean holdAtLeastMs?'],
  ])('%s: %o', async (name, options, part) => {
    const locks = (await start(RedisLockModule.forRoot({ store: store() }))).get(LockService);
    const calling = CALLS[name]!(locks as never, options);
    await expect(calling).rejects.toThrow(LockConfigurationError);
    await expect(calling).rejects.toThrow(part);
    await expect(locks.isLocked('k')).resolves.toBe(false);
  });

  it('withLock: options after the section', async () => {
    const locks = (await start(RedisLockModule.forRoot({ store: store() }))).get(LockService);
    const untyped = locks as unknown as Record<'withLock', (...args: unknown[]) => Promise<unknown>>;
    let ran = false;
    const calling = untyped.withLock('k', () => (ran = true), { waitMs: 3 });
    await expect(calling).rejects.toThrow(/options before the section: withLock\(key, options, fn\)/);
    expect(ran).toBe(false);
  });
});
