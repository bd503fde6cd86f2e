import { inspect } from 'node:util';
import type { INestApplicationContext } from '@nestjs/common';
import { MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import {
  LockConfigurationError,
  LockService,
  RedisLockModule,
  type RedisLockModuleOptions,
} from 'nest-redis-lock';
import { resolveOptions } from '../../../lib/redis-lock.options.js';
import { rootModule, useApps } from '../../support/nest/apps.js';

const apps = useApps();

type Loose = Record<string, unknown>;

const start = (options: Loose): Promise<INestApplicationContext> => apps.context(rootModule(options));

const withStore = (more: Loose): Loose => ({ store: new MemoryStore(), ...more });

describe('options that cannot work keep the app from starting, and the error names them', () => {
  it.each([
    ['waitMs', [-1, Number.NaN, 1.5, '5s', '5000', -Infinity, null, 10n]],
    ['leaseMs', [0, -1, Number.NaN, 0.5, '30s', Infinity]],
    ['watchdogMs', [0, 999, -1, Number.NaN, 1_000.5, '30s', Infinity]],
    ['shutdownGraceMs', [-1, Number.NaN, 0.5, '10s', Infinity]],
    ['commandTimeoutMs', [0, -1, Number.NaN, 0.5, '2s', 30_000, Infinity]],
    ['maxWaiters', [-1, Number.NaN, 0.5, '10']],
    ['keyPrefix', [7, null]],
    ['onLost', ['ignore', true]],
    ['awaitRelease', ['no', 1]],
    ['reentrant', ['yes', 1]],
    ['fencing', ['no', 0]],
    ['interceptor', ['yes', null, 1]],
    ['interceptor.takenStatus', [{ takenStatus: 200 }, { takenStatus: 600 }, { takenStatus: '423' }]],
    ['interceptor.retryAfterSeconds', [{ retryAfterSeconds: -1 }, { retryAfterSeconds: 0.5 }]],
    ['context', [{ tenant: 'acme' }, 'acme']],
  ])('%s', async (name, values) => {
    const [option] = name.split('.') as [string];
    for (const value of values) {
      const starting = start(withStore({ [option]: value }));
      await expect(starting, `${name}: ${inspect(value)}`).rejects.toThrow(LockConfigurationError);
      await expect(starting).rejects.toThrow(`${name} must be`);
    }
  });

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

describe('options that work', () => {
  it('keep the defaults where they are undefined', () => {
    const store = new MemoryStore();
    const names = [
      'keyPrefix', 'waitMs', 'leaseMs', 'watchdogMs', 'maxWaiters', 'onLost', 'awaitRelease', 'reentrant', 'fencing',
      'shutdownGraceMs', 'commandTimeoutMs', 'interceptor', 'context', 'redis',
    ]; // prettier-ignore
    const explicit = Object.fromEntries(names.map((name) => [name, undefined]));
    expect(resolveOptions({ store, ...explicit })).toEqual(resolveOptions({ store }));
    expect(resolveOptions({ store })).toMatchObject({
      settings: {
        keyPrefix: 'lock:',
        waitMs: 5_000,
        leaseMs: undefined,
        watchdogMs: 30_000,
        maxWaiters: Infinity,
        onLost: 'event',
        awaitRelease: true,
        reentrant: true,
        fencing: true,
        shutdownGraceMs: 10_000,
      },
      commandTimeoutMs: 2_000,
      interceptor: { takenStatus: 423, retryAfterSeconds: 1 },
    });
  });

  it('allow waitMs: Infinity, and an empty prefix', async () => {
    const app = await start(withStore({ waitMs: Infinity, keyPrefix: '' }));
    await expect(app.get(LockService).withLock('x', () => 'ran')).resolves.toBe('ran');
  });

  it('keep a short watchdog above the command time-out', () => {
    const store = new MemoryStore();
    expect(resolveOptions({ store, watchdogMs: 1_000 }).commandTimeoutMs).toBe(333);
  });

  it('keep the watchdog of a call above the command time-out, too', () => {
    const leastOf = (options: RedisLockModuleOptions): number =>
      resolveOptions(options).settings.minWatchdogMs;
    expect(leastOf({ redis: 'redis://127.0.0.1', commandTimeoutMs: 3_000 })).toBe(3_001);
    expect(leastOf({ redis: 'redis://127.0.0.1', commandTimeoutMs: 10 })).toBe(1_000);
    expect(leastOf({ store: new MemoryStore() })).toBe(1_000);
  });
});

describe('options of a call that cannot work reject, and the error names them', () => {
  it.each([
    ['waitMs', [-1, Number.NaN, 1.5, '5s', null]],
    ['leaseMs', [0, -1, Number.NaN, 0.5, '30s', Infinity]],
    ['holdAtLeastMs', [-1, Number.NaN, 0.5, '1m', Infinity]],
    ['onLost', ['ignore']],
    ['awaitRelease', ['no', null]],
    ['reentrant', [1]],
    ['signal', [{}, 'abort']],
  ])('%s', async (name, values) => {
    const locks = (await start(withStore({}))).get(LockService);
    for (const value of values) {
      const call = locks.withLock('x', { [name]: value } as never, () => expect.fail('it ran'));
      await expect(call, `${name}: ${inspect(value)}`).rejects.toThrow(LockConfigurationError);
      await expect(call).rejects.toThrow(`${name} must be`);
    }
    await expect(locks.acquire('x', { waitMs: '5s' } as never)).rejects.toThrow('waitMs must be');
    await expect(locks.tryAcquire('x', { leaseMs: 0 })).rejects.toThrow('leaseMs must be');
    await expect(locks.withLock('x', { waitMs: undefined, signal: undefined }, () => 'ran')).resolves.toBe(
      'ran',
    );
  });
});
