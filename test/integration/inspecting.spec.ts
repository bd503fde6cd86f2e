import { LockNotAcquiredError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const lab = useLab();

describe('inspect and isLocked', () => {
  it('show holds of every process, and no holder when the lock is free', async () => {
    const [holder, looker] = [lab.open(), lab.open()];
    const key = newKey();
    expect([await looker.locks.inspect(key), await looker.locks.isLocked(key)]).toEqual([null, false]);
    await using lease = await holder.locks.acquire(key, { leaseMs: 20_000 });
    const state = (await looker.locks.inspect(key))!;
    expect(state).toMatchObject({ kind: 'exclusive', holders: [{ count: 1 }], waiting: [] });
    const hold = state.holders[0]!;
    expect(hold.owner).toBe((await lab.hold(key))!.owner);
    expect(hold.remainingMs).toBeGreaterThan(10_000);
    expect(hold.remainingMs).toBeLessThanOrEqual(20_000);
    expect(await looker.locks.isLocked(key)).toBe(true);
    await lease.release();
    expect(await looker.locks.isLocked(key)).toBe(false);
  });

  it('show a hold of a Java service as it is, nested and without an end', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await lab.admin.hset(holdName(key), 'a0b1:42', '3');
    expect(await locks.inspect(key)).toEqual({
      kind: 'exclusive',
      holders: [{ owner: 'a0b1:42', count: 3, remainingMs: Infinity }],
      waiting: [],
    });
    await expect(locks.acquire(key, { waitMs: 0 })).rejects.toBeInstanceOf(LockNotAcquiredError);
    await lab.admin.del(holdName(key));
    await (await locks.acquire(key, { waitMs: 0 })).release();
  });
});

describe('the process that holds a lock', () => {
  const recordsAndChannels = async (): Promise<readonly string[]> => [
    ...(await lab.admin.keys('nest_redis_lock:process:*')),
    ...((await lab.admin.pubsub('CHANNELS', 'nest_redis_lock:grant:asked:*')) as string[]),
  ];

  it('is in the error, in inspect and in list, until its app stops', async () => {
    const holder = lab.open({ appName: 'shop' });
    const looker = lab.open();
    const key = newKey();
    await holder.locks.acquire(key);
    await until(async () => (await recordsAndChannels()).length === 2);
    const seen = { instanceId: holder.locks.instanceId, client: 'node', appName: 'shop', pid: process.pid };
    await expect(looker.locks.acquire(key, { waitMs: 0 })).rejects.toMatchObject({ holder: seen });
    const known = { process: seen, heldMs: expect.any(Number) as number };
    expect(await looker.locks.inspect(key)).toMatchObject({ holders: [known] });
    expect(await looker.locks.list()).toMatchObject({ locks: [{ key, holders: [known] }] });
    await holder.close();
    expect(await recordsAndChannels()).toEqual([]);
  });
});

describe('held', () => {
  it('lists exactly the holds of this process, however many there are', async () => {
    const [opened, other] = [lab.open(), lab.open()];
    const { locks } = opened;
    await using _foreign = await other.locks.acquire('foreign');
    const leases = await Promise.all(Array.from({ length: 500 }, (_, i) => locks.acquire(`held-${i}`)));
    await locks.tryAcquire('foreign');
    expect(locks.held().map(({ key }) => key)).toEqual(leases.map(({ key }) => key));
    expect(locks.held()[0]).toEqual({
      kind: 'exclusive',
      key: 'held-0',
      label: 'acquire',
      fencingToken: leases[0]!.fencingToken,
      heldMs: expect.any(Number) as number,
      remainingMs: expect.any(Number) as number,
    });
    expect(locks.usage).toMatchObject({ leases: 500, holds: 500, keys: 500 });
    for (const lease of leases.splice(250)) await lease.release();
    expect(locks.held()).toHaveLength(250);
    await Promise.all(leases.map((lease) => lease.release()));
    expect(locks.held()).toEqual([]);
  });

  it('does not show a lock that was lost, or whose wait failed', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    await locks.ping();
    const lease = await locks.acquire(newKey(), { leaseMs: 400 });
    expect(locks.held()).toHaveLength(1);
    await until(() => events('lost').length === 1);
    expect(locks.held()).toEqual([]);
    await lease.release();
  });
});

describe('a lease', () => {
  it('knows its key, its id and its token, and its release says whether it was still ours', async () => {
    const { locks } = lab.open();
    const [one, two] = [await locks.acquire(newKey()), await locks.acquire(newKey())];
    expect(one.keys).toEqual([one.key]);
    expect(one.id).not.toBe(two.id);
    expect([one.fencingToken, two.tokenFor(two.key)].every(Number.isSafeInteger)).toBe(true);
    await lab.admin.del(holdName(two.key));
    expect([await one.release(), await two.release()]).toEqual(['released', 'lost']);
    expect([one.remainingMs(), two.remainingMs()]).toEqual([0, 0]);
  });
});

describe('ping', () => {
  it('resolves when Redis answers, and needs no lock for it', async () => {
    const { locks } = lab.open();
    expect(await locks.ping()).toBeUndefined();
    expect(await lab.leftovers()).toEqual([]);
  });
});

describe('usage', () => {
  it('is zero again after ten thousand keys were used once', async () => {
    const { locks, store } = lab.open();
    const names = Array.from({ length: 10_000 }, (_, i) => `once-${i}`);
    for (let i = 0; i < names.length; i += 500) {
      await Promise.all(names.slice(i, i + 500).map((key) => locks.withLock(key, () => undefined)));
    }
    expect(locks.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
    expect(store.subscriptions).toBe(0);
    expect(await lab.leftovers()).toEqual([]);
  });

  it('counts what there is meanwhile', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const lease = await locks.acquire(key);
    const waiting = locks.acquire(key);
    await until(() => locks.usage.leases === 2);
    expect(locks.usage).toEqual({ leases: 2, keys: 1, holds: 1, undoing: 0 });
    await lease.release();
    await (await waiting).release();
  });
});
