import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockLostError, LockStoreError } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { channelOf, holdName, Lab, newKey } from '../../support/redis/lab.js';

let lab: Lab;

beforeAll(async () => {
  lab = await Lab.start();
});

afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

const open = async () => {
  const proxy = await lab.proxy();
  return { proxy, ...lab.open({ commandTimeoutMs: 300, watchdogMs: 3_000 }, proxy.url) };
};

/** Loses the release of a key on its way. */
const loseRelease = (proxy: TcpProxy, key: string): void => {
  const stop = proxy.onData((connection, direction, chunk) => {
    if (direction !== 'toServer' || !chunk.includes(channelOf(key)) || /^\*\d+\r\n\$9/.test(chunk.toString()))
      return;
    stop();
    connection.cut();
  });
};

describe('pitfall 19: the outcome of a section', () => {
  it('is its result when the release fails: one line, and the lock is released soon after', async () => {
    const { locks, log, proxy } = await open();
    const key = newKey();
    loseRelease(proxy, key);
    await expect(locks.withLock(key, () => 'order placed')).resolves.toBe('order placed');
    await until(async () => (await lab.hold(key)) === null, {
      timeoutMs: 2_500,
      what: 'before the lease is over',
    });
    expect(log.filter((line) => line.includes(key))).toHaveLength(1);
    await lab.nothingLeft();
  });

  it('is its own error when the release fails too', async () => {
    const { locks, proxy } = await open();
    const key = newKey();
    loseRelease(proxy, key);
    const mine = new Error('card declined');
    await expect(locks.withLock(key, () => Promise.reject(mine))).rejects.toBe(mine);
  });

  it('is its result when the lock was lost, with an event; onLost: throw makes that an error', async () => {
    const { locks, events } = await open();
    const key = newKey();
    const lose = async (): Promise<string> => {
      await lab.admin.del(holdName(key));
      return 'order placed';
    };
    await expect(locks.withLock(key, lose)).resolves.toBe('order placed');
    expect(events('lost')).toMatchObject([{ key, reason: 'refused' }]);
    await expect(locks.withLock(key, { onLost: 'throw' }, lose)).rejects.toBeInstanceOf(LockLostError);
    expect(events('lost')).toHaveLength(2);
  });

  it('is its own error when it failed after the loss, also with onLost: throw', async () => {
    const { locks } = await open();
    const key = newKey();
    const mine = new Error('card declined');
    const loseAndFail = async (): Promise<never> => {
      await lab.admin.del(holdName(key));
      throw mine;
    };
    await expect(locks.withLock(key, { onLost: 'throw' }, loseAndFail)).rejects.toBe(mine);
  });

  it('only a release by hand rejects, and it too is tried again', async () => {
    const { locks, proxy } = await open();
    const key = newKey();
    const lease = await locks.acquire(key);
    loseRelease(proxy, key);
    await expect(lease.release()).rejects.toBeInstanceOf(LockStoreError);
    await until(async () => (await lab.hold(key)) === null, { timeoutMs: 2_500 });
    await expect(lease.release(), 'the same answer again').rejects.toBeInstanceOf(LockStoreError);
  });

  it('is not touched by a Redis that is gone for good: no unhandled rejection, nothing is kept', async () => {
    const { locks, proxy, log } = await open();
    const key = newKey();
    const result = await locks.withLock(key, { leaseMs: 1_000 }, () => {
      proxy.refuse();
      proxy.cut();
      return 'order placed';
    });
    expect(result).toBe('order placed');
    await until(() => Object.values(locks.usage).every((size) => size === 0), {
      what: 'it gives up at the lease end',
    });
    expect(log.some((line) => line.includes('tried again'))).toBe(true);
  });
});
