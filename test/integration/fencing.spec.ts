import { describe, expect, it } from 'vitest';
import { LockStoreError } from 'nest-redis-lock';
import { until } from '../support/async.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';

const FENCE_KEYS = 'nest_redis_lock:fence:*';

const lab = useLab();

const fenceKeys = (): Promise<string[]> => lab.admin.keys(FENCE_KEYS);

const onlyFenceKey = async (): Promise<string> => {
  const keys = await fenceKeys();
  expect(keys).toHaveLength(1);
  return keys[0]!;
};

describe('tokens do not outrun the clock', () => {
  it('without waiters one token is reserved, however fast the grants come', async () => {
    const { locks } = lab.open();
    const key = newKey();
    for (let i = 0; i < 300; i += 1) await locks.withLock(key, () => undefined);
    const last = await locks.withLock(key, ({ fencingToken }) => fencingToken);
    const [seconds, micros] = (await lab.admin.time()) as unknown as [number, number];
    expect(last).toBeLessThanOrEqual(Number(seconds) * 1_000_000 + Number(micros));
  });

  it('after FLUSHALL they go on growing', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const before: number[] = [];
    await Promise.all(
      Array.from({ length: 100 }, () => locks.withLock(key, ({ fencingToken }) => before.push(fencingToken))),
    );
    await lab.admin.flushall();
    const after = await locks.withLock(key, ({ fencingToken }) => fencingToken);
    expect(after).toBeGreaterThan(Math.max(...before));
  });
});

describe('poison in the token key', () => {
  /** Puts something else where the tokens of a key are, and expects that it is refused. */
  const expectRefused = async (poison: (fence: string) => Promise<unknown>): Promise<void> => {
    const { locks, events } = lab.open();
    const key = newKey();
    await locks.withLock(key, () => undefined);
    const fence = await onlyFenceKey();
    await lab.admin.del(fence);
    await poison(fence);
    const poisoned = await lab.admin.dumpBuffer(fence);
    const failure: unknown = await locks.acquire(key).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockStoreError);
    expect(failure).toMatchObject({ outcome: 'not-executed', key });
    expect((failure as Error).message).toMatch(/FENCE|WRONGTYPE/);
    expect(await lab.admin.exists(holdName(key)), 'no hold was made').toBe(0);
    expect(await lab.admin.dumpBuffer(fence), 'it is not written over').toEqual(poisoned);
    expect(events('store-down'), 'one bad key is no outage').toEqual([]);
    await locks.withLock(`${key} of another slot`, () => undefined);
    await lab.admin.del(fence);
    await expect(locks.withLock(key, ({ fencingToken }) => fencingToken)).resolves.toBeGreaterThan(0);
  };

  it.each([
    '9007199254740992',
    '9007199254740991',
    '18446744073709551616',
    '1'.repeat(400),
    'inf',
    '-inf',
    'nan',
    '-1',
    '-0',
    '1e3',
    '0x10',
    '1.0',
    ' 5',
    '5 ',
    '5\n',
    '+5',
    '',
    'abc',
    '\u0000',
    '٣',
  ])('%j is refused: no token, no hold', (value) => expectRefused((fence) => lab.admin.set(fence, value)));

  it.each<[string, (fence: string) => Promise<unknown>]>([
    ['a hash', (fence) => lab.admin.hset(fence, 'a', '1')],
    ['a list', (fence) => lab.admin.rpush(fence, '1')],
    ['a stream', (fence) => lab.admin.xadd(fence, '*', 'a', '1')],
    ['ten megabytes', (fence) => lab.admin.setrange(fence, 10_000_000, '1')],
  ])('%s is refused', (_what, poison) => expectRefused(poison));

  it('the largest exact integer is the last token that is given', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await locks.withLock(key, () => undefined);
    await lab.admin.set(await onlyFenceKey(), '9007199254740990');
    await expect(locks.withLock(key, ({ fencingToken }) => fencingToken)).resolves.toBe(
      Number.MAX_SAFE_INTEGER,
    );
    await expect(locks.acquire(key)).rejects.toBeInstanceOf(LockStoreError);
  });

  it('all 16 digits survive: the token that is given is the token that is stored', async () => {
    const { locks } = lab.open();
    const key = newKey();
    for (let i = 0; i < 50; i += 1) {
      const token = await locks.withLock(key, ({ fencingToken }) => fencingToken);
      expect(await lab.admin.get(await onlyFenceKey())).toBe(String(token));
    }
  });
});

describe('the tokens of several keys', () => {
  it('each has its own token, and each grows by itself whatever the others have reached', async () => {
    const { locks } = lab.open();
    const [slow, fast] = [newKey('slow'), newKey('fast')];
    await locks.withLock(fast, () => undefined);
    const ahead = 8_000_000_000_000_000;
    await lab.admin.set(await onlyFenceKey(), String(ahead));
    const both = await locks.withLock([slow, fast], (lease) => [lease.tokenFor(slow), lease.tokenFor(fast)]);
    expect(both[1]).toBe(ahead + 1);
    expect(both[0], 'not the largest of both').toBeLessThan(ahead);
    // So that a later writer of the slow key is not refused.
    const later = await locks.withLock(slow, ({ fencingToken }) => fencingToken);
    expect(later).toBeGreaterThan(both[0]!);
    expect(later).toBeLessThan(ahead);
    await expect(locks.withLock([slow, fast], (lease) => lease.fencingToken)).rejects.toThrow(/tokenFor/);
  });
});

describe('where tokens are kept', () => {
  it('memory is bounded: 2,000 keys that never come back need no key for each, and at most one for a slot', async () => {
    const { locks } = lab.open();
    await Promise.all(
      Array.from({ length: 2_000 }, (_, i) =>
        locks.withLock(`{slot-${i % 20}}:${newKey()}`, () => undefined),
      ),
    );
    expect((await fenceKeys()).length).toBeLessThanOrEqual(20);
    expect((await lab.admin.keys('*')).sort()).toEqual((await fenceKeys()).sort());
  });

  it('one hash reached through two prefixes has one series', async () => {
    const [plain, prefixed, options] = [
      lab.open({ keyPrefix: 'app:lock:' }),
      lab.open({ keyPrefix: 'lock:' }, { ...lab.server.clientOptions(), keyPrefix: 'app:' }),
      lab.open({ keyPrefix: '' }, { ...lab.server.clientOptions(), keyPrefix: 'app:lock:' }),
    ];
    const key = newKey();
    const tokens: number[] = [];
    for (let i = 0; i < 12; i += 1) {
      const { locks } = [plain, prefixed, options][i % 3]!;
      tokens.push(await locks.withLock(key, ({ fencingToken }) => fencingToken));
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    expect(await fenceKeys()).toHaveLength(1);
    // And they exclude each other.
    await plain.locks.withLock(key, async () => {
      expect([await prefixed.locks.tryAcquire(key), await options.locks.tryAcquire(key)]).toEqual([
        null,
        null,
      ]);
    });
  });

  it('a token key that is lost, or a clock that steps back, does not set the series back', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const take = () => locks.withLock(key, ({ fencingToken }) => fencingToken);
    const first = await take();
    await lab.admin.del(await onlyFenceKey());
    const second = await take();
    expect(second).toBeGreaterThan(first);
    // The server's clock is now behind the last token, as after a step back.
    const ahead = second + 3_600_000_000;
    await lab.admin.set(await onlyFenceKey(), String(ahead));
    expect([await take(), await take()]).toEqual([ahead + 1, ahead + 2]);
  });

  it('it has no time to live that could end, and is never shared with a hold', async () => {
    const { locks } = lab.open();
    await locks.withLock(newKey(), () => undefined);
    expect(await lab.admin.pttl(await onlyFenceKey())).toBe(-1);
  });
});

describe('tokens of competing processes', () => {
  it('are strictly increasing in the order of the holds', async () => {
    const services = Array.from({ length: 4 }, () => lab.open({ waitMs: 20_000 }));
    const key = newKey();
    const tokens: number[] = [];
    const take = (i: number) =>
      services[i % 4]!.locks.withLock(key, ({ fencingToken }) => void tokens.push(fencingToken));
    await Promise.all(Array.from({ length: 200 }, (_, i) => take(i)));
    expect(tokens).toHaveLength(200);
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
    await until(() => services.every(({ locks }) => locks.usage.keys === 0));
  });
});
