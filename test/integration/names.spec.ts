import { LockKeyError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { newKey, useLab } from '../support/redis/lab.js';

const lab = useLab();

describe('braces in keys', () => {
  it.each([
    ['order:{42}:items', 'redisson_lock__channel:lock:order:{42}:items'],
    ['{42}', 'redisson_lock__channel:lock:{42}'],
    ['plain', 'redisson_lock__channel:{lock:plain}'],
  ])('%s is taken, waited for, shown and released under its own name', async (key, channel) => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const lease = await holder.locks.acquire(key);
    expect(await lab.hold(key)).not.toBeNull();
    expect(await waiter.locks.isLocked(key)).toBe(true);
    const waiting = waiter.locks.acquire(key, { waitMs: 20_000 });
    await until(async () => (await lab.channels()).includes(channel));
    await lease.release();
    await (await within(5_000, waiting)).release();
    await lab.nothingLeft(holder, waiter);
  });

  it.each(['{', '}', '{}', 'a{}b', 'a}b', 'a{b', '}{'])(
    '%s would land in another slot than its channel in a cluster, and is refused before Redis is asked',
    async (key) => {
      const { locks } = lab.open();
      const error: unknown = await locks.acquire(key).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockKeyError);
      expect((error as Error).message).toContain(`"${key}"`);
      await expect(locks.withLock(['fine', key], () => 'ran')).rejects.toBeInstanceOf(LockKeyError);
      expect(await lab.leftovers()).toEqual([]);
    },
  );
});

describe('a key that is one pair of braces, beside the key inside', () => {
  it.each(['exclusive', 'write'] as const)(
    'has its own wait queue: a release of one grants no key to a waiter of the other, mode %s',
    async (mode) => {
      const [one, other, third] = [1, 2, 3].map(() => lab.open({ keyPrefix: '' }));
      const key = newKey();
      const pair = `{${key}}`;
      const held = await one!.locks.acquire(pair, { mode });
      const inside = await other!.locks.acquire(key, { mode });
      const waiting = third!.locks.acquire(pair, { mode, waitMs: 20_000 });
      await until(async () => (await one!.locks.inspect(pair))?.waiting.length === 1);
      expect((await one!.locks.inspect(key))?.waiting).toEqual([]);
      await inside.release();
      expect(await one!.locks.isLocked(key)).toBe(false);
      await held.release();
      await (await waiting).release();
    },
  );
});

describe('prefixes', () => {
  it('are part of the name: other prefixes are other locks, and two spellings of one name exclude each other', async () => {
    const [plain, prefixed] = [lab.open({ keyPrefix: '' }), lab.open({ keyPrefix: 'app:' })];
    const key = newKey();
    await plain.locks.withLock(key, () =>
      prefixed.locks.withLock(key, async () => {
        expect(await lab.admin.exists(key, `app:${key}`)).toBe(2);
      }),
    );
    await plain.locks.withLock(`app:${key}`, async () => {
      expect(await prefixed.locks.tryAcquire(key)).toBeNull();
    });
  });
});
