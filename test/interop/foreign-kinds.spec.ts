import type { Redis } from 'ioredis';
import { LockNotAcquiredError } from 'nest-redis-lock';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { until } from '../support/async.js';
import { casesBeside, VERSIONS } from './extent.js';
import type { Redisson, RedissonKind } from '../support/redisson/redisson.js';
import { Sides } from './sides.js';

const WATCHDOG_MS = 3_000;
const LEASE_MS = 20_000;
/** A silent end is noticed within it; the median stays under the other one. */
const SOON_MS = 900;
const MEDIAN_MS = 100;
const ENDS = 7;

let names = 0;
const newName = (): string => `order-${(names += 1)}`;
/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();
const median = (values: readonly number[]): number =>
  values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

describe.each(VERSIONS)('an exclusive lock beside other kinds of Redisson %s on its name', (version) => {
  const also = casesBeside(version);
  let sides: Sides;
  let java: Redisson;
  let admin: Redis;
  const opened: OpenLocks[] = [];

  const open = (): OpenLocks => {
    const options = { keyPrefix: '', waitMs: 15_000, watchdogMs: WATCHDOG_MS };
    const one = sides.open(options);
    opened.push(one);
    return one;
  };

  beforeAll(async () => {
    sides = await Sides.start();
    java = await sides.java({ version, watchdogMs: WATCHDOG_MS });
    admin = sides.admin();
  });
  afterAll(async () => {
    for (const one of opened) await one.close();
    admin.disconnect();
    await sides[Symbol.asyncDispose]();
  });

  /** In a line, or, where there is none, listening. */
  const untilWaiting = (name: string): Promise<unknown> =>
    until(async () =>
      sides.hasQueue
        ? (await sides.exists(`nest_redis_lock:queue:{${name}}`)) === 1
        : (await sides.listeners(`redisson_lock__channel:{${name}}`)) > 0,
    );

  const kinds: [RedissonKind, string | undefined][] = [
    ['spin', undefined],
    ['fair', undefined],
    ['read', 'read'],
    ['write', 'write'],
  ];
  it.each(kinds)('a %s lock keeps us out, and its end is noticed soon', async (kind, heldAs) => {
    const { locks } = open();
    const took: number[] = [];
    for (let i = 0; i < ENDS; i += 1) {
      const name = newName();
      await java.send('lock', { name, kind, leaseMs: LEASE_MS });
      const refused: unknown = await locks.acquire(name, { waitMs: 0 }).catch((error: unknown) => error);
      expect(refused).toBeInstanceOf(LockNotAcquiredError);
      expect((refused as LockNotAcquiredError).heldAs).toBe(heldAs);
      expect(await locks.inspect(name)).toMatchObject({
        kind: heldAs ?? 'exclusive',
        holders: [{ count: 1 }],
      });
      const waiting = locks.acquire(name);
      await untilWaiting(name);
      const unlockedAt = await java.send('unlock', { name, kind });
      const lease = await waiting;
      took.push(now() - unlockedAt);
      expect(await lease.release()).toBe('released');
    }
    console.log(
      `Redisson ${version}, the end of a ${kind} lock: median ${median(took).toFixed(0)} ms, at most ${Math.max(...took).toFixed(0)}`,
    );
    for (const ms of took) expect(ms).toBeLessThan(SOON_MS);
    expect(median(took)).toBeLessThan(MEDIAN_MS);
  });

  also('a fair lock with a queue is named, and whoever is first when it ends has the lock', async () => {
    const { locks } = open();
    const name = newName();
    await java.send('lock', { name, kind: 'fair', thread: 'holder' });
    const queued = java.send('lock', { name, kind: 'fair', thread: 'waiter' });
    await until(async () => (await admin.llen(`redisson_lock_queue:{${name}}`)) === 1);
    const refused: unknown = await locks.acquire(name, { waitMs: 0 }).catch((error: unknown) => error);
    expect(refused).toMatchObject({ code: 'LOCK_TAKEN', heldAs: 'fair' });
    expect(await locks.inspect(name)).toMatchObject({ kind: 'fair' });
    await java.send('unlock', { name, kind: 'fair', thread: 'holder' });
    await queued;
    const waiting = locks.acquire(name);
    await untilWaiting(name);
    const unlockedAt = await java.send('unlock', { name, kind: 'fair', thread: 'waiter' });
    await (await waiting).release();
    expect(now() - unlockedAt).toBeLessThan(SOON_MS);
  });

  also('all who read are shown', async () => {
    const { locks } = open();
    const name = newName();
    for (const thread of ['a', 'b', 'c']) {
      await java.send('lock', { name, kind: 'read', thread, leaseMs: LEASE_MS });
    }
    const state = await locks.inspect(name);
    expect(state?.kind).toBe('read');
    expect(state?.holders).toHaveLength(3);
    for (const thread of ['a', 'b', 'c']) await java.send('unlock', { name, kind: 'read', thread });
    expect(await locks.inspect(name)).toBeNull();
  });

  const entering: RedissonKind[] = ['read', 'write'];
  also.each(entering)(
    'a %s lock that enters our hold is noticed by the renewal and by the release, and keeps what it has',
    async (kind) => {
      const { locks, events } = open();
      const [renewed, released] = [newName(), newName()];
      const byRenewal = await locks.acquire(renewed);
      const byRelease = await locks.acquire(released);
      for (const name of [renewed, released]) {
        expect(await java.send('tryLock', { name, kind, leaseMs: LEASE_MS })).toBe(true);
      }
      expect(await byRelease.release()).toBe('lost');
      await until(() => byRenewal.lost);
      expect(await byRenewal.release()).toBe('lost');
      expect(events('lost')).toMatchObject([{ reason: 'entered' }, { reason: 'entered' }]);
      for (const name of [renewed, released]) {
        expect(await java.send('isLocked', { name, kind })).toBe(true);
        expect(await locks.tryAcquire(name)).toBeNull();
        const waiting = locks.acquire(name);
        await untilWaiting(name);
        // It is there, and its end leaves nothing: our part was taken off.
        const unlockedAt = await java.send('unlock', { name, kind });
        await (await waiting).release();
        expect(now() - unlockedAt).toBeLessThan(SOON_MS);
        expect(await sides.exists(name)).toBe(0);
      }
    },
  );

  also('a hold that Java enters again for less time is over for us when that ends', async () => {
    const { locks } = open();
    const name = newName();
    await java.send('lock', { name, leaseMs: LEASE_MS });
    const waiting = locks.acquire(name);
    await untilWaiting(name);
    const shortenedAt = await java.send('lock', { name, leaseMs: 300 });
    await (await waiting).release();
    expect(now() - shortenedAt).toBeLessThan(300 + SOON_MS);
  });

  it('leave nothing in the log of Redisson that comes from us', () => {
    expect(java.log).not.toMatch(/ (WARN|ERROR) /);
  });
});
