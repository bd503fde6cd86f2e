import { type LockService } from 'nest-redis-lock';
import { RedisLockInstrumentation } from 'nest-redis-lock/opentelemetry';
import { createTestingLocks } from 'nest-redis-lock/testing';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { coreUnderTest } from '../../support/core/core-under-test.js';
import { notExecuted } from '../../support/core/scripted-store.js';
import { Sdk } from './sdk.js';

let locks: LockService;
let sdk: Sdk;
let instrumentation: RedisLockInstrumentation;

beforeEach(() => {
  locks = createTestingLocks('memory', { waitMs: 0 });
  sdk = new Sdk();
  instrumentation = new RedisLockInstrumentation();
  instrumentation.setMeterProvider(sdk.meters);
});
afterEach(async () => {
  instrumentation.disable();
  await sdk.stop();
});

const of = (label: string, more: object = {}): object => ({
  'redis_lock.label': label,
  ...more,
});
const ended = (label: string, outcome: string): object =>
  of(label, { 'redis_lock.kind': 'exclusive', 'redis_lock.outcome': outcome });

describe('the metrics', () => {
  it('have a wait and a hold for each call, by label, kind and outcome, and gauges that return to zero', async () => {
    let inside: unknown;
    await locks.withLock('user:7', { label: 'profile' }, async () => {
      inside = await sdk.metrics();
    });
    await locks.withLock('user:8', { label: 'profile' }, () => undefined);
    expect(inside).toMatchObject({
      'redis_lock.waiting': [{ attributes: of('profile'), value: 0 }],
      'redis_lock.held': [{ attributes: of('profile'), value: 1 }],
    });
    expect(await sdk.metrics()).toEqual({
      'redis_lock.waiting': [{ attributes: of('profile'), value: 0 }],
      'redis_lock.held': [{ attributes: of('profile'), value: 0 }],
      'redis_lock.wait_time': [{ attributes: ended('profile', 'acquired'), value: 2 }],
      'redis_lock.hold_time': [{ attributes: ended('profile', 'released'), value: 2 }],
    });
  });

  it('count a waiting caller, and a call that finds the lock taken', async () => {
    const holder = await locks.acquire('k', { label: 'holder' });
    expect(await locks.tryAcquire('k', { label: 'try' })).toBeNull();
    const waiter = locks.acquire('k', { label: 'waiter', waitMs: 10_000 });
    expect((await sdk.metrics())['redis_lock.waiting']).toContainEqual({
      attributes: of('waiter'),
      value: 1,
    });
    await holder.release();
    await (await waiter).release();
    const metrics = await sdk.metrics();
    expect(metrics['redis_lock.taken']).toEqual([{ attributes: of('try'), value: 1 }]);
    expect(metrics['redis_lock.wait_time']).toContainEqual({
      attributes: ended('try', 'LOCK_TAKEN'),
      value: 1,
    });
    for (const name of ['redis_lock.waiting', 'redis_lock.held'])
      expect(metrics[name]!.map(({ value }) => value)).toEqual(metrics[name]!.map(() => 0));
  });

  it('count a lost lock by its reason', async () => {
    await locks.withLock('k', () => locks.forceUnlock('k'));
    const metrics = await sdk.metrics();
    expect(metrics['redis_lock.lost']).toEqual([
      { attributes: of('withLock', { 'redis_lock.reason': 'force-unlocked' }), value: 1 },
    ]);
    expect(metrics['redis_lock.hold_time']).toEqual([{ attributes: ended('withLock', 'lost'), value: 1 }]);
    expect(metrics['redis_lock.held']).toEqual([{ attributes: of('withLock'), value: 0 }]);
  });

  it('count an outage of the store once', async () => {
    const { manager, store, runtime } = coreUnderTest();
    const pings = [notExecuted(), undefined];
    store.ping = async () => {
      const failure = pings.shift();
      if (failure) throw failure;
    };
    await expect(manager.ping()).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await runtime.pass(250);
    await manager.ping();
    expect((await sdk.metrics())['redis_lock.store.outages']).toEqual([{ attributes: {}, value: 1 }]);
  });

  it('have no key in any attribute', async () => {
    await using _holder = await locks.acquire('user:7');
    await locks.tryAcquire('user:7');
    await locks.forceUnlock('user:7');
    expect(JSON.stringify(await sdk.metrics())).not.toContain('user:7');
  });
});

describe('the gauges', () => {
  it('never go below zero for locks that were acquired before', async () => {
    instrumentation.disable();
    const holder = await locks.acquire('k');
    const waiter = locks.acquire('k', { waitMs: 10_000 });
    instrumentation.enable();
    await holder.release();
    await (await waiter).release();
    const metrics = await sdk.metrics();
    expect(metrics['redis_lock.waiting'] ?? []).toEqual([]);
    expect(metrics['redis_lock.held']).toEqual([{ attributes: of('acquire'), value: 0 }]);
  });

  it('return to zero with disable, and stay there', async () => {
    const lease = await locks.acquire('k');
    instrumentation.disable();
    const zero = [{ attributes: of('acquire'), value: 0 }];
    expect((await sdk.metrics())['redis_lock.held']).toEqual(zero);
    instrumentation.enable();
    await lease.release();
    expect((await sdk.metrics())['redis_lock.held']).toEqual(zero);
  });

  it('have what is held when another provider comes, and the former one has nothing', async () => {
    const lease = await locks.acquire('k');
    const other = new Sdk();
    try {
      instrumentation.setMeterProvider(other.meters);
      const second = await locks.acquire('other');
      expect((await other.metrics())['redis_lock.held']).toEqual([{ attributes: of('acquire'), value: 2 }]);
      expect((await sdk.metrics())['redis_lock.held']).toEqual([{ attributes: of('acquire'), value: 0 }]);
      await Promise.all([lease.release(), second.release()]);
      expect((await other.metrics())['redis_lock.held']).toEqual([{ attributes: of('acquire'), value: 0 }]);
    } finally {
      await other.stop();
    }
  });
});
