import 'reflect-metadata';
import { bindLocks, createTestingLocks } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { LockConfigurationError, Locked, currentLease } from 'nest-redis-lock';

class Base {
  @Locked('base')
  async base(): Promise<string> {
    return currentLease().key;
  }
}

class Orders extends Base {
  @Locked('order')
  async pay(): Promise<string> {
    return currentLease().key;
  }

  @Locked('invoice', { service: 'billing' })
  async bill(): Promise<string> {
    return currentLease().key;
  }
}

describe('bindLocks', () => {
  it('returns the object, with all its locked methods bound: own, inherited and of named services', async () => {
    const orders = new Orders();
    const bound = bindLocks(orders, createTestingLocks());
    expect(bound).toBe(orders);
    await expect(Promise.all([bound.pay(), bound.base(), bound.bill()])).resolves.toEqual([
      'order',
      'base',
      'invoice',
    ]);
  });

  it('binds a frozen object', async () => {
    await expect(bindLocks(Object.freeze(new Orders()), createTestingLocks()).pay()).resolves.toBe('order');
  });

  it('binds again: the last one counts', async () => {
    const [one, two] = [createTestingLocks(), createTestingLocks()];
    const orders = bindLocks(bindLocks(new Orders(), one), two);
    const taken: string[] = [];
    one.on('acquired', () => taken.push('one'));
    two.on('acquired', () => taken.push('two'));
    await orders.pay();
    expect(taken).toEqual(['two']);
  });

  it('binds one object and not its class', async () => {
    bindLocks(new Orders(), createTestingLocks());
    await expect(new Orders().pay()).rejects.toThrow(LockConfigurationError);
  });

  it('refuses an object without locked methods, which would be a mistake in the test', () => {
    expect(() => bindLocks(new (class Plain {})(), createTestingLocks())).toThrow(
      /Plain has no @Locked or @Limited method/,
    );
  });
});

describe('createTestingLocks', () => {
  it('gives services that do not share locks', async () => {
    const [one, two] = [createTestingLocks(), createTestingLocks()];
    await using _lease = await one.acquire('x');
    await using other = await two.tryAcquire('x');
    expect(other).not.toBeNull();
  });

  it('can be off, and takes settings', async () => {
    const off = createTestingLocks('off');
    await using _one = await off.acquire('x');
    await using _two = await off.acquire('x');
    const hasty = createTestingLocks('memory', { waitMs: 0 });
    await using _lease = await hasty.acquire('x');
    await expect(hasty.acquire('x')).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    expect(() => createTestingLocks('none' as never)).toThrow(LockConfigurationError);
  });
});
