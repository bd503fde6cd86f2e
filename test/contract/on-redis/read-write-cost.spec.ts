import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { ReadClaim } from '../../../lib/core/seam/claim.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { scriptCommandsOf, visitsOf } from '../../support/redis/script-commands.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { expectGranted, newKey } from '../../support/stores/harness.js';
import { readFor, writeFor } from '../kinds/kind-under-contract.js';

const MINUTE = 60_000;

let server: RedisServer;
let admin: Redis;
let store: RedisStore;

beforeAll(async () => {
  server = await RedisServer.start();
  admin = new Redis(server.url);
  store = new RedisStore({ redis: server.url });
});
afterAll(async () => {
  await store.close();
  admin.disconnect();
  await server.stop();
});

const indexOf = (key: string): string => `nest_redis_lock:readers:{${key}}`;

/** Acquires for a reader of each lease, in minutes. */
const readersOf = async (key: string, minutes: readonly number[]): Promise<ReadClaim[]> => {
  const claims = minutes.map((lease) => readFor(key, { leaseMs: lease * MINUTE }));
  for (const claim of claims) expectGranted(await store.kinds.read.acquire(claim));
  return claims;
};

const release = async (claim: ReadClaim): Promise<void> => {
  expect(await store.kinds.read.release(claim)).toMatchObject({ wasHeld: true });
};

/** Writes a reader as Redisson does: the library knows nothing of it. */
const enterJava = async (key: string, owner: string, minutes: number): Promise<void> => {
  await admin.hset(key, 'mode', 'read', owner, 1);
  await admin.set(`{${key}}:${owner}:rwlock_timeout:1`, 1, 'PX', minutes * MINUTE);
  await admin.pexpire(key, Math.max(minutes * MINUTE, await admin.pttl(key)));
};

/** What is left of the hash, in minutes, rounded up. */
const minutesLeft = async (key: string): Promise<number> => Math.ceil((await admin.pttl(key)) / MINUTE);

/** 1 to `count`, in an order that has no order. */
const mixed = (count: number): number[] => Array.from({ length: count }, (_, i) => ((i * 7) % count) + 1);

describe('the cost of a read lock does not depend on the number of readers:', () => {
  const crowds = async () => {
    const keys = [newKey('few'), newKey('many')] as const;
    const few = await readersOf(keys[0], mixed(10));
    const many = await readersOf(keys[1], mixed(1_000));
    return [few, many] as const;
  };
  const shortestAndLongest = (claims: readonly ReadClaim[]): ReadClaim[] => {
    const sorted = claims.toSorted((a, b) => a.leaseMs - b.leaseMs);
    return [sorted[0]!, sorted.at(-1)!];
  };

  it('a release, of the reader with the shortest lease and of that with the longest', async () => {
    const [few, many] = (await crowds()).map(shortestAndLongest);
    for (const i of [0, 1]) {
      const visits = await visitsOf(server, () => release(many![i]!));
      expect(visits).toEqual(await visitsOf(server, () => release(few![i]!)));
      expect(visits.length).toBeLessThan(25);
    }
  });

  it.each<[string, (claim: ReadClaim) => Promise<unknown>]>([
    ['an acquire', ({ finalKey }) => store.kinds.read.acquire(readFor(finalKey))],
    ['a repeated acquire', (claim) => store.kinds.read.acquire(claim)],
    [
      'an acquire of a writer, which is refused',
      ({ finalKey }) => store.kinds.write.acquire(writeFor(finalKey)),
    ],
    ['a renewal', (claim) => store.kinds.read.extendMany([{ ...claim, leaseMs: 2_000 * MINUTE }])],
    [
      'a release that leaves the hold for a while',
      (claim) => store.kinds.read.release(claim, { keepForMs: MINUTE }),
    ],
    ['a forced release', ({ finalKey }) => store.forceUnlock(finalKey)],
  ])('%s', async (_what, act) => {
    const [few, many] = await crowds();
    const visits = await visitsOf(server, () => act(many[5]!));
    expect(visits).toEqual(await visitsOf(server, () => act(few[5]!)));
  });

  it('a release after the index was deleted visits all readers, and the next one does not', async () => {
    const [few, many] = await crowds();
    for (const [one, ...rest] of [few, many]) {
      await admin.del(indexOf(one!.finalKey));
      const visits = await visitsOf(server, () => release(one!));
      expect(visits.filter((command) => command.startsWith('pttl')).length).toBeGreaterThan(rest.length);
      expect(await admin.zcard(indexOf(one!.finalKey))).toBe(rest.length);
    }
    const visits = await visitsOf(server, () => release(many[1]!));
    expect(visits).toEqual(await visitsOf(server, () => release(few[1]!)));
  });
});

describe('after the release of a reader the hash lives as long as the longest remaining reader:', () => {
  it.each([
    ['with readers of this library', () => Promise.resolve()],
    ['after the index was deleted', (key: string) => admin.del(indexOf(key))],
  ])('%s', async (_when, meanwhile) => {
    const key = newKey();
    const claims = await readersOf(key, mixed(12));
    const left = new Set(claims);
    for (const [i, claim] of claims.entries()) {
      if (i === 4) await meanwhile(key);
      await release(claim);
      left.delete(claim);
      if (left.size === 0) break;
      const longest = Math.max(...[...left].map(({ leaseMs }) => leaseMs / MINUTE));
      expect(await minutesLeft(key)).toBe(longest);
      expect(await admin.zcard(indexOf(key))).toBe(left.size);
      expect(await admin.pttl(indexOf(key))).toBeGreaterThan((longest - 1) * MINUTE);
    }
    expect(await admin.keys(`*${key}*`)).toEqual([]);
  });

  it('beside a reader of Redisson that entered first, in between, or last', async () => {
    for (const at of [0, 1, 3]) {
      const key = newKey();
      const claims: ReadClaim[] = [];
      for (const [i, minutes] of [20, 5, 10].entries()) {
        if (i === at) await enterJava(key, 'java:1', 7);
        claims.push(...(await readersOf(key, [minutes])));
      }
      if (at === 3) await enterJava(key, 'java:1', 7);
      for (const [i, longest] of [10, 10, 7].entries()) {
        await release(claims[i]!);
        expect(await minutesLeft(key)).toBe(longest);
      }
      expect(await admin.hgetall(key)).toEqual({ mode: 'read', 'java:1': '1' });
    }
  });

  it('after a renewal, a repeated acquire, a downgrade, and a release that leaves the hold for a while', async () => {
    const key = newKey();
    const writer = writeFor(key, { leaseMs: 5 * MINUTE });
    expectGranted(await store.kinds.write.acquire(writer));
    await store.kinds.write.downgrade!(writer);
    const [renewed, repeated, kept, last] = await readersOf(key, [1, 40, 30, 2]);
    await store.kinds.read.extendMany([{ ...renewed!, leaseMs: 20 * MINUTE }]);
    await store.kinds.read.acquire({ ...repeated!, leaseMs: 10 * MINUTE });
    expect(await minutesLeft(key)).toBe(30);
    await store.kinds.read.release(kept!, { keepForMs: 3 * MINUTE });
    expect(await minutesLeft(key)).toBe(20);
    for (const [claim, longest] of [
      [renewed!, 10],
      [repeated!, 5],
      [last!, 5],
    ] as const) {
      await release(claim);
      expect(await minutesLeft(key)).toBe(longest);
    }
    expect((await store.kinds.write.release(writer)).wasHeld).toBe(true);
    expect(await minutesLeft(key)).toBe(3);
  });

  it('also when the index is of another hash, with as many readers as Redisson has in this one', async () => {
    const key = newKey();
    await readersOf(key, [4]);
    await admin.del(key);
    await enterJava(key, 'java:1', 30);
    const [first, second] = await readersOf(key, [10, 20]);
    await release(second!);
    expect(await minutesLeft(key)).toBe(30);
    await release(first!);
    expect(await minutesLeft(key)).toBe(30);
  });

  it('and a writer is alone although an index of another hash is there', async () => {
    const key = newKey();
    await readersOf(key, [4]);
    await admin.del(key);
    const writer = writeFor(key);
    expectGranted(await store.kinds.write.acquire(writer));
    await store.kinds.write.release(writer);
    expect(await admin.exists(key, indexOf(key))).toBe(0);
  });
});

describe('the index of readers', () => {
  it('drops readers that have expired, and so does the hash', async () => {
    const key = newKey();
    const [dead] = [readFor(key, { leaseMs: 1 })];
    const [first, second] = await readersOf(key, [1, 1]);
    expectGranted(await store.kinds.read.acquire(dead));
    await expect.poll(() => admin.exists(`{${key}}:${dead.owner}:rwlock_timeout:1`)).toBe(0);
    await release(first!);
    expect(await admin.hgetall(key)).toEqual({ mode: 'read', [second!.owner]: '1' });
    expect(await admin.zrange(indexOf(key), '0', '-1')).toEqual([second!.owner]);
    expect((await store.kinds.read.release(dead)).wasHeld).toBe(false);
  });

  it('that has expired readers only does not keep a writer out', async () => {
    const key = newKey();
    const [one, two] = [readFor(key, { leaseMs: 1 }), readFor(key, { leaseMs: 1 })];
    for (const claim of [one, two]) expectGranted(await store.kinds.read.acquire(claim));
    await expect.poll(() => admin.exists(key, indexOf(key))).toBe(0);
    expectGranted(await store.kinds.write.acquire(writeFor(key)));
  });

  it('goes when the lock is forced open, and then the key of each reader that its process asks for', async () => {
    const key = newKey();
    const [one, two, three] = await readersOf(key, [1, 1, 1]);
    expect(await store.forceUnlock(key)).toBe(true);
    expect(await admin.exists(key, indexOf(key))).toBe(0);
    expect(await store.kinds.read.extendMany([one!, two!])).toEqual([{ status: 'lost' }, { status: 'lost' }]);
    expect((await store.kinds.read.release(three!)).wasHeld).toBe(false);
    expect(await admin.keys(`*${key}*`)).toEqual([]);
  });

  it('cannot be written in a full memory, and a renewal still counts', async () => {
    const key = newKey();
    const [one, two] = await readersOf(key, [1, 2]);
    await admin.config('SET', 'maxmemory', '1');
    try {
      // Lengthens nothing, so the script writes nothing before the index.
      expect(await store.kinds.read.extendMany([two!])).toMatchObject([{ status: 'held' }]);
      expect(await store.kinds.read.extendMany([{ ...one!, leaseMs: 5 * MINUTE }])).toMatchObject([
        { status: 'held' },
      ]);
      await release(two!);
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
    expect(await minutesLeft(key)).toBe(5);
    await release(one!);
    expect(await admin.keys(`*${key}*`)).toEqual([]);
  });
});

it('the scripts of read-write locks touch only keys that they declare', async () => {
  const key = newKey();
  const entryTerms = { aliveMs: 5_000, provisionalLeaseMs: MINUTE, tokens: 0 };
  const commands = await scriptCommandsOf(server, async () => {
    const [one, two] = await readersOf(key, [1, 2]);
    const writer = writeFor(key, { waits: true, entryTerms });
    expect(await store.kinds.write.acquire(writer)).toMatchObject({ status: 'queued' });
    await store.kinds.read.extendMany([one!, two!]);
    await store.inspect(key);
    await release(two!);
    await release(one!);
    expect(await store.kinds.write.refreshEntries!([writer])).toMatchObject([{ status: 'held' }]);
    expectGranted(await store.kinds.write.acquire({ ...writer, waits: false }));
    await store.kinds.write.downgrade!(writer);
    await readersOf(key, [1]);
    await store.forceUnlock(key);
  });
  const keysOf = ({ name, args }: (typeof commands)[number]): readonly string[] => {
    if (['publish', 'spublish', 'time'].includes(name)) return [];
    return name === 'del' || name === 'exists' ? args : args.slice(0, 1);
  };
  const undeclared = commands.flatMap((one) => keysOf(one).filter((name) => !one.declared.has(name)));
  expect(commands.length).toBeGreaterThan(50);
  expect(undeclared).toEqual([]);
});
