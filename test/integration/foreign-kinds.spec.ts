import { randomUUID } from 'node:crypto';
import { LockNotAcquiredError, LockStoreError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { DOCUMENTED_RULES, userWith } from '../support/redis/documented-user.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import { storeFailure } from '../support/redis/store-failures.js';

/*
 * Locks of Java on names of ours, as Redisson writes them. The same beside real Redisson is in
 * test/interop/foreign-kinds.spec.ts.
 */
const lab = useLab();

const LEASE_MS = 20_000;
/** A silent end is noticed within it, on a busy machine. */
const SOON_MS = 900;

/** One who holds locks in Java: its process, and a thread of it. */
const newThread = (): string => `${randomUUID()}:42`;

const plain = async (key: string, owner = newThread(), leaseMs = LEASE_MS): Promise<string> => {
  await lab.admin.multi().hset(holdName(key), owner, 1).pexpire(holdName(key), leaseMs).exec();
  return owner;
};

/** Enters a hold that has no mode, as the scripts of Redisson's read-write lock do, or begins one. */
const enterRead = async (key: string, owner = newThread()): Promise<string> => {
  const timeout = `{${holdName(key)}}:${owner}:rwlock_timeout:1`;
  await lab.admin
    .multi()
    .hset(holdName(key), 'mode', 'read', owner, 1)
    .set(timeout, 1, 'PX', LEASE_MS)
    .pexpire(holdName(key), LEASE_MS)
    .exec();
  return owner;
};
const enterWrite = async (key: string, owner = newThread()): Promise<string> => {
  const field = `${owner}:write`;
  await lab.admin
    .multi()
    .hset(holdName(key), 'mode', 'write', field, 1)
    .pexpire(holdName(key), LEASE_MS)
    .exec();
  return field;
};
const fair = async (key: string): Promise<string> => {
  await lab.admin.rpush(`redisson_lock_queue:{${holdName(key)}}`, newThread());
  return plain(key);
};

const KINDS = {
  read: enterRead,
  write: enterWrite,
  fair,
} as const;

const refusalOf = async (request: Promise<unknown>): Promise<LockNotAcquiredError> => {
  const error: unknown = await request.catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(LockNotAcquiredError);
  return error as LockNotAcquiredError;
};

/** Prepares a key, so that locks have a wait queue there or do without one. */
const WAYS = [
  ['with a wait queue', () => Promise.resolve()],
  ['without', (key: string) => lab.withoutQueue(key)],
] as const;

describe.each(Object.entries(KINDS))('a %s lock of another client', (kind, take) => {
  it('keeps everybody out, and the error and the event name it', async () => {
    const { locks, events } = lab.open();
    const key = newKey();
    await take(key);
    const before = await lab.admin.hgetall(holdName(key));
    const atOnce = await refusalOf(locks.acquire(key, { waitMs: 0 }));
    expect(atOnce).toMatchObject({ code: 'LOCK_TAKEN', heldAs: kind });
    expect(atOnce.message).toContain(`taken by a ${kind} lock, which is another kind`);
    const both = [locks.acquire(key, { waitMs: 50 }), locks.acquire(key, { waitMs: 50 })];
    for (const error of await Promise.all(both.map(refusalOf)))
      expect(error).toMatchObject({ code: 'LOCK_TAKEN', heldAs: kind });
    expect(events('busy')).toMatchObject([{ heldAs: kind }, { heldAs: kind }, { heldAs: kind }]);
    expect(await lab.admin.hgetall(holdName(key))).toEqual(before);
  });

  it('is noticed soon when it ends, although no message says so', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await take(key);
    const waiting = locks.acquire(key);
    await until(async () => (await lab.admin.exists(`nest_redis_lock:queue:{${holdName(key)}}`)) === 1);
    const endedAt = performance.now();
    await lab.admin.del(holdName(key));
    const lease = await waiting;
    expect(performance.now() - endedAt).toBeLessThan(SOON_MS);
    expect(await lease.release()).toBe('released');
  });

  it('is shown by inspect with its kind and its holders', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const owner = await take(key);
    // The writer's field has more than the name of its owner.
    const holder = { owner: owner.replace(/:write$/, ''), count: 1 };
    expect(await locks.inspect(key)).toMatchObject({ kind, holders: [holder], waiting: [] });
  });
});

describe('a lock of another client', () => {
  it.each(WAYS)(
    'that announces nothing, such as a spin lock, is noticed soon when it ends, %s',
    async (_, prepare) => {
      const { locks } = lab.open();
      const key = newKey();
      await prepare(key);
      await plain(key);
      const waiting = locks.acquire(key);
      await lab.waiting(key);
      const endedAt = performance.now();
      await lab.admin.del(holdName(key));
      await (await waiting).release();
      expect(performance.now() - endedAt).toBeLessThan(SOON_MS);
    },
  );

  it.each(WAYS)(
    'whose lease was made shorter is over for a waiter when that one ends, %s',
    async (_, prepare) => {
      const { locks } = lab.open();
      const key = newKey();
      await prepare(key);
      await plain(key);
      const waiting = locks.acquire(key);
      await lab.waiting(key);
      await lab.admin.pexpire(holdName(key), 200);
      const shortenedAt = performance.now();
      await (await waiting).release();
      expect(performance.now() - shortenedAt).toBeLessThan(200 + SOON_MS);
    },
  );

  it('is asked for by the first in line only, some times in a second', async () => {
    const services = Array.from({ length: 3 }, () => lab.open());
    const key = newKey();
    await plain(key);
    const waiting = services.map(({ locks }) => refusalOf(locks.acquire(key, { waitMs: 1_500 })));
    await Promise.all(services.map(({ locks }) => locks.ping()));
    const before = (await lab.calls())['evalsha'] ?? 0;
    await Promise.all(waiting);
    // The first looks 8 times a second; and each keeps its place, once a second.
    expect(((await lab.calls())['evalsha'] ?? 0) - before).toBeLessThan(40);
  });

  it.each([
    ['no right to its queue', DOCUMENTED_RULES, undefined],
    ['the right to its queue', [...DOCUMENTED_RULES, '~redisson_lock_queue:*'], 'fair'],
  ])('that is fair is named to a user with %s, without a denied command', async (_what, rules, heldAs) => {
    // A look for the holder is an `inspect`, which needs more rights for such a lock.
    const { locks } = lab.open({ holderInfo: false }, await userWith(lab, rules));
    const key = newKey();
    await fair(key);
    // A connection tries out its rights when it opens.
    await locks.ping();
    await lab.admin.call('ACL', 'LOG', 'RESET');
    expect((await refusalOf(locks.acquire(key, { waitMs: 0 }))).heldAs).toBe(heldAs);
    expect((await refusalOf(locks.acquire(key, { waitMs: 300 }))).heldAs).toBe(heldAs);
    if (heldAs === undefined) expect(await locks.inspect(key)).toMatchObject({ kind: 'exclusive' });
    expect(await lab.admin.call('ACL', 'LOG')).toEqual([]);
  });

  it('with many readers is shown with all of them', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const owners: string[] = [];
    for (let i = 0; i < 20; i += 1) owners.push(await enterRead(key));
    const state = (await locks.inspect(key))!;
    expect(state.kind).toBe('read');
    expect(state.holders.map(({ owner }) => owner).toSorted()).toEqual(owners.toSorted());
    expect(state.holders.every(({ remainingMs }) => remainingMs > LEASE_MS / 2)).toBe(true);
  });

  it('of which only the mode is left still keeps out, and is no holder of a name', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await lab.admin.hset(holdName(key), 'mode', 'read');
    expect(await refusalOf(locks.acquire(key, { waitMs: 0 }))).toMatchObject({ heldAs: 'read' });
    expect(await locks.inspect(key)).toMatchObject({ kind: 'read', holders: [{ owner: '' }] });
  });
});

describe('a fair lock of this library', () => {
  it('is named, and is not looked at: its end is announced', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await one.locks.acquire(key, { mode: 'fair' });
    expect(await refusalOf(two.locks.acquire(key, { waitMs: 0 }))).toMatchObject({ heldAs: 'fair' });
    const waiting = two.locks.acquire(key);
    await lab.subscribed(key);
    await two.locks.ping();
    const before = (await lab.calls())['evalsha'] ?? 0;
    const clock = await one.locks.acquire(newKey(), { leaseMs: 600 });
    await until(() => clock.lost);
    // That of the clock, and it may be that of the place, which is asked about once when it is first heard.
    expect(((await lab.calls())['evalsha'] ?? 0) - before).toBeLessThanOrEqual(2);
    const endedAt = performance.now();
    expect(await lease.release()).toBe('released');
    await (await waiting).release();
    expect(performance.now() - endedAt).toBeLessThan(SOON_MS);
  });
});

describe.each([
  ['a read lock', enterRead],
  ['a write lock', enterWrite],
])('%s of another client that enters a hold of ours', (_what, enter) => {
  const fieldsOf = (key: string): Promise<string[]> => lab.admin.hkeys(holdName(key));

  it.each(WAYS)('is noticed by the next renewal: the lease is lost, and says why, %s', async (_, prepare) => {
    const { locks, events, log } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    await prepare(key);
    const lease = await locks.acquire(key);
    const theirs = await enter(key);
    await until(() => lease.lost);
    expect(events('lost')).toMatchObject([{ reason: 'entered' }]);
    expect(log.join('\n')).toContain('a read-write lock of Redisson');
    expect(await lease.release()).toBe('lost');
    await until(() => locks.usage.undoing === 0);
    const left = await fieldsOf(key);
    expect([...left].sort()).toEqual(['mode', theirs].sort());
    expect(await lab.admin.pttl(holdName(key))).toBeGreaterThan(LEASE_MS / 2);
  });

  it.each(WAYS)('is noticed by the release, which takes nothing away from it, %s', async (_, prepare) => {
    const { locks, events } = lab.open();
    for (const options of [{}, { holdAtLeastMs: 5_000 }, { leaseMs: 10_000 }]) {
      const key = newKey();
      await prepare(key);
      const lease = await locks.acquire(key, options);
      const theirs = await enter(key);
      expect(await lease.release()).toBe('lost');
      expect(events('lost').at(-1)).toMatchObject({ key, reason: 'entered' });
      expect(await fieldsOf(key)).toEqual(expect.arrayContaining(['mode', theirs]));
      expect(await lab.admin.pttl(holdName(key))).toBeGreaterThan(LEASE_MS / 2);
      expect(await locks.inspect(key)).toMatchObject({ kind: expect.stringMatching(/read|write/) as string });
      expect(await refusalOf(locks.acquire(key, { waitMs: 0 }))).toHaveProperty('heldAs');
    }
  });

  it('is noticed by a fair lock, too: by the renewal and by the release, which take nothing away from it', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    const [renewed, released] = [newKey(), newKey()];
    const byRenewal = await locks.acquire(renewed, { mode: 'fair' });
    const byRelease = await locks.acquire(released, { mode: 'fair', leaseMs: 10_000 });
    const theirs = [await enter(renewed), await enter(released)];
    expect(await byRelease.release()).toBe('lost');
    await until(() => byRenewal.lost);
    expect(await byRenewal.release()).toBe('lost');
    await until(() => locks.usage.undoing === 0);
    expect(events('lost')).toMatchObject([{ reason: 'entered' }, { reason: 'entered' }]);
    for (const [i, key] of [renewed, released].entries()) {
      expect((await fieldsOf(key)).sort()).toEqual(['mode', theirs[i]!].sort());
      expect(await lab.admin.pttl(holdName(key))).toBeGreaterThan(LEASE_MS / 2);
    }
  });

  it('is noticed by verify, and by extend', async () => {
    const { locks } = lab.open();
    const [one, two] = [await locks.acquire(newKey()), await locks.acquire(newKey())];
    for (const { key } of [one, two]) await enter(key);
    expect(await one.verify()).toBe(false);
    await expect(two.extend(60_000)).rejects.toMatchObject({ code: 'LOCK_LOST' });
    for (const { key } of [one, two]) {
      expect(await lab.admin.pttl(holdName(key))).toBeLessThanOrEqual(LEASE_MS);
    }
  });

  it('is noticed where a process waits in line: that one goes on waiting, until the other client ends', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await one.locks.acquire(key);
    const waiting = two.locks.acquire(key);
    await lab.subscribed(key);
    const theirs = await enter(key);
    expect(await lease.release()).toBe('lost');
    expect(await fieldsOf(key)).toEqual(expect.arrayContaining(['mode', theirs]));
    expect(two.locks.held()).toEqual([]);
    await lab.admin.del(holdName(key));
    expect(await (await waiting).release()).toBe('released');
  });
});

describe('a write lock of another client that has come and gone in a hold of ours', () => {
  it('is still noticed, and its mode excludes no caller', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const lease = await locks.acquire(key);
    // What Redisson's unlock leaves where other fields are left.
    await lab.admin.hset(holdName(key), 'mode', 'read');
    expect(await lease.release()).toBe('lost');
    expect(await lab.admin.exists(holdName(key))).toBe(0);
    await (await locks.acquire(key, { waitMs: 0 })).release();
  });
});

describe('a value that is no lock', () => {
  it.each<[string, (name: string) => Promise<unknown>]>([
    ['a string', (name) => lab.admin.set(name, 'a string')],
    ['a semaphore, or a latch', (name) => lab.admin.set(name, 3)],
    ['a list', (name) => lab.admin.rpush(name, 'a')],
    ['a set', (name) => lab.admin.sadd(name, 'a')],
    ['a sorted set', (name) => lab.admin.zadd(name, 1, 'a')],
  ])('%s is an error at once, also for one that waits, and stays', async (_what, put) => {
    const { locks } = lab.open();
    const key = newKey();
    await put(holdName(key));
    const before = await lab.admin.dumpBuffer(holdName(key));
    for (const options of [{ waitMs: 0 }, { waitMs: Infinity }]) {
      const failure: unknown = await locks.acquire(key, options).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(LockStoreError);
      expect(failure).toMatchObject({ outcome: 'not-executed' });
    }
    await storeFailure(locks.acquire(key), /WRONGTYPE/);
    expect(await lab.admin.dumpBuffer(holdName(key))).toEqual(before);
  });
});
