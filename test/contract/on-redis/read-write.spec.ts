import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { expectGranted, expectTaken, newKey } from '../../support/stores/harness.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { readFor, writeFor } from '../kinds/kind-under-contract.js';

/*
 * What only the layout in Redis promises: that of Redisson's RReadWriteLock.
 */
describe('a read-write lock in Redis', () => {
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

  const timeoutOf = (key: string, owner: string, n = 1): string => `{${key}}:${owner}:rwlock_timeout:${n}`;

  /** A reader as Java's clients write it, that has entered so often. */
  const plantReader = async (key: string, owner: string, leases: readonly number[]): Promise<void> => {
    await admin.hset(key, 'mode', 'read', owner, leases.length);
    for (const [i, ms] of leases.entries()) await admin.set(timeoutOf(key, owner, i + 1), 1, 'PX', ms);
    await admin.pexpire(key, Math.max(...leases, await admin.pttl(key)));
  };

  it('is a hash with its mode, a field for each reader or the writer, and a key for each reader’s lease', async () => {
    const key = newKey();
    const [one, two] = [readFor(key, { leaseMs: 20_000 }), readFor(key, { leaseMs: 60_000 })];
    expectGranted(await store.kinds.read.acquire(one));
    expectGranted(await store.kinds.read.acquire(two));
    expect(await admin.hgetall(key)).toEqual({ mode: 'read', [one.owner]: '1', [two.owner]: '1' });
    for (const { owner, leaseMs } of [one, two]) {
      expect(await admin.get(timeoutOf(key, owner))).toBe('1');
      expect(await admin.pttl(timeoutOf(key, owner))).toBeGreaterThan(leaseMs - 10_000);
      expect(await admin.pttl(timeoutOf(key, owner))).toBeLessThanOrEqual(leaseMs);
    }
    expect(await admin.pttl(key)).toBeGreaterThan(50_000);
    await store.kinds.read.release(two);
    expect(await admin.pttl(key), 'as long as what is left').toBeLessThanOrEqual(20_000);
    expect(await admin.exists(timeoutOf(key, two.owner))).toBe(0);
    await store.kinds.read.release(one);
    expect(await admin.keys(`*${key}*`)).toEqual([]);
    const writer = writeFor(key);
    expectGranted(await store.kinds.write.acquire(writer));
    expect(await admin.hgetall(key)).toEqual({ mode: 'write', [`${writer.owner}:write`]: '1' });
    await store.kinds.write.downgrade!(writer);
    expect(await admin.hgetall(key)).toEqual({ mode: 'read', [writer.owner]: '1' });
    await store.kinds.write.release(writer);
    expect(await admin.keys(`*${key}*`)).toEqual([]);
  });

  it('is announced with 0 by the last reader, and with 1 by a writer', async () => {
    const key = newKey();
    await using listener = Object.assign(new Redis(server.url), {
      [Symbol.asyncDispose]: async () => listener.disconnect(),
    });
    const notifications: string[] = [];
    listener.on('message', (_channel: string, message: string) => notifications.push(message));
    await listener.subscribe(`redisson_rwlock:{${key}}`);
    const readers = [readFor(key), readFor(key)];
    for (const claim of readers) expectGranted(await store.kinds.read.acquire(claim));
    for (const claim of readers) await store.kinds.read.release(claim);
    const writer = writeFor(key);
    expectGranted(await store.kinds.write.acquire(writer));
    await store.kinds.write.release(writer);
    await expect.poll(() => notifications).toEqual(['0', '1']);
  });

  it('counts each entry of a Java reader: its longest lease keeps the lock', async () => {
    const key = newKey();
    await plantReader(key, 'java:1', [40_000, 5_000]);
    const claim = readFor(key, { leaseMs: 10_000 });
    expectGranted(await store.kinds.read.acquire(claim));
    const holders = (await store.inspect(key))!.holders;
    expect(holders.find(({ owner }) => owner === 'java:1')).toMatchObject({ count: 2 });
    expect(holders.find(({ owner }) => owner === 'java:1')!.remainingMs).toBeGreaterThan(30_000);
    expect((await store.kinds.read.release(claim)).wasHeld).toBe(true);
    expect(await admin.hgetall(key)).toEqual({ mode: 'read', 'java:1': '2' });
    expect(await admin.pttl(key)).toBeGreaterThan(30_000);
  });

  it('ends with the last live reader, whatever fields dead readers left', async () => {
    const key = newKey();
    await plantReader(key, 'java:dead', [60_000]);
    await admin.del(timeoutOf(key, 'java:dead'));
    await admin.hset(key, 'java:odd', 'many', 'java:huge', '9'.repeat(40));
    const claim = readFor(key);
    expectGranted(await store.kinds.read.acquire(claim));
    expect((await store.inspect(key))!.holders.map(({ owner }) => owner)).toEqual([claim.owner]);
    await store.kinds.read.release(claim);
    expect(await admin.exists(key)).toBe(0);
  });

  it('that lives shorter than a reader of ours, because Java has set its time, is set right by a renewal', async () => {
    const key = newKey();
    const claim = readFor(key, { leaseMs: 60_000 });
    expectGranted(await store.kinds.read.acquire(claim));
    await admin.pexpire(key, 5_000);
    expect(await store.kinds.read.extendMany([{ ...claim, leaseMs: 1_000 }])).toMatchObject([
      { status: 'held' },
    ]);
    expect(await admin.pttl(key)).toBeGreaterThan(50_000);
  });

  it('that Java holds without a lease gets none, and a waiter retries once a second', async () => {
    const key = newKey();
    await admin.hset(key, 'mode', 'read', 'java:1', 1);
    const claim = readFor(key);
    expectGranted(await store.kinds.read.acquire(claim));
    expect(await admin.pttl(key)).toBe(-1);
    const refused = await store.kinds.write.acquire(writeFor(key));
    expectTaken(refused);
    expect(refused.retryInMs).toBe(1_000);
  });

  it('works with a full memory: what is held is renewed and released', async () => {
    const key = newKey();
    const [reader, writer] = [readFor(key), writeFor(`${key}-w`)];
    expectGranted(await store.kinds.read.acquire(reader));
    expectGranted(await store.kinds.write.acquire(writer));
    await admin.config('SET', 'maxmemory', '1');
    try {
      await expect(store.kinds.read.acquire(readFor(key))).rejects.toBeInstanceOf(StoreFailure);
      await expect(store.kinds.write.downgrade!(writer)).rejects.toBeInstanceOf(StoreFailure);
      expect(await store.kinds.read.extendMany([{ ...reader, leaseMs: 60_000 }])).toMatchObject([
        { status: 'held' },
      ]);
      expect(await store.kinds.write.extendMany([{ ...writer, leaseMs: 60_000 }])).toMatchObject([
        { status: 'held' },
      ]);
      expect((await store.kinds.read.release(reader)).wasHeld).toBe(true);
      expect((await store.kinds.write.release(writer)).wasHeld).toBe(true);
    } finally {
      await admin.config('SET', 'maxmemory', '0');
    }
    expect(await admin.keys(`*${key}*`)).toEqual([]);
  });

  it('keeps the place of a waiter that is kept late, with its ticket', async () => {
    const key = newKey();
    const queueKey = `nest_redis_lock:rw_queue:{${key}}`;
    const entryTerms = { aliveMs: 5_000, provisionalLeaseMs: 1_000, tokens: 0 };
    const holder = writeFor(key);
    expectGranted(await store.kinds.write.acquire(holder));
    const [late, other] = [
      readFor(key, { waits: true, entryTerms }),
      readFor(key, { waits: true, entryTerms }),
    ];
    expect(await store.kinds.read.acquire(late)).toMatchObject({ status: 'queued' });
    expect(await store.kinds.read.acquire(other)).toMatchObject({ status: 'queued' });
    // As if its process had stood still while another one kept the line.
    const [version, ticket, , span, kind] = (await admin.hget(queueKey, late.owner))!.split(' ');
    await admin.hset(queueKey, late.owner, `${version} ${ticket} ${Date.now() - 60_000} ${span} ${kind}`);
    expect(await store.kinds.read.refreshEntries!([late])).toMatchObject([{ status: 'queued' }]);
    expect((await admin.hget(queueKey, late.owner))?.split(' ')[1]).toBe(ticket);
    for (const claim of [late, other]) await store.kinds.read.release(claim);
    await store.kinds.write.release(holder);
    expect(await admin.keys(`*${key}*`)).toEqual([]);
  });

  it('tells of a place that cannot be kept why, as a failure of the store', async () => {
    const key = newKey();
    const entryTerms = { aliveMs: 5_000, provisionalLeaseMs: 1_000, tokens: 0 };
    const holder = writeFor(key);
    expectGranted(await store.kinds.write.acquire(holder));
    const reader = readFor(key, { waits: true, entryTerms });
    expect(await store.kinds.read.acquire(reader)).toMatchObject({ status: 'queued' });
    await admin.set(key, 'something else');
    const [reply] = await store.kinds.read.refreshEntries!([reader]);
    expect(reply).toMatchObject({ status: 'failed', cause: { outcome: 'not-executed', keyOnly: true } });
    expect((reply as { readonly cause: unknown }).cause).toBeInstanceOf(StoreFailure);
    await admin.del(key);
    await store.kinds.read.release(reader);
  });

  it('where another type of value is, is refused, and the value stays', async () => {
    const key = newKey();
    await admin.set(key, 'mine');
    for (const request of [
      () => store.kinds.read.acquire(readFor(key)),
      () => store.kinds.write.acquire(writeFor(key)),
    ]) {
      await expect(request()).rejects.toMatchObject({ outcome: 'not-executed', keyOnly: true });
    }
    expect((await store.kinds.read.release(readFor(key))).wasHeld).toBe(false);
    expect(await store.kinds.read.extendMany([readFor(key)])).toEqual([{ status: 'lost' }]);
    expect(await admin.get(key)).toBe('mine');
  });
});
