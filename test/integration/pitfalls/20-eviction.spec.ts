import { Logger, Module } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it, vi } from 'vitest';
import { until } from '../../support/async.js';
import { Lab, newKey } from '../../support/redis/lab.js';

const NO_INFO = 'no-info on >no-info ~* &* +@all -info -config';

let lab: Lab;
let warnings: string[];

beforeAll(async () => {
  lab = await Lab.start({ users: [NO_INFO] });
});

afterEach(async () => {
  vi.restoreAllMocks();
  await lab.reset();
  await lab.admin.config('SET', 'maxmemory-policy', 'noeviction');
  await lab.admin.config('SET', 'maxmemory', '0');
  await lab.admin.flushall();
});

afterAll(() => lab[Symbol.asyncDispose]());

const startApp = async (redis: string) => {
  warnings = [];
  vi.spyOn(Logger.prototype, 'warn').mockImplementation((message: string) => void warnings.push(message));

  @Module({ imports: [RedisLockModule.forRoot({ redis, commandTimeoutMs: 500 })] })
  class AppModule {}

  const app = (await Test.createTestingModule({ imports: [AppModule] }).compile()).createNestApplication();
  await app.init();
  return { app, locks: app.get(LockService) };
};

const evictionWarnings = (): string[] => warnings.filter((warning) => warning.includes('maxmemory-policy'));

describe('pitfall 20: a server that evicts', () => {
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

  it('who may not run INFO or CONFIG gets no warning, no error, and working locks', async () => {
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

describe('pitfall 20: a server whose memory is full', () => {
  it('still lets go of locks: release needs no memory', async () => {
    const { locks, events } = lab.open();
    const keys = Array.from({ length: 20 }, () => newKey());
    const leases = await Promise.all(keys.map((key) => locks.acquire(key)));
    await lab.admin.config('SET', 'maxmemory', '1');
    await expect(locks.acquire(newKey())).rejects.toMatchObject({
      code: 'LOCK_STORE_FAILED',
      outcome: 'not-executed',
    });
    expect(await locks.forceUnlock(keys[0]!)).toBe(true);
    const endings = await Promise.all(leases.slice(1).map((lease) => lease.release()));
    expect(new Set(endings)).toEqual(new Set(['released']));
    expect(events('lost')).toHaveLength(1);
    await lab.admin.config('SET', 'maxmemory', '0');
    await lab.nothingLeft();
  });
});
