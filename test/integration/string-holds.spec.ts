import { LockNotAcquiredError, type LockMode } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import {
  userWith,
  DOCUMENTED_RULES,
  FAIR_RULES,
  READ_WRITE_RULES,
  refusedBy,
} from '../support/redis/documented-user.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import { storeFailure } from '../support/redis/store-failures.js';

/*
 * Strings at the key of a lock, as other libraries keep their locks, with `foreignHold: 'taken'`. The same with the real
 * libraries is in test/package/migration.spec.ts.
 */
const lab = useLab();

const STRINGS = { foreignHold: 'taken', holderInfo: false } as const;
const VALUE = '5f0a2c9e8d7b6a54';
const LEASE_MS = 20_000;
/** Longest pause between two looks, on a busy machine. */
const SOON_MS = 1_500;

const MODES: readonly LockMode[] = ['exclusive', 'fair', 'read', 'write'];

const put = (key: string, leaseMs = LEASE_MS): Promise<unknown> =>
  lab.admin.set(holdName(key), VALUE, 'PX', leaseMs);

const refusalOf = async (request: Promise<unknown>): Promise<LockNotAcquiredError> => {
  const error: unknown = await request.catch((failure: unknown) => failure);
  expect(error).toBeInstanceOf(LockNotAcquiredError);
  return error as LockNotAcquiredError;
};

/** Resolves once a waiter has found the string. */
const found = async (key: string): Promise<void> => {
  await until(
    async () => (await lab.admin.keys(`*${holdName(key)}*`)).length > 1 || (await lab.listeners(key)) > 0,
  );
};

describe.each(MODES)('a string at the key of a lock with mode %s', (mode) => {
  it('is taken: for tryAcquire, and for a waiter until its time is over', async () => {
    const { locks, events } = lab.open(STRINGS);
    const key = newKey();
    await put(key);
    expect(await locks.tryAcquire(key, { mode })).toBeNull();
    const atOnce = await refusalOf(locks.acquire(key, { mode, waitMs: 0 }));
    expect(atOnce).toMatchObject({ code: 'LOCK_TAKEN', heldAs: 'foreign' });
    expect(atOnce.message).toContain('by a lock of another library, a string');
    expect(atOnce.message).not.toContain('no expiry');
    const waited = [locks.acquire(key, { mode, waitMs: 80 }), locks.acquire(key, { mode, waitMs: 80 })];
    for (const error of await Promise.all(waited.map(refusalOf))) expect(error.heldAs).toBe('foreign');
    expect(events('busy').map(({ heldAs }) => heldAs)).toEqual(Array(4).fill('foreign'));
    expect(await lab.admin.get(holdName(key))).toBe(VALUE);
    await lab.admin.del(holdName(key));
    await lab.nothingLeft();
  });

  it('is waited for to its end, and never past it', async () => {
    const { locks } = lab.open(STRINGS);
    const key = newKey();
    await put(key, 700);
    const startedAt = performance.now();
    const lease = await locks.acquire(key, { mode });
    expect(performance.now() - startedAt).toBeLessThan(700 + 300);
    expect(performance.now() - startedAt).toBeGreaterThan(600);
    expect(await lease.release()).toBe('released');
  });

  it('is noticed soon when it is deleted, although no message says so', async () => {
    const { locks } = lab.open(STRINGS);
    const key = newKey();
    await put(key);
    const waiting = locks.acquire(key, { mode });
    await found(key);
    const endedAt = performance.now();
    await lab.admin.del(holdName(key));
    await (await waiting).release();
    expect(performance.now() - endedAt).toBeLessThan(SOON_MS);
  });

  it('without an expiry is taken, and the error says so', async () => {
    const { locks } = lab.open(STRINGS);
    const key = newKey();
    await lab.admin.set(holdName(key), VALUE);
    for (const waitMs of [0, 60]) {
      const error = await refusalOf(locks.acquire(key, { mode, waitMs }));
      expect(error.heldAs).toBe('foreign');
      expect(error.message).toMatch(/The string has no expiry, .* delete the string by hand/);
    }
    const waiting = locks.acquire(key, { mode });
    await found(key);
    await lab.admin.del(holdName(key));
    await (await waiting).release();
  });

  it('that comes into a hold of ours ends it, and stays', async () => {
    const { locks, events } = lab.open({ ...STRINGS, ...SHORT_WATCHDOG });
    const key = newKey();
    const lease = await locks.acquire(key, { mode });
    await put(key);
    await until(() => lease.lost);
    expect(events('lost')).toMatchObject([{ reason: 'refused' }]);
    expect(await lease.release()).toBe('lost');
    expect(await lab.admin.get(holdName(key))).toBe(VALUE);
  });

  it('that comes while callers are queued is waited for, too', async () => {
    const [one, two] = [lab.open(STRINGS), lab.open(STRINGS)];
    const key = newKey();
    const lease = await one.locks.acquire(key, { mode: mode === 'read' ? 'write' : mode });
    const waiting = two.locks.acquire(key, { mode });
    await found(key);
    await put(key);
    expect(await lease.release()).toBe('lost');
    await until(async () => (await two.locks.inspect(key))?.heldAs === 'foreign');
    await lab.admin.del(holdName(key));
    expect(await (await waiting).release()).toBe('released');
    await lab.nothingLeft(one, two);
  });

  it('is asked about by one caller only, at most 20 times in a second', async () => {
    const services = Array.from({ length: 3 }, () => lab.open(STRINGS));
    const key = newKey();
    await put(key);
    const waiting = services.flatMap(({ locks }) => [1, 2].map(() => locks.acquire(key, { mode })));
    await found(key);
    const looks = async (): Promise<number> => (await lab.calls())['type'] ?? 0;
    const [before, startedAt] = [await looks(), performance.now()];
    const clock = await services[0]!.locks.acquire(newKey(), { leaseMs: 1_500 });
    await until(() => clock.lost);
    const seconds = (performance.now() - startedAt) / 1_000;
    // One caller looks after 50 to 500 ms. Each entry is refreshed once a second: a fair lock has one for each caller.
    const refreshes = mode === 'fair' ? 6 : 3;
    const asked = ((await looks()) - before) / seconds;
    expect(asked).toBeGreaterThan(2);
    expect(asked).toBeLessThan(20 + refreshes);
    await lab.admin.del(holdName(key));
    for (const lease of waiting) void lease.then((one) => one.release());
    await Promise.all(waiting);
  });
});

describe('waiters behind a string', () => {
  it.each(['exclusive', 'fair', 'write'] as const)('go on in their order, with mode %s', async (mode) => {
    const services = Array.from({ length: 4 }, () => lab.open(STRINGS));
    const key = newKey();
    await put(key);
    const order: number[] = [];
    const waiting: Promise<unknown>[] = [];
    for (const [i, { locks }] of services.entries()) {
      waiting.push(locks.withLock(key, { mode }, () => void order.push(i)));
      await until(async () => (await locks.inspect(key))?.waiting.length === i + 1);
    }
    // Also a process that uses no locks of this kind sees the waiters.
    for (const { locks } of [services[0]!, lab.open(STRINGS)]) {
      const state = await locks.inspect(key);
      expect(state).toMatchObject({ kind: 'exclusive', heldAs: 'foreign', holders: [{ owner: '' }] });
      expect(state!.waiting).toHaveLength(4);
    }
    await lab.admin.del(holdName(key));
    await Promise.all(waiting);
    expect(order).toEqual([0, 1, 2, 3]);
    await lab.nothingLeft(...services);
  });

  it('go on when the first of them has crashed', async () => {
    // Its timers never fire: it refreshes no entry, and looks at nothing.
    const stopped = lab.openTimeless(undefined, STRINGS);
    const { locks } = lab.open(STRINGS);
    const key = newKey();
    await put(key, 60_000);
    const never = stopped.locks.acquire(key, { waitMs: Infinity }).catch(() => undefined);
    await until(async () => (await locks.inspect(key))?.waiting.length === 1);
    const waiting = locks.acquire(key, { waitMs: 25_000 });
    await until(async () => (await locks.inspect(key))?.waiting.length === 2);
    await lab.admin.del(holdName(key));
    await (await waiting).release();
    await stopped.close();
    await never;
  });

  it('without a wait queue are let in, too', async () => {
    const { locks } = lab.open(STRINGS);
    const key = newKey();
    await lab.withoutQueue(key);
    await put(key);
    expect(await locks.tryAcquire(key)).toBeNull();
    const waiting = locks.acquire(key);
    await lab.waiting(key);
    await lab.admin.del(holdName(key));
    await (await waiting).release();
  });
});

describe('a string at the key of a lock', () => {
  it('is never touched by forceUnlock, and is shown by inspect and list', async () => {
    const { locks } = lab.open(STRINGS);
    const key = newKey();
    await put(key);
    expect(await locks.forceUnlock(key)).toBe(false);
    expect(await lab.admin.get(holdName(key))).toBe(VALUE);
    const holder = { owner: '', count: 1 };
    const state = (await locks.inspect(key))!;
    expect(state).toMatchObject({ kind: 'exclusive', heldAs: 'foreign', holders: [holder], waiting: [] });
    expect(state.holders[0]!.remainingMs).toBeGreaterThan(LEASE_MS / 2);
    expect(JSON.stringify(state)).not.toContain(VALUE);
    const { locks: listed } = await locks.list({ prefix: key });
    expect(listed).toMatchObject([{ key, heldAs: 'foreign', holders: [holder] }]);
  });

  it('is an error without the option, with the option error, and for permits', async () => {
    const key = newKey();
    await put(key);
    for (const options of [{}, { foreignHold: 'error' }] as const) {
      const { locks } = lab.open(options);
      await storeFailure(locks.acquire(key), /WRONGTYPE/);
      await storeFailure(locks.forceUnlock(key), /WRONGTYPE/);
    }
    const { locks } = lab.open(STRINGS);
    await storeFailure(locks.permits(key, { permits: 1 }).acquire(), /WRONGTYPE/);
  });

  it.each<[string, (name: string) => Promise<unknown>]>([
    ['a list', (name) => lab.admin.rpush(name, 'a')],
    ['a set', (name) => lab.admin.sadd(name, 'a')],
    ['a sorted set', (name) => lab.admin.zadd(name, 1, 'a')],
    ['a stream', (name) => lab.admin.xadd(name, '*', 'a', 'b')],
  ])('is the only type that counts: %s stays an error', async (_what, fill) => {
    const { locks } = lab.open(STRINGS);
    const key = newKey();
    await fill(holdName(key));
    for (const mode of MODES) await storeFailure(locks.acquire(key, { mode }), /WRONGTYPE/);
    await storeFailure(locks.forceUnlock(key), /WRONGTYPE/);
    expect(await lab.admin.exists(holdName(key))).toBe(1);
  });

  it('needs the right to TYPE, and a lock without a string does not', async () => {
    const rules = [...DOCUMENTED_RULES, ...FAIR_RULES, ...READ_WRITE_RULES];
    const user = await userWith(lab, rules);
    const [{ locks }, other] = [lab.open(STRINGS, user), lab.open(STRINGS, user)];
    const key = newKey();
    await (await locks.acquire(key)).release();
    const requests = async (): Promise<number> => (await lab.calls())['evalsha'] ?? 0;
    for (const mode of MODES) {
      const lease = await locks.acquire(key, { mode: mode === 'read' ? 'write' : mode });
      expect(await locks.tryAcquire(key, { mode })).toBeNull();
      const waiting = other.locks.acquire(key, { mode });
      await found(key);
      // The next request refreshes the queue entry.
      const before = await requests();
      await until(async () => (await requests()) > before);
      expect(await locks.inspect(key)).not.toHaveProperty('heldAs');
      await lease.release();
      await (await waiting).release();
    }
    expect((await lab.calls())['type']).toBeUndefined();
    expect(await refusedBy(lab.server)).toEqual([]);
    await put(key);
    await storeFailure(locks.acquire(key, { waitMs: 0 }), /can't run this command|permission|NOPERM/i);
    await lab.admin.call('ACL', 'SETUSER', 'locks', '+type');
    for (const mode of MODES) expect(await locks.tryAcquire(key, { mode })).toBeNull();
    expect(await locks.inspect(key)).toMatchObject({ heldAs: 'foreign' });
  });
});
