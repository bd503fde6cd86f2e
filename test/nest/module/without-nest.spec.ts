import { Logger } from '@nestjs/common';
import { createLockService, Locked, LockService } from 'nest-redis-lock';
import { MemoryStore } from 'nest-redis-lock/testing';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { deferred, until } from '../../support/async.js';
import { freePort } from '../../support/loopback.js';
import { RecordingLogger } from '../../support/nest/recording-logger.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();

class Orders {
  runs = 0;

  @Locked('order')
  async pay(): Promise<void> {
    this.runs += 1;
  }
}

describe('createLockService', () => {
  let logger: RecordingLogger;
  beforeEach(() => {
    logger = new RecordingLogger();
    Logger.overrideLogger(logger);
  });
  beforeAll(() => world.redis.flushall());
  afterAll(() => Logger.overrideLogger(['log', 'error', 'warn', 'debug', 'verbose']));

  it('resolves with a lock service on Redis, whose connections end with the block', async () => {
    const before = await world.connections();
    {
      await using locks = await createLockService(world.options());
      expect(locks).toBeInstanceOf(LockService);
      const seen = await locks.withLock('order', async () => [
        await world.isTaken('order'),
        await locks.isLocked('order'),
      ]);
      expect(seen).toEqual([true, true]);
      expect(await world.isTaken('order')).toBe(false);
      expect((await world.connections()).length).toBeGreaterThan(before.length);
    }
    await until(async () => (await world.connections()).length === before.length, {
      what: 'the connections of the service are closed',
    });
    expect([logger.warnings, logger.errors]).toEqual([[], []]);
  });

  it('close() rejects waiters and new callers, awaits the running section, and releases its lock', async () => {
    const locks = await createLockService(world.options({ waitMs: 30_000 }));
    const gate = deferred<string>();
    const running = deferred();
    const section = locks.withLock('order', () => (running.resolve(), gate.promise));
    await running.promise;
    const waiting = expect(locks.acquire('order')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    const closing = locks.close();
    await waiting;
    await expect(locks.acquire('other')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(await world.isTaken('order')).toBe(true);
    gate.resolve('done');
    expect(await section).toBe('done');
    await closing;
    expect(await world.isTaken('order')).toBe(false);
    expect(locks.close()).toBe(locks.close());
  });

  it('close() reports the lock of a section as lost after shutdownGraceMs, and leaves it to its lease', async () => {
    const locks = await createLockService(world.options({ shutdownGraceMs: 50 }));
    const lease = await locks.acquire('slow');
    await locks.close();
    expect(lease.loss).toMatchObject({ reason: 'shutdown' });
    expect(await world.isTaken('slow')).toBe(true);
  });

  it('resolves while Redis cannot be reached, as the start of an app does, and calls then fail', async () => {
    await using locks = await createLockService({ redis: { host: '127.0.0.1', port: await freePort() } });
    expect(logger.errors.concat(logger.warnings).join()).toContain('The lock store does not work');
    await expect(locks.acquire('order')).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
  });

  it('rejects a call without options, and says what to give', async () => {
    const creating = createLockService(undefined as never);
    await expect(creating).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    await expect(creating).rejects.toThrow(
      'createLockService needs options: createLockService({ redis: "redis://…" }).',
    );
  });

  it('accepts options of Nest that are undefined', async () => {
    const given = { redis: world.server.url, name: undefined, interceptor: undefined, context: undefined };
    await using locks = await createLockService(given);
    await expect(locks.ping()).resolves.toBeUndefined();
  });

  it('rejects, and closes the store, when the store can never work', async () => {
    const store = new MemoryStore();
    const closed = deferred();
    Object.assign(store, {
      open: () => Promise.reject(new TypeError('no such table')),
      close: async () => closed.resolve(),
    });
    await expect(createLockService({ store })).rejects.toThrow('no such table');
    await closed.promise;
  });

  it('gives no lock to a class that Nest did not create: its locked method does not run', async () => {
    await using locks = await createLockService(world.options());
    const orders = new Orders();
    await expect(orders.pay()).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION' });
    expect([orders.runs, await locks.isLocked('order')]).toEqual([0, false]);
  });
});
