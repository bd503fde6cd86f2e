import { setImmediate as turn } from 'node:timers/promises';
import { LockAbortedError, LockNotAcquiredError, type Lease } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { channelOf, newKey, useLab } from '../support/redis/lab.js';
import { ManualClock } from '../support/redis/manual-clock.js';

/** Far below every lease and wait here: a waiter that needed longer was not woken. */
const AT_ONCE_MS = 5_000;

const lab = useLab();

describe('a wait that is over', () => {
  const cases = [
    ['behind another process', false],
    ['behind a caller of the same process', true],
  ] as const;

  it.each(cases)('ends no earlier and hardly later than waitMs (%s)', async (_name, sameProcess) => {
    const waiter = lab.open();
    const holder = sameProcess ? waiter : lab.open();
    const key = newKey();
    await using _lease = await holder.locks.acquire(key);
    const startedAt = performance.now();
    const error: unknown = await waiter.locks
      .acquire(key, { waitMs: 400 })
      .catch((thrown: unknown) => thrown);
    const tookMs = performance.now() - startedAt;
    expect(error).toBeInstanceOf(LockNotAcquiredError);
    expect(error).toMatchObject({ code: 'LOCK_TAKEN', key });
    // A timer may come up to a millisecond early; the upper bound leaves room for a busy machine only.
    expect(tookMs).toBeGreaterThan(398);
    expect(tookMs).toBeLessThan(400 + 600);
    expect(waiter.events('busy')).toMatchObject([
      { key, waitedMs: expect.any(Number) as number, waitersAhead: 0, holder: { client: 'node' } },
    ]);
  });

  it('says about how many stood before a caller whose wait was over: of its own process, and processes in line', async () => {
    const [holder, first, second] = [lab.open(), lab.open(), lab.open()];
    const key = newKey();
    await using _held = await holder.locks.acquire(key);
    const beforeIt = first.locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);
    const refused = (): Promise<unknown> =>
      second.locks.acquire(key, { waitMs: 300 }).catch((error: unknown) => error);
    expect(await refused()).toMatchObject({
      waitersAhead: 1,
      message: expect.stringMatching(/behind about 1 others/) as string,
    });
    const patient = second.locks.acquire(key, { waitMs: 20_000 });
    expect(await refused()).toMatchObject({
      waitersAhead: 2,
      message: expect.stringMatching(/behind about 2 others/) as string,
    });
    expect(second.events('busy')).toMatchObject([{ waitersAhead: 1 }, { waitersAhead: 2 }]);
    expect((await holder.locks.tryAcquire(key)) === null && holder.events('busy')).toMatchObject([
      { key, waitedMs: expect.any(Number) as number, waitersAhead: undefined },
    ]);
    await _held.release();
    for (const waiting of [beforeIt, patient]) await (await waiting).release();
  });

  it('waitMs: 0 sends one request: null or the error at once, and the lock when it is free', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const key = newKey();
    await using lease = await holder.locks.acquire(key, { waitMs: 0 });
    await waiter.locks.ping();
    expect(await within(AT_ONCE_MS, waiter.locks.tryAcquire(key))).toBeNull();
    await expect(waiter.locks.acquire(key, { waitMs: 0 })).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    expect(await lab.channels()).toEqual([]);
    expect(await lease.release()).toBe('released');
    await (await waiter.locks.acquire(key, { waitMs: 0 })).release();
  });

  it('is "taken" for all who waited, with different patience, also when the last question was a while ago', async () => {
    const [holder, other] = [lab.open(), lab.open()];
    await using lease = await holder.locks.acquire(newKey());
    const waits = [300, 0, 100].map((waitMs) => other.locks.acquire(lease.key, { waitMs }));
    for (const outcome of await Promise.allSettled(waits)) {
      expect(outcome.status === 'rejected' && (outcome.reason as unknown)).toBeInstanceOf(
        LockNotAcquiredError,
      );
    }
  });

  it('leaves nothing: of five who are patient for 5 s while each works for 4 s, two work and three give up', async () => {
    const clock = new ManualClock();
    const key = newKey();
    const [got, done, gaveUp] = [new Map<number, Lease>(), new Set<number>(), new Set<number>()];
    const services = Array.from({ length: 5 }, (_, i) =>
      lab.open({}, undefined, clock.runtime(`worker-${i}`)),
    );
    await Promise.all(services.map(({ locks }) => locks.ping()));
    const work = services.map(async ({ locks }, i) => {
      const lease = await locks.tryAcquire(key, { waitMs: 5_000 });
      if (!lease) return gaveUp.add(i);
      got.set(i, lease);
      await new Promise<void>((resolve) => clock.setTimer(resolve, 4_000));
      await lease.release();
      return done.add(i);
    });
    const counts = () => [got.size, done.size, gaveUp.size];
    await until(() => got.size === 1, { what: 'the first has the lock' });
    await lab.waiting(key, 4);
    clock.moveTo(3_999);
    expect(counts()).toEqual([1, 0, 0]);
    clock.moveTo(4_000);
    await until(() => got.size === 2 && done.size === 1, { what: 'the second has the lock' });

    clock.moveTo(5_000);
    await until(() => gaveUp.size === 3, { what: 'three have given up' });
    // Only the holder is still subscribed, because it waited before.
    await until(async () => (await lab.listeners(key)) === 1, { what: 'three have stopped listening' });
    expect(await lab.hold(key)).not.toBeNull();
    for (const i of gaveUp) {
      expect(services[i]!.locks.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
    }
    clock.moveTo(7_999);
    expect(counts()).toEqual([2, 1, 3]);
    clock.moveTo(8_000);
    await Promise.all(work);
    expect(counts()).toEqual([2, 2, 3]);
    await lab.nothingLeft(...services);
  });
});

describe('a wait that goes on', () => {
  it('is not limited by a number of tries: the waiter is woken again and again, and another caller is faster', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(lease.key, { waitMs: 20_000 });
    await lab.waiting(lease.key);
    const requestCount = async () => (await lab.calls())['evalsha'] ?? 0;
    for (let i = 0; i < 50; i += 1) {
      const before = await requestCount();
      await lab.admin.publish(channelOf(lease.key), '0');
      await until(async () => (await requestCount()) > before, { what: 'it asks again' });
    }
    expect(waiter.events('busy')).toEqual([]);
    await lease.release();
    await (await within(AT_ONCE_MS, waiting)).release();
  });
});

describe('calling off a wait', () => {
  it.each(['waiting for another process', 'waiting behind a caller of the same process'])(
    'ends it at once with the reason as the cause, and leaves the queue to the others (%s)',
    async (place) => {
      const [holder, waiter] = [lab.open(), lab.open()];
      const key = newKey();
      const lease = await holder.locks.acquire(key);
      const stays = place.includes('behind') ? waiter.locks.acquire(key, { waitMs: 25_000 }) : undefined;
      const caller = new AbortController();
      const called = waiter.locks.acquire(key, { waitMs: 25_000, signal: caller.signal });
      await lab.waiting(key);
      const reason = new Error('the user left');
      caller.abort(reason);
      const error: unknown = await within(AT_ONCE_MS, called).catch((thrown: unknown) => thrown);
      expect(error).toBeInstanceOf(LockAbortedError);
      expect(error).toMatchObject({ code: 'LOCK_ABORTED', key, cause: reason });
      await lease.release();
      if (stays) await (await within(AT_ONCE_MS, stays)).release();
      await lab.nothingLeft(holder, waiter);
    },
  );

  it('while its request is under way leaves no hold behind', async () => {
    const proxy = await lab.proxy();
    const opened = lab.open({}, proxy.url);
    await opened.locks.ping();
    const key = newKey();
    proxy.delay(500, ['toClient']);
    const caller = new AbortController();
    const acquiring = opened.locks.acquire(key, { signal: caller.signal });
    await until(() => lab.hold(key), { what: 'the request has arrived' });
    caller.abort();
    await expect(within(400, acquiring)).rejects.toBeInstanceOf(LockAbortedError);
    await lab.nothingLeft(opened);
  });

  it('with a signal that is aborted already asks Redis for nothing', async () => {
    const { locks } = lab.open();
    await locks.ping();
    const before = await lab.calls();
    const key = newKey();
    await expect(locks.acquire(key, { signal: AbortSignal.abort() })).rejects.toBeInstanceOf(
      LockAbortedError,
    );
    expect((await lab.calls())['evalsha']).toBe(before['evalsha']);
  });

  it('does not end a lease that was granted', async () => {
    const { locks } = lab.open();
    const caller = new AbortController();
    await using lease = await locks.acquire(newKey(), { signal: caller.signal });
    caller.abort();
    await turn();
    await locks.ping();
    expect(lease.signal.aborted).toBe(false);
    expect(await lease.release()).toBe('released');
  });
});

describe('maxWaiters', () => {
  it('refuses one more at once, and lets the next in when a place is free again', async () => {
    const { locks, events } = lab.open({ maxWaiters: 2 });
    const key = newKey();
    const lease = await locks.acquire(key);
    const waiting = [1, 2].map(() => locks.acquire(key, { waitMs: 25_000 }));
    const refused = within(AT_ONCE_MS, locks.acquire(key, { waitMs: 25_000 }));
    await expect(refused).rejects.toMatchObject({
      name: 'LockNotAcquiredError',
      code: 'LOCK_QUEUE_FULL',
      key,
    });
    expect(events('busy')).toHaveLength(1);
    await lease.release();
    const first = await within(AT_ONCE_MS, waiting[0]!);
    const late = locks.acquire(key, { waitMs: 25_000 });
    await first.release();
    await (await within(AT_ONCE_MS, waiting[1]!)).release();
    await (await within(AT_ONCE_MS, late)).release();
  });

  it('counts each key by itself', async () => {
    const { locks } = lab.open({ maxWaiters: 0 });
    await using one = await locks.acquire(newKey());
    await expect(locks.acquire(one.key)).rejects.toMatchObject({ code: 'LOCK_QUEUE_FULL' });
    await using _two = await locks.acquire(newKey());
  });
});
