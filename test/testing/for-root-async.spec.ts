import { Injectable, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import {
  RedisLockTestingModule,
  TestingLockService,
  type RedisLockTestingAsyncOptions,
} from 'nest-redis-lock/testing';
import { afterEach, describe, expect, it } from 'vitest';
import {
  currentLease,
  InjectLockService,
  LockConfigurationError,
  Locked,
  LockService,
} from 'nest-redis-lock';

type AsyncOptions = Parameters<typeof RedisLockTestingModule.forRootAsync>[0];

const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const module of closing.splice(0)) await module.close();
});

@Injectable()
class Settings {
  readonly tenant = 'acme';
}

@Module({ providers: [Settings], exports: [Settings] })
class SettingsModule {}

@Injectable()
class Options {
  createRedisLockOptions(): RedisLockTestingAsyncOptions {
    return { context: () => ({ tenant: 'made' }) };
  }
}

@Module({ providers: [Options], exports: [Options] })
class OptionsModule {}

@Injectable()
class Jobs {
  @Locked('<<$tenant>>')
  async run(): Promise<string> {
    return currentLease().key;
  }
}

const start = async (options: AsyncOptions, providers: readonly object[] = []) => {
  const module = await Test.createTestingModule({
    imports: [RedisLockTestingModule.forRootAsync(options)],
    providers: [Jobs, ...(providers as [])],
  }).compile();
  await module.init();
  closing.push(module);
  return module;
};

describe('RedisLockTestingModule.forRootAsync', () => {
  it('takes its options from a factory with injected providers, as RedisLockModule does', async () => {
    const module = await start({
      imports: [SettingsModule],
      inject: [Settings],
      useFactory: async ({ tenant }: Settings) => ({ mode: 'off', context: () => ({ tenant }) }),
    });
    await expect(module.get(Jobs).run()).resolves.toBe('acme');
    await using _one = await module.get(LockService).acquire('x');
    await using two = await module.get(LockService).tryAcquire('x');
    expect(two).not.toBeNull();
  });

  it.each<[string, AsyncOptions]>([
    ['useClass', { useClass: Options }],
    ['useExisting', { imports: [OptionsModule], useExisting: Options }],
  ])('takes them from %s', async (_, options) => {
    await expect((await start(options)).get(Jobs).run()).resolves.toBe('made');
  });

  it('takes the names of the modules that it replaces beside the factory', async () => {
    @Injectable()
    class Billing {
      constructor(@InjectLockService('billing') readonly locks: LockService) {}
    }
    const module = await start({ names: ['billing'], useFactory: () => ({}) }, [Billing]);
    expect(module.get(Billing).locks).toBe(module.get(TestingLockService));
  });

  it.each<[unknown, string]>([
    [undefined, "RedisLockTestingModule.forRootAsync() needs options: forRootAsync({ useFactory: () => ({ mode: 'memory' }) })"],
    [{}, 'RedisLockTestingModule.forRootAsync() has no useFactory'],
    [{ mode: 'off', useFactory: () => ({}) }, 'mode is no option of RedisLockTestingModule.forRootAsync() itself'],
    [{ maxWaitMs: 5, useFactory: () => ({}) }, 'maxWaitMs is no option of RedisLockTestingModule.forRootAsync() itself'],
    [{ name: 'a', useFactory: () => ({}) }, 'name is no option of RedisLockTestingModule.forRootAsync()'],
    [{ names: 'a', useFactory: () => ({}) }, 'names must be an array of names'],
  ])('refuses %o', (options, part) => {
    const call = (): unknown => RedisLockTestingModule.forRootAsync(options as never);
    expect(call).toThrow(LockConfigurationError);
    expect(call).toThrow(part);
  }); // prettier-ignore

  it.each<[object, string]>([
    [{ waitMs: -1 }, 'waitMs must be'],
    [{ names: ['billing'] }, 'forRootAsync({ names, useFactory })'],
    [{ redis: 'redis://localhost' }, 'redis is no option of RedisLockTestingModule.forRoot()'],
  ])('refuses what the factory returns by name: %o', async (options, part) => {
    await expect(start({ useFactory: () => options })).rejects.toThrow(part);
  });
});
