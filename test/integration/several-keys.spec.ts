import { LockConfigurationError, LockKeyError, LockNotAcquiredError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const lab = useLab();

const newKeys = (count: number) => Array.from({ length: count }, () => newKey());

describe('several keys', () => {
  it('are all acquired, each with its own token, and all released', async () => {
    const { locks } = lab.open();
    const [a, b, c] = newKeys(3) as [string, string, string];
    const lease = await locks.acquire([c, a, b, a]);
    expect(lease.keys).toEqual([a, b, c]);
    for (const key of lease.keys) {
      expect(await lab.hold(key)).not.toBeNull();
      expect(Number.isSafeInteger(lease.tokenFor(key))).toBe(true);
    }
    expect(() => lease.fencingToken).toThrow(LockConfigurationError);
    expect(() => lease.tokenFor('another')).toThrow(LockKeyError);
    expect(await lease.release()).toBe('released');
    await lab.nothingLeft();
  });

  it('or none: where one is taken the others are given back', async () => {
    const [holder, opened] = [lab.open(), lab.open()];
    const [a, b, c] = newKeys(3) as [string, string, string];
    await using _taken = await holder.locks.acquire(b);
    expect(await opened.locks.tryAcquire([a, b, c])).toBeNull();
    const error: unknown = await opened.locks
      .acquire([a, b, c], { waitMs: 100 })
      .catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(error).toMatchObject({ key: b });
    await until(async () => !(await lab.hold(a)) && !(await lab.hold(c)));
    expect(opened.locks.usage).toMatchObject({ leases: 0, holds: 0 });
  });

  it('are acquired all or none, also if one key fails or the caller is aborted', async () => {
    const [holder, opened] = [lab.open(), lab.open()];
    const [a, b] = newKeys(2) as [string, string];
    await lab.admin.set(holdName(b), 'not ours');
    await expect(opened.locks.acquire([a, b])).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED', key: b });
    await until(async () => !(await lab.hold(a)));
    await lab.admin.del(holdName(b));

    await using _taken = await holder.locks.acquire(b);
    const caller = new AbortController();
    const waiting = opened.locks.acquire([a, b], { waitMs: 20_000, signal: caller.signal });
    await lab.waiting(b);
    expect(await lab.hold(a)).not.toBeNull();
    caller.abort();
    await expect(waiting).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
    await until(async () => !(await lab.hold(a)));
    expect(opened.locks.usage).toMatchObject({ leases: 0, holds: 0 });
  });

  it('with a lease shorter than the wait: the first lives until all are there, then all get the lease from the same moment', async () => {
    const [holder, other] = [lab.open(), lab.open({ watchdogMs: 3_000 })];
    const [a, b] = [newKey('a'), newKey('b')];
    const blocking = await holder.locks.acquire(b);
    const waiting = other.locks.acquire([a, b], { leaseMs: 400, waitMs: 20_000 });
    await lab.waiting(b);
    // The watchdog renews once a second: this is several of the leases that were asked for.
    await lab.renewals(3);
    expect(await lab.hold(a), 'the first is kept').not.toBeNull();
    await blocking.release();
    const lease = await within(5_000, waiting, 'both');
    expect(lease.lost).toBe(false);
    const left = [(await lab.hold(a))?.leftMs ?? 0, (await lab.hold(b))?.leftMs ?? 0];
    for (const ms of left) expect(ms).toBeLessThanOrEqual(400);
    expect(lease.remainingMs()).toBeLessThanOrEqual(400);
    await until(() => lease.lost, { what: 'a fixed lease ends' });
    expect(await lease.release()).toBe('lost');
    await lab.nothingLeft(holder, other);
  });

  it('the loss of one is the loss of the lease', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    const [a, b] = newKeys(2) as [string, string];
    const lease = await locks.acquire([a, b]);
    await lab.admin.del(holdName(b));
    await until(() => lease.signal.aborted);
    expect([lease.remainingMs(), events('lost').map(({ key }) => key)]).toEqual([0, [b]]);
    expect(await lease.release()).toBe('lost');
    expect(await lab.hold(a)).toBeNull();
  });

  it('an empty list is refused', async () => {
    await expect(lab.open().locks.acquire([])).rejects.toBeInstanceOf(LockKeyError);
  });
});

describe('several keys, each with a mode of its own', () => {
  it('are taken so, and the others as the call says; one in both modes is taken to write', async () => {
    const { locks } = lab.open();
    const [a, b, c, d] = newKeys(4) as [string, string, string, string];
    const lease = await locks.acquire([{ key: d, mode: 'read' }, c, { key: b, mode: 'write' }, a]);
    expect(lease.keys).toEqual([a, b, c, d]);
    const kinds = async () => Promise.all([a, b, c, d].map(async (key) => (await locks.inspect(key))?.kind));
    expect(await kinds()).toEqual(['exclusive', 'write', 'exclusive', 'read']);
    expect(lease.tokenFor(b)).toBeGreaterThan(0);
    expect(() => lease.tokenFor(d)).toThrow(LockConfigurationError);
    await expect(lease.downgrade()).rejects.toBeInstanceOf(LockConfigurationError);
    expect(await lease.release()).toBe('released');

    const both = await locks.acquire(
      [
        { key: a, mode: 'read' },
        { key: b, mode: 'write' },
        { key: b, mode: 'read' },
        { key: a, mode: 'write' },
        { key: c, mode: 'read' },
        d,
      ],
      { mode: 'read' },
    );
    expect(await kinds()).toEqual(['write', 'write', 'read', 'read']);
    await both.release();
    await locks.withLock([{ key: a, mode: 'read' }], () =>
      expect(locks.held()).toMatchObject([{ kind: 'read' }]),
    );
    await lab.nothingLeft();
  });

  it('are read by several at once, and all or none', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const [a, b] = newKeys(2) as [string, string];
    const first = await one.locks.acquire([{ key: a, mode: 'read' }, b]);
    await (await two.locks.acquire([{ key: a, mode: 'read' }], { waitMs: 0 })).release();
    const refused = two.locks.acquire(
      [
        { key: a, mode: 'read' },
        { key: b, mode: 'read' },
      ],
      { waitMs: 0 },
    );
    await expect(refused).rejects.toMatchObject({ code: 'LOCK_TAKEN', key: b, heldAs: 'exclusive' });
    expect(await two.locks.tryAcquire([{ key: a, mode: 'write' }])).toBeNull();
    await first.release();
    await lab.nothingLeft(one, two);
  });

  it('cannot deadlock: everybody takes them in one order, whatever the mode', async () => {
    const services = [lab.open(), lab.open()];
    const keys = newKeys(3);
    let writers = 0;
    await Promise.all(
      services.flatMap(({ locks }, i) =>
        [0, 1].map(async (j) => {
          for (let round = 0; round < 10; round += 1) {
            const modes = keys.map((key, k) => ({ key, mode: (k + i + j) % 2 ? 'read' : 'write' }) as const);
            await locks.withLock(j ? modes : modes.toReversed(), { waitMs: 20_000 }, () => (writers += 1));
          }
        }),
      ),
    );
    expect(writers).toBe(40);
    await lab.nothingLeft(...services);
  });

  it('keep a fixed lease, which all of them get from the same moment', async () => {
    const { locks } = lab.open();
    const [a, b] = newKeys(2) as [string, string];
    const lease = await locks.acquire(
      [
        { key: a, mode: 'read' },
        { key: b, mode: 'write' },
      ],
      { leaseMs: 3_000 },
    );
    expect(lease.remainingMs()).toBeGreaterThan(2_000);
    for (const key of [a, b]) expect(await lab.admin.pttl(holdName(key))).toBeLessThanOrEqual(3_000);
    expect(await lease.release()).toBe('released');
    await lab.nothingLeft();
  });

  it('that contradict each other or the call are refused before anything is taken', async () => {
    const { locks } = lab.open();
    const [a, b] = newKeys(2) as [string, string];
    const twice = locks.acquire([a, b, { key: b, mode: 'read' }]);
    await expect(twice).rejects.toThrow(/as a lock and as a read lock, which exclude each other/);
    await expect(twice).rejects.toBeInstanceOf(LockConfigurationError);
    const fair = locks.acquire([a, { key: b, mode: 'read' }], { mode: 'fair' });
    await expect(fair).rejects.toBeInstanceOf(LockConfigurationError);
    for (const wrong of [{ key: b, mode: 'append' }, { key: b, mode: 'fair' }, { mode: 'read' }]) {
      await expect(locks.acquire([a, wrong as never])).rejects.toBeInstanceOf(LockKeyError);
    }
    await lab.nothingLeft();
  });

  it('refuse a reader inside that wants to write one of them, and give back the others', async () => {
    const { locks } = lab.open();
    const [a, b] = newKeys(2) as [string, string];
    const nested = locks.withLock([{ key: b, mode: 'read' }], (inside) =>
      locks.withLock([a, { key: b, mode: 'write' }], { waitMs: Infinity, inside }, () => 'ran'),
    );
    await expect(nested).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT', key: b });
    await lab.nothingLeft();
  });
});
