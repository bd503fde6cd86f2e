import { Logger, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { afterEach, describe, expect, it, vi } from 'vitest';
import { until } from '../support/async.js';
import { newKey, useLab } from '../support/redis/lab.js';
import { RedisStore } from 'nest-redis-lock/redis';

const NO_INFO = 'no-info on >no-info ~* &* +@all -info -config';

let warnings: string[];
const lab = useLab({ users: [NO_INFO] });

afterEach(async () => {
  vi.restoreAllMocks();
  await lab.admin.config('SET', 'maxmemory-policy', 'noeviction');
});

const startApp = async (redis: string) => {
  warnings = [];
  vi.spyOn(Logger.prototype, 'warn').mockImplementation((message: string) => void warnings.push(message));

  @Module({ imports: [RedisLockModule.forRoot({ store: new RedisStore({ redis, commandTimeoutMs: 500 }) })] })
  class AppModule {}

  const app = (await Test.createTestingModule({ imports: [AppModule] }).compile()).createNestApplication();
  await app.init();
  return { app, locks: app.get(LockService) };
};

const evictionWarnings = (): string[] => warnings.filter((warning) => warning.includes('maxmemory-policy'));

describe('a server that evicts', () => {
  it.each([
    'allkeys-lru',
    'allkeys-lfu',
    'allkeys-random',
    'volatile-lru',
    'volatile-lfu',
    'volatile-random',
    'volatile-ttl',
  ])('with %s: the module warns at the start, once, and says what to do', async (policy) => {
    await lab.admin.config('SET', 'maxmemory-policy', policy);
    const { app, locks } = await startApp(lab.server.url);
    await until(() => evictionWarnings().length > 0);
    await locks.withLock(newKey(), () => undefined);
    await locks.withLock(newKey(), () => undefined);
    await app.close();
    expect(evictionWarnings()).toHaveLength(1);
    expect(evictionWarnings()[0]).toContain(policy);
    expect(evictionWarnings()[0]).toContain('noeviction');
  });

  it('with noeviction nothing is said', async () => {
    const { app, locks } = await startApp(lab.server.url);
    await locks.withLock(newKey(), () => undefined);
    await locks.ping();
    await app.close();
    expect(evictionWarnings()).toEqual([]);
  });

  it('a user without INFO and CONFIG gets no warning, no error, and working locks', async () => {
    await lab.admin.config('SET', 'maxmemory-policy', 'volatile-ttl');
    const { app, locks } = await startApp(lab.server.url.replace('redis://', 'redis://no-info:no-info@'));
    await expect(locks.withLock(newKey(), () => 'in')).resolves.toBe('in');
    await app.close();
    expect(evictionWarnings()).toEqual([]);
  });

  it('a Redis that is not there at the start is asked at the first lock, and does not hold up the start', async () => {
    await lab.admin.config('SET', 'maxmemory-policy', 'allkeys-lru');
    const proxy = await lab.proxy();
    proxy.refuse();
    const { app, locks } = await startApp(proxy.url);
    await expect(locks.ping()).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await proxy.restore();
    await until(() => locks.withLock(newKey(), () => true));
    await until(() => evictionWarnings().length > 0);
    await app.close();
    expect(evictionWarnings()).toHaveLength(1);
  });
});
