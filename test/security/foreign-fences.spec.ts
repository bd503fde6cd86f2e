import type { Redis } from 'ioredis';
import { describe, expect, it } from 'vitest';
import { hashSlot, tagOfSlot } from '../../lib/stores/redis/hash-slot.js';
import { within } from '../support/async.js';
import { holdName, useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { codeOf, inTime } from './support/replies.js';
import { OTHER_TYPES } from './support/foreign-holds.js';

/*
 * Which values are refused, and that nothing is written then, is proven in test/integration/fencing.spec.ts. Here: what
 * else goes on while one is there, and how it comes to an end.
 */
const COMMAND_TIMEOUT_MS = 5_000;
const FENCE = `nest_redis_lock:fence:{${tagOfSlot(hashSlot(holdName('order')))}}`;

const lab = useLab();

const open = (fencing = true): OpenLocks => lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS, fencing });
const bounded = <T>(requested: Promise<T>): Promise<T> => inTime(requested, 0, COMMAND_TIMEOUT_MS);

const POISONS: Readonly<Record<string, (redis: Redis, name: string) => Promise<unknown>>> = {
  ...OTHER_TYPES,
  'a set': (redis, name) => redis.sadd(name, '1'),
  'a lock of somebody who means it': (redis, name) => redis.hset(name, 'somebody:1', '1'),
  'a token beyond 2^63': (redis, name) => redis.set(name, '9223372036854775808'),
  'the last token there is': (redis, name) => redis.set(name, '9007199254740991'),
};

describe('a foreign value in place of fencing tokens', () => {
  it.each(Object.entries(POISONS))(
    '%s: no lock of that slot is granted, and all that needs no new token works',
    async (_what, poison) => {
      const [holder, other] = [open(), open()];
      const lease = await holder.locks.acquire('order');
      await lab.admin.del(FENCE);
      await poison(lab.admin, FENCE);
      // Held by another process, so this is the truth; and looking at it needs no token.
      expect(await bounded(codeOf(other.locks.acquire('order', { waitMs: 0 })))).toBe('LOCK_TAKEN');
      expect(await bounded(other.locks.inspect('order'))).toMatchObject({ holders: [{ count: 1 }] });
      await bounded(lease.extend(50_000));
      const waiting = codeOf(other.locks.acquire('order', { waitMs: 20_000 }));
      await lab.waiting('order');
      expect(await bounded(lease.release())).toBe('released');
      // Its turn comes, and it does not pass for a lock that is taken.
      expect(await within(10_000, waiting)).toBe('LOCK_STORE_FAILED');
      expect(await bounded(other.locks.isLocked('order'))).toBe(false);
      expect(await bounded(codeOf(other.locks.acquire(['another', 'order'])))).toBe('LOCK_STORE_FAILED');
      expect(await bounded(open(false).locks.withLock('order', () => 'ran without a token'))).toContain(
        'ran',
      );
      expect(await bounded(other.locks.withLock('another', () => 'ran'))).toBe('ran');
      expect([...holder.events('store-down'), ...other.events('store-down')]).toEqual([]);
      await lab.admin.del(FENCE);
      expect(await other.locks.withLock('order', { waitMs: 0 }, () => 'ran')).toBe('ran');
      await lab.nothingLeft(holder, other);
    },
  );

  it('a token that would have ended is kept for good with the next grant', async () => {
    const { locks } = open();
    const ahead = 8_000_000_000_000_000;
    await lab.admin.set(FENCE, ahead, 'PX', 60_000);
    expect(await locks.withLock('order', ({ fencingToken }) => fencingToken)).toBe(ahead + 1);
    expect(await lab.admin.pttl(FENCE)).toBe(-1);
  });
});
