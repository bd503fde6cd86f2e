import type { INestApplicationContext } from '@nestjs/common';
import { MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, RedisLockModule, type RedisLockModuleOptions } from 'nest-redis-lock';
import { resolveOptions } from '../../../lib/redis-lock.options.js';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { RedisStore } from 'nest-redis-lock/redis';

const apps = useApps();

type Loose = Record<string, unknown>;

const start = (options: Loose): Promise<INestApplicationContext> => apps.context(rootModule(options));

const withStore = (more: Loose): Loose => ({ store: new MemoryStore(), ...more });

describe('options that cannot work keep the app from starting, and the error names them', () => {
  it('both redis and store, or neither', async () => {
    await expect(start(withStore({ redis: 'redis://127.0.0.1:1' }))).rejects.toThrow(/Both redis and store/);
    await expect(start({})).rejects.toThrow(/Neither redis nor store/);
    await expect(start({ redis: undefined, store: undefined })).rejects.toThrow(/Neither redis nor store/);
  });

  it.each([[7], [null], [true], ['']])('redis: %o', async (redis) => {
    await expect(start({ redis })).rejects.toThrow(LockConfigurationError);
    await expect(start({ redis })).rejects.toThrow(/^redis: expected/);
  });

  it.each([
    ['wrong ones', { waitMs: '5s' }, 'waitMs must be'],
    ['none', undefined, 'RedisLockModule needs options'],
  ])('%s from forRootAsync', async (_what, given, message) => {
    const useFactory = () => given && withStore(given);
    const module = {
      module: class App {},
      imports: [RedisLockModule.forRootAsync({ useFactory: useFactory as () => RedisLockModuleOptions })],
    };
    await expect(apps.context(module)).rejects.toThrow(message);
  });
});

describe('options of a store on Redis, given to the module', () => {
  it.each([
    ['commandTimeoutMs', 500, 'Redis'],
    ['replicas', { min: 1 }, 'Redis'],
    ['shardedPubSub', true, 'Redis'],
    ['foreignHold', 'taken', 'Redis'],
    ['delayAfterRestartMs', 0, 'Quorum'],
  ])('are refused with the place where they belong: %s', async (name, value, kind) => {
    const example = new RegExp(
      `^${name} is no option of RedisLockModule. It is one of ${kind}Store: forRoot.*new ${kind}Store`,
    );
    await expect(start({ redis: 'redis://127.0.0.1:1', [name]: value })).rejects.toThrow(example);
  });
});

describe('options that work', () => {
  it('keep a short watchdog above the command time-out', () => {
    const store = new MemoryStore();
    expect(resolveOptions({ store, watchdogMs: 1_000 }).commandTimeoutMs).toBe(333);
  });

  it('keep the watchdog of a call above the command time-out, too', () => {
    const leastOf = (options: RedisLockModuleOptions): number =>
      resolveOptions(options).settings.minWatchdogMs;
    const redisWith = (commandTimeoutMs: number): RedisStore =>
      new RedisStore({ redis: 'redis://127.0.0.1', commandTimeoutMs });
    expect(leastOf({ store: redisWith(3_000) })).toBe(3_001);
    expect(leastOf({ store: redisWith(10) })).toBe(1_000);
    expect(leastOf({ store: new MemoryStore() })).toBe(1_000);
  });
});
