import { MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { RedisLockModule, type RedisLockModuleOptions } from 'nest-redis-lock';
import { resolveOptions } from '../../../lib/nest/module/redis-lock.options.js';
import { useApps } from '../../support/nest/apps.js';
import { RedisStore } from 'nest-redis-lock/redis';

const apps = useApps();

describe('options that cannot work keep the app from starting, and the error names them', () => {
  it.each([
    ['wrong ones', { waitMs: '5s' }, 'waitMs must be'],
    ['none', undefined, 'RedisLockModule needs options'],
  ])('%s from forRootAsync', async (_what, given, message) => {
    const useFactory = () => given && { store: new MemoryStore(), ...given };
    const module = {
      module: class App {},
      imports: [
        RedisLockModule.forRootAsync({ useFactory: useFactory as unknown as () => RedisLockModuleOptions }),
      ],
    };
    await expect(apps.context(module)).rejects.toThrow(message);
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
