import { createLockService } from 'nest-redis-lock';
import { MemoryStore } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';

const open = () => createLockService({ store: new MemoryStore(), keyPrefix: '' });

describe('a question about a key that no lock can have', () => {
  it.each(['a{b', 'nest_redis_lock:x'])('%s is refused, as an acquire of it', async (key) => {
    await using locks = await open();
    for (const call of [
      () => locks.acquire(key),
      () => locks.inspect(key),
      () => locks.isLocked(key),
      () => locks.permits(key).inspect(),
      () => locks.forceUnlock(key),
      () => locks.revoke(key),
    ])
      await expect(call()).rejects.toMatchObject({ code: 'LOCK_KEY_INVALID' });
  });
});

describe('after close', () => {
  it('each question says that the service has shut down, and the store is not blamed', async () => {
    const locks = await open();
    const [permits, semaphore, latch] = [locks.permits('p'), locks.semaphore('s'), locks.countDownLatch('l')];
    await locks.close();
    for (const call of [
      ...[() => locks.inspect('k'), () => locks.isLocked('k'), () => locks.list(), () => locks.ping()],
      ...[() => locks.forceUnlock('k'), () => locks.revoke('k'), () => permits.inspect()],
      ...[() => semaphore.availablePermits(), () => latch.getCount()],
    ])
      await expect(call()).rejects.toMatchObject({
        code: 'LOCK_SHUTDOWN',
        message: expect.stringMatching(/^This instance has shut down, so .* was not done/) as string,
      });
  });
});

describe('a permit of a key inside a lock of that key', () => {
  it('is refused at once, and the error names the kind of the lock', async () => {
    await using locks = await open();
    await locks.withLock('k', async () => {
      const permits = locks.permits('k', { permits: 1 });
      await expect(permits.acquire({ waitMs: 60_000 })).rejects.toThrow(
        /a lock of another kind \(exclusive\)/,
      );
      await expect(permits.acquire({ waitMs: Infinity })).rejects.toThrow(
        /has a lock on "k".*A permit does not nest/,
      );
    });
  });
});
