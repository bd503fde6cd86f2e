import { Injectable } from '@nestjs/common';
import { Test } from '@nestjs/testing';
import { createTestingLocks, RedisLockTestingModule, TestingLockService } from 'nest-redis-lock/testing';
import { afterEach, describe, expect, it } from 'vitest';
import {
  currentLease,
  getLockServiceToken,
  Locked,
  LockNotAcquiredError,
  LockService,
} from 'nest-redis-lock';
import { until } from '../support/async.js';

const closing: { close(): Promise<void> }[] = [];
afterEach(async () => {
  for (const module of closing.splice(0)) await module.close();
});

@Injectable()
class Orders {
  @Locked('order:<<id>>', { waitMs: 0 })
  async pay(id: string): Promise<number> {
    return currentLease().fencingToken + 0 * id.length;
  }
}

const start = async (options?: Parameters<typeof RedisLockTestingModule.forRoot>[0]) => {
  const module = await Test.createTestingModule({
    imports: [RedisLockTestingModule.forRoot(options)],
    providers: [Orders],
  }).compile();
  await module.init();
  closing.push(module);
  return { module, orders: module.get(Orders), locks: module.get(TestingLockService) };
};

describe('testing.hold', () => {
  it('holds a key as another process: the app finds it taken until the release', async () => {
    const { orders, locks } = await start({ keyPrefix: 'shop:' });
    {
      await using outside = await locks.testing.hold('order:42');
      await expect(orders.pay('42')).rejects.toThrow(LockNotAcquiredError);
      await expect(orders.pay('43')).resolves.toBeGreaterThan(outside.fencingToken);
      expect(locks.held()).toEqual([]);
    }
    await expect(orders.pay('42')).resolves.toEqual(expect.any(Number));
  });

  it('has another owner, which errors and inspect() show', async () => {
    const { orders, locks } = await start();
    const outside = await locks.testing.hold('order:42');
    const error = await orders.pay('42').catch((failure: unknown) => failure);
    const { instanceId } = (error as LockNotAcquiredError).holder!;
    expect(instanceId).not.toBe(locks.instanceId);
    const shown = async () => (await locks.inspect('order:42'))!.holders[0]!;
    expect((await shown()).owner).toMatch(instanceId);
    // A process writes its record a second after its first lock.
    await until(async () => (await shown()).process?.appName === 'outside');
    await outside.release();
    await expect(locks.isLocked('order:42')).resolves.toBe(false);
  });

  it('is no nested call: a section of the app does not give it its key', async () => {
    const { locks } = await start({ waitMs: 0 });
    await locks.withLock('order:42', () =>
      expect(locks.testing.hold('order:42')).rejects.toThrow(LockNotAcquiredError),
    );
  });

  it('makes a waiter of the app wait until the release', async () => {
    const { locks } = await start();
    const outside = await locks.testing.hold('order:42');
    const waiting = locks.acquire('order:42');
    await outside.release();
    await using lease = await waiting;
    expect(lease.key).toBe('order:42');
  });

  it('holds for reading, for writing and in fair order', async () => {
    const { locks } = await start({ waitMs: 0 });
    await using _reader = await locks.testing.hold('a', { mode: 'read' });
    await using second = await locks.tryAcquire('a', { mode: 'read' });
    expect(second).not.toBeNull();
    await expect(locks.tryAcquire('a', { mode: 'write' })).resolves.toBeNull();
    await using _writer = await locks.testing.hold('b', { mode: 'write' });
    await expect(locks.tryAcquire('b', { mode: 'read' })).resolves.toBeNull();
    await using _fair = await locks.testing.hold('c', { mode: 'fair' });
    await expect(locks.tryAcquire('c', { mode: 'fair' })).resolves.toBeNull();
  });

  it('holds one permit of a key', async () => {
    const { locks } = await start({ waitMs: 0 });
    await using _one = await locks.testing.hold('bank', { permits: 2 });
    await using second = await locks.permits('bank').acquire();
    expect(second.key).toBe('bank');
    await expect(locks.permits('bank').tryAcquire()).resolves.toBeNull();
  });

  it('ends with the app if the test forgets it, also where a running section waits for it', async () => {
    const { module, locks } = await start({ shutdownGraceMs: 60_000 });
    await locks.testing.hold('order:42', { mode: 'exclusive' });
    const section = locks.withLock('cart', () => locks.withLock('order:42', () => 'both'));
    await expect.poll(() => locks.usage.leases).toBe(2);
    await module.close();
    await expect(section).resolves.toBe('both');
    await expect(locks.testing.hold('order:43')).rejects.toThrow('after the end of the app');
  });

  it('is refused with mode off, and with options that make no sense', async () => {
    const { locks: off } = await start({ mode: 'off' });
    await expect(off.testing.hold('a')).rejects.toThrow("testing.hold needs mode 'memory'");
    const { locks } = await start();
    const both = locks.testing.hold('a', { permits: 2, mode: 'read' });
    await expect(both).rejects.toThrow('both mode and permits');
    await expect(locks.testing.hold('a', { wait: 1 } as never)).rejects.toThrow('Did you mean waitMs?');
    const misspelt = locks.testing.hold('a', { permits: 1, wait: 1 } as never);
    await expect(misspelt).rejects.toThrow('wait is no option of testing.hold');
    await expect(locks.testing.hold('a', null as never)).rejects.toThrow(
      'The options of testing.hold must be',
    );
    await expect(locks.testing.hold('', {})).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
  });

  it('is there for all tokens of the module, and without Nest', async () => {
    const { module, locks } = await start({ names: ['billing'] });
    expect(module.get(LockService)).toBe(locks);
    expect(module.get(getLockServiceToken('billing'))).toBe(locks);
    const own = createTestingLocks('memory', { waitMs: 0 });
    await using _outside = await own.testing.hold('a');
    await expect(own.tryAcquire('a')).resolves.toBeNull();
  });
});
