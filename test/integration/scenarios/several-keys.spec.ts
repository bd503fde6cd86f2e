import { setTimeout as sleep } from 'node:timers/promises';
import {
  currentLease,
  detached,
  LockConfigurationError,
  LockKeyError,
  LockNotAcquiredError,
} from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { deferred, until, within } from '../../support/async.js';
import { holdName, Lab, newKey, SHORT_WATCHDOG } from '../../support/redis/lab.js';

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

const newKeys = (count: number) => Array.from({ length: count }, () => newKey());

describe('several keys', () => {
  it('two processes that want them in opposite orders, for ever if need be, never stand in each other’s way', async () => {
    const [a, b] = [newKey(), newKey()];
    const [one, two] = await Promise.all([lab.worker(), lab.worker()]);
    const rounds = 100;
    one.send({ type: 'dine', keys: [a, b], rounds });
    two.send({ type: 'dine', keys: [b, a], rounds });
    await Promise.all([one.next('dined'), two.next('dined')]);
    await lab.nothingLeft();
  });

  it('are taken all, each with a token of its own, and released all', async () => {
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

  it('or none: also where one cannot be used, or the caller gives up', async () => {
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

  it('with a lease time shorter than the wait for the last: the first lives until all are there', async () => {
    const [holder, opened] = [lab.open(), lab.open(SHORT_WATCHDOG)];
    await holder.locks.ping();
    const [a, b] = newKeys(2) as [string, string];
    const taken = await holder.locks.acquire(b, { leaseMs: 1_500 });
    const lease = await opened.locks.acquire([a, b], { leaseMs: 700, waitMs: 20_000 });
    expect(lease.remainingMs()).toBeGreaterThan(0);
    for (const key of [a, b]) expect((await lab.hold(key))!.leftMs).toBeLessThanOrEqual(700);
    // From now on it is not renewed.
    await until(async () => !(await lab.hold(a)) && !(await lab.hold(b)));
    expect([await lease.release(), await taken.release()]).toEqual(['lost', 'lost']);
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

describe('nested locks', () => {
  it('on other keys are locks of their own, released in their turn', async () => {
    const { locks } = lab.open();
    const [a, b] = newKeys(2) as [string, string];
    await locks.withLock(a, async () => {
      await locks.withLock(b, async () => {
        expect(currentLease().key).toBe(b);
        expect(currentLease(a).key).toBe(a);
        expect(locks.held().map(({ key }) => key)).toEqual([a, b]);
      });
      expect(await lab.hold(b)).toBeNull();
      expect(await lab.hold(a)).not.toBeNull();
    });
  });

  it('waiting without limit in an order that can deadlock is refused; both at once is the way', async () => {
    const { locks, log } = lab.open();
    const [a, b] = newKeys(2) as [string, string];
    const nested = locks.withLock(b, () => locks.withLock(a, { waitMs: Infinity }, () => 'ran'));
    await expect(nested).rejects.toMatchObject({ code: 'LOCK_CONFIGURATION', key: a });
    expect(await locks.withLock(b, () => locks.withLock(a, () => 'ran'))).toBe('ran');
    expect(log.filter((line) => line.includes(`"${a}" is taken while "${b}" is held`))).toHaveLength(1);
    expect(await locks.withLock([b, a], { waitMs: Infinity }, () => 'ran')).toBe('ran');
  });

  it('of two services on two servers are two locks, whatever their key', async () => {
    await using elsewhere = await Lab.start();
    const [here, there] = [lab.open(), elsewhere.open()];
    await here.locks.withLock('same', () =>
      there.locks.withLock('same', async () => {
        expect([await lab.hold('same'), await elsewhere.hold('same')]).not.toContain(null);
      }),
    );
  });

  it('reentrant: false makes taking a lock again an error at once', async () => {
    const { locks } = lab.open({ reentrant: false });
    const key = newKey();
    const nested = locks.withLock(key, () => locks.withLock(key, { waitMs: 20_000 }, () => 'ran'));
    await expect(within(5_000, nested)).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT', key });
  });

  it('acquire() opens no section, lease.run() does', async () => {
    const { locks } = lab.open();
    await using lease = await locks.acquire(newKey());
    expect(await locks.tryAcquire(lease.key)).toBeNull();
    expect(() => currentLease()).toThrow(LockConfigurationError);
    await lease.run(async () => {
      expect(currentLease()).toBe(lease);
      await using again = (await locks.tryAcquire(lease.key))!;
      expect(again.fencingToken).toBe(lease.fencingToken);
    });
    expect(await lab.hold(lease.key)).not.toBeNull();
  });
});

describe('siblings inside a lock', () => {
  it('exclude each other, in the order in which they came', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const seen: string[] = [];
    await locks.withLock(key, () =>
      Promise.all(
        ['first', 'second', 'third'].map((name) =>
          locks.withLock(key, async () => {
            seen.push(`${name} in`);
            await sleep(5);
            seen.push(`${name} out`);
          }),
        ),
      ),
    );
    expect(seen).toEqual(['first in', 'first out', 'second in', 'second out', 'third in', 'third out']);
  });

  it('wait for each other no longer than they said, and no longer than their caller wants', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const end = deferred();
    const caller = new AbortController();
    await locks.withLock(key, async () => {
      const first = locks.withLock(key, () => end.promise);
      const impatient = locks.withLock(key, { waitMs: 50 }, () => 'ran');
      const left = locks.withLock(key, { waitMs: 20_000, signal: caller.signal }, () => 'ran');
      await expect(impatient).rejects.toMatchObject({ code: 'LOCK_TAKEN', key });
      caller.abort();
      await expect(left).rejects.toMatchObject({ code: 'LOCK_ABORTED', key });
      end.resolve();
      await first;
      expect(await locks.withLock(key, () => 'ran')).toBe('ran');
    });
  });

  it('that nobody waited for keep the lock until they are done', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const end = deferred();
    let outer = 'running';
    const whole = locks
      .withLock(key, () => void locks.withLock(key, () => end.promise))
      .then(() => (outer = 'ended'));
    await until(() => lab.hold(key));
    expect(await lab.open().locks.tryAcquire(key)).toBeNull();
    expect(outer).toBe('running');
    end.resolve();
    await whole;
    expect(await lab.hold(key)).toBeNull();
  });
});

describe('detached', () => {
  it('runs outside of every enclosing lock: it takes the lock for real, after its parent', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const tokens: number[] = [];
    const background = await locks.withLock(key, (outer) => {
      tokens.push(outer.fencingToken);
      return {
        done: detached(() => locks.withLock(key, (inner) => void tokens.push(inner.fencingToken))),
      };
    });
    expect(tokens).toHaveLength(1);
    await within(5_000, background.done);
    expect(tokens[1]).toBeGreaterThan(tokens[0]!);
  });

  it('what outlives its parent by itself takes the lock for real as well', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const parentEnded = deferred();
    const late = await locks.withLock(key, () => ({
      done: (async () => {
        await parentEnded.promise;
        return locks.withLock(key, (lease) => lease.fencingToken);
      })(),
    }));
    const other = await lab.open().locks.acquire(key);
    parentEnded.resolve();
    await lab.waiting(key);
    await other.release();
    expect(await within(5_000, late.done)).toBeGreaterThan(other.fencingToken);
  });
});
