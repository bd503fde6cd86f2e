import { LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { COUNTER_RULES, DOCUMENTED_RULES, refusedBy, userWith } from '../support/redis/documented-user.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import { storeFailure } from '../support/redis/store-failures.js';
import { until } from '../support/async.js';

const lab = useLab();

const COUNTED = { fencing: 'redisson' } as const;

const counterOf = (key: string): string => `redisson_lock_token:{${holdName(key)}}`;

/** What Java's lock and unlock do to the counter. */
const asJava = (key: string): Promise<number> => lab.admin.incr(counterOf(key));

const take = ({ locks }: OpenLocks, key: string): Promise<number> =>
  locks.withLock(key, ({ fencingToken }) => fencingToken);

const WAYS = [
  ['with a wait queue', () => Promise.resolve()],
  ['without', (key: string) => lab.withoutQueue(key)],
] as const;

describe("tokens of Redisson's counter", () => {
  it('continue where Java stopped, and Java continues where they stopped', async () => {
    const one = lab.open(COUNTED);
    const key = newKey();
    expect([await take(one, key), await asJava(key), await take(one, key)]).toEqual([1, 2, 3]);
    expect(await lab.admin.get(counterOf(key))).toBe('3');
    expect(await lab.admin.keys('nest_redis_lock:*')).toEqual([]);
  });

  it.each(['a{b}c', '{b}', 'plain', 'ä:🔒'])(
    'are those of the name that Redisson gives them for %j',
    async (name) => {
      const one = lab.open({ ...COUNTED, keyPrefix: '' });
      const counter = `redisson_lock_token:${name.includes('{') ? name : `{${name}}`}`;
      await lab.admin.set(counter, 41);
      expect(await take(one, name)).toBe(42);
      const [holder, waiter] = [await one.locks.acquire(name), lab.open({ ...COUNTED, keyPrefix: '' })];
      const waiting = waiter.locks.acquire(name);
      await until(async () => (await one.locks.inspect(name))?.waiting.length === 1);
      await holder.release();
      const next = await waiting;
      expect(next.fencingToken).toBeGreaterThan(43);
      await next.release();
    },
  );

  it('are the same for a caller that takes the lock with fair, at once or after it stood in line', async () => {
    const [one, two] = [lab.open(COUNTED), lab.open(COUNTED)];
    const key = newKey();
    const fair = { mode: 'fair', waitMs: 20_000 } as const;
    const lease = await one.locks.acquire(key, fair);
    const waiting = two.locks.acquire(key, fair);
    await until(async () => (await two.locks.inspect(key))?.waiting.length === 1);
    await lease.release();
    const next = await waiting;
    await next.release();
    expect([lease.fencingToken, next.fencingToken]).toEqual([1, 2]);
    expect([await take(one, key), await asJava(key)]).toEqual([3, 4]);
    expect(await one.locks.withLock(key, fair, ({ fencingToken }) => fencingToken)).toBe(5);
    expect(await lab.admin.pttl(counterOf(key))).toBe(-1);
  });

  it('survive a release, an expired lease and a forced unlock, and have no time to live', async () => {
    const one = lab.open({ ...COUNTED, ...SHORT_WATCHDOG });
    const key = newKey();
    // As Redisson's MultiLock leaves it when it sets a lease.
    await lab.admin.set(counterOf(key), '5', 'PX', 60_000);
    expect(await take(one, key)).toBe(6);
    expect(await lab.admin.pttl(counterOf(key))).toBe(-1);
    const brief = await one.locks.acquire(key, { leaseMs: 500 });
    await until(() => brief.lost);
    // Redis counts from a moment later. A caller that is queued meanwhile has 64 tokens reserved.
    await until(async () => (await lab.admin.exists(holdName(key))) === 0);
    const forced = await one.locks.acquire(key);
    await one.locks.forceUnlock(key);
    expect([brief.fencingToken, forced.fencingToken, await take(one, key)]).toEqual([7, 8, 9]);
    expect(await lab.admin.pttl(counterOf(key))).toBe(-1);
  });

  it.each(WAYS)('are strictly growing in the order of the holds, over processes, %s', async (_, prepare) => {
    const services = Array.from({ length: 4 }, () => lab.open({ ...COUNTED, waitMs: 20_000 }));
    const key = newKey();
    await prepare(key);
    const tokens: number[] = [];
    const enter = (i: number) =>
      services[i % 4]!.locks.withLock(key, ({ fencingToken }) => void tokens.push(fencingToken));
    await Promise.all(Array.from({ length: 200 }, (_unused, i) => enter(i)));
    expect(tokens).toHaveLength(200);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(Number(await lab.admin.get(counterOf(key)))).toBeGreaterThanOrEqual(tokens.at(-1)!);
    await until(() => services.every(({ locks }) => locks.usage.keys === 0));
  });

  it('come with a turn that a process without tokens, or with its own, passes on', async () => {
    for (const fencing of [false, true]) {
      const [other, one] = [lab.open({ fencing }), lab.open(COUNTED)];
      const key = newKey();
      const held = await other.locks.acquire(key);
      const waiting = one.locks.acquire(key);
      await lab.subscribed(key);
      await held.release();
      const lease = await waiting;
      // The first, unless it has asked for that moment again.
      expect([1, 65]).toContain(lease.fencingToken);
      await lease.release();
      expect(await take(one, key)).toBeGreaterThan(lease.fencingToken);
    }
  });

  it('are the ones that holders read: each lease of a hand-off batch has its own, and unused ones are skipped', async () => {
    const one = lab.open(COUNTED);
    const key = newKey();
    const first = await one.locks.acquire(key);
    const tokens: number[] = [];
    const waiting = [1, 2, 3].map(() =>
      one.locks.withLock(key, ({ fencingToken }) => void tokens.push(fencingToken)),
    );
    await first.release();
    await Promise.all(waiting);
    expect(tokens).toEqual([2, 3, 4]);
    const next = await take(one, key);
    expect(next).toBeGreaterThan(4);
    expect(Number(await lab.admin.get(counterOf(key)))).toBe(next);
  });

  it.each(['9007199254740991', '-1', 'abc', '1.0', '', ' 5'])(
    'a counter that is %j is refused: no token, no hold, and it stays as it is',
    async (value) => {
      const { locks, events } = lab.open(COUNTED);
      const key = newKey();
      await lab.admin.set(counterOf(key), value);
      const failure: unknown = await locks.acquire(key).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(LockStoreError);
      expect(failure).toMatchObject({ outcome: 'not-executed', key });
      expect((failure as Error).message).toContain('FENCE');
      expect(await lab.admin.exists(holdName(key))).toBe(0);
      expect(await lab.admin.get(counterOf(key))).toBe(value);
      expect(events('store-down')).toEqual([]);
    },
  );

  it('a value of another type in place of the counter is refused in the same way', async () => {
    const { locks } = lab.open(COUNTED);
    const key = newKey();
    await lab.admin.rpush(counterOf(key), '1');
    await storeFailure(locks.acquire(key), /WRONGTYPE/);
    expect(await lab.admin.exists(holdName(key))).toBe(0);
  });

  it('their counter is no name for a lock', async () => {
    const { locks } = lab.open({ keyPrefix: '' });
    await expect(locks.acquire('redisson_lock_token:{order}')).rejects.toMatchObject({
      code: 'LOCK_KEY_INVALID',
    });
  });
});

describe("the smallest user of Redis that shares Redisson's tokens", () => {
  it.each(WAYS)('needs no more than the documents say, %s', async (_, prepare) => {
    const user = await userWith(lab, [...DOCUMENTED_RULES, ...COUNTER_RULES]);
    const [one, two] = [lab.open(COUNTED, user), lab.open(COUNTED, user)];
    const key = newKey();
    await prepare(key);
    const lease = await one.locks.acquire(key);
    const waiting = two.locks.acquire(key);
    await lab.waiting(key);
    await lease.release();
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(1);
    await next.release();
    expect(await refusedBy(lab.server)).toEqual([]);
  });

  it.each(COUNTER_RULES)(
    'needs %s: without it no lock is taken, and the server is not said to be down',
    async (rule) => {
      const user = await userWith(
        lab,
        [...DOCUMENTED_RULES, ...COUNTER_RULES].filter((one) => one !== rule),
      );
      const one = lab.open(COUNTED, user);
      const key = newKey();
      await storeFailure(one.locks.acquire(key), /can't access/);
      expect(new Set(await refusedBy(lab.server))).toEqual(new Set([counterOf(key)]));
      expect(await lab.admin.exists(holdName(key))).toBe(0);
    },
  );

  it('a user without the permission for it still hands over the lock, also to a waiter that wants a token', async () => {
    const [without, withIt] = [await userWith(lab, DOCUMENTED_RULES), lab.server.clientOptions()];
    const [other, one] = [lab.open({}, without), lab.open(COUNTED, withIt)];
    const key = newKey();
    const held = await other.locks.acquire(key);
    const waiting = one.locks.acquire(key);
    await lab.subscribed(key);
    await held.release();
    const lease = await waiting;
    expect(lease.fencingToken).toBeGreaterThan(0);
    await lease.release();
  });
});
