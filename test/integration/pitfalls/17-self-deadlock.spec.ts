import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { detached, LockConfigurationError, LockNotAcquiredError } from 'nest-redis-lock';
import { until, within } from '../../support/async.js';
import { holdName, Lab, newKey } from '../../support/redis/lab.js';

let lab: Lab;

beforeAll(async () => {
  lab = await Lab.start();
});

afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

describe('pitfall 17: nobody waits for himself', () => {
  it('acquire and then nested: lease.run makes the lease the section others nest in', async () => {
    const { locks } = lab.open({ waitMs: 20_000 });
    const key = newKey();
    await using lease = await locks.acquire(key);
    const nested = lease.run(() => locks.withLock(key, ({ fencingToken }) => fencingToken));
    expect(await within(3_000, nested, 'the nested call')).toBe(lease.fencingToken);
    expect(await locks.tryAcquire(key), 'outside of it the key is taken like for everybody').toBeNull();
  });

  it('a lost holder frees its place: its own call outside of the section is served while its work goes on', async () => {
    const { locks } = lab.open({ waitMs: 20_000, watchdogMs: 1_000 });
    const key = newKey();
    const tokens = await within(
      8_000,
      locks.withLock(key, async (lease) => {
        await lab.admin.del(holdName(key));
        await until(() => lease.lost);
        return [lease.fencingToken, await detached(() => locks.withLock(key, (own) => own.fencingToken))];
      }),
      'the section',
    );
    expect(tokens[1]).toBeGreaterThan(tokens[0]!);
    await lab.nothingLeft();
  });

  it('a key named twice is taken once', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const work = locks.withLock([key, key, key], (lease) => lease.keys);
    expect(await within(3_000, work, 'the section')).toEqual([key]);
  });

  it('two who take the same keys in opposite orders never wait for each other', async () => {
    const [one, two] = [lab.open({ waitMs: 20_000 }), lab.open({ waitMs: 20_000 })];
    const [a, b, c] = [newKey('a'), newKey('b'), newKey('c')];
    let inside = 0;
    let served = 0;
    const work = async (): Promise<void> => {
      inside += 1;
      expect(inside).toBe(1);
      await lab.admin.ping();
      inside -= 1;
      served += 1;
    };
    const rounds = Array.from({ length: 30 }, (_, i) =>
      [one, two][i % 2]!.locks.withLock(
        [
          [a, b, c],
          [c, b, a],
          [b, c, a],
        ][i % 3]!,
        work,
      ),
    );
    await within(15_000, Promise.all(rounds), 'all of them');
    expect(served).toBe(30);
  });

  it('holding B and wanting [A, B] without end is refused: another [A, B] could wait for it for ever', async () => {
    const { locks, log } = lab.open();
    const [a, b] = [newKey('a'), newKey('b')];
    await locks.withLock(b, async () => {
      const endless = locks.withLock([a, b], { waitMs: Infinity }, () => undefined);
      await expect(endless).rejects.toBeInstanceOf(LockConfigurationError);
      await expect(endless).rejects.toThrow(/deadlock/);
      // With an end it is allowed, and said.
      await locks.withLock([a, b], { waitMs: 2_000 }, () => undefined);
      await locks.withLock([a, b], { waitMs: 2_000 }, () => undefined);
    });
    expect(
      log.filter((line) => line.includes('the other way round')),
      'said once',
    ).toHaveLength(1);
  });

  it('two who really do deadlock each other come out of it when their wait is over, and nothing is left', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const [a, b] = [newKey('a'), newKey('b')];
    const both = await Promise.allSettled([
      one.locks.withLock(a, async () => {
        await until(() => lab.hold(b));
        return one.locks.withLock(b, { waitMs: 300 }, () => 'one');
      }),
      two.locks.withLock(b, async () => {
        await until(() => lab.hold(a));
        return two.locks.withLock(a, { waitMs: 20_000 }, () => 'two');
      }),
    ]);
    expect(both[0]).toMatchObject({ status: 'rejected' });
    expect((both[0] as PromiseRejectedResult).reason).toBeInstanceOf(LockNotAcquiredError);
    expect(both[1]).toMatchObject({ status: 'fulfilled', value: 'two' });
    await lab.nothingLeft(one, two);
  });
});

describe('pitfall 17: several keys with a lease shorter than the wait for them', () => {
  it('the first does not run out while the second is waited for; then both get the lease, from the same moment', async () => {
    const [holder, other] = [lab.open(), lab.open({ watchdogMs: 3_000 })];
    const [a, b] = [newKey('a'), newKey('b')];
    const blocking = await holder.locks.acquire(b);
    const waiting = other.locks.acquire([a, b], { leaseMs: 400, waitMs: 20_000 });
    await lab.waiting(b);
    // Several of the leases that were asked for.
    const since = performance.now();
    await until(async () => {
      expect(await lab.hold(a), 'the first is kept').not.toBeNull();
      return performance.now() - since > 1_500;
    });
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

  it('one of them taken for too long: nothing is kept', async () => {
    const [holder, other] = [lab.open(), lab.open()];
    const [a, b, c] = [newKey('a'), newKey('b'), newKey('c')];
    const blocking = await holder.locks.acquire(c);
    expect(await other.locks.tryAcquire([c, b, a], { waitMs: 200, leaseMs: 5_000 })).toBeNull();
    await until(async () => (await lab.admin.exists(holdName(a), holdName(b))) === 0, { what: 'given back' });
    await blocking.release();
    await lab.nothingLeft(holder, other);
  });
});
