import { setTimeout as sleep } from 'node:timers/promises';
import { LockAbortedError, LockNotAcquiredError } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until, within } from '../../support/async.js';
import { Lab, newKey } from '../../support/redis/lab.js';

/** Far below every lease and wait here: whoever needed longer was not woken. */
const AT_ONCE_MS = 5_000;

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

describe('19. a wait that is over', () => {
  const cases = [
    ['behind another process', false],
    ['behind a caller of the same process', true],
  ] as const;

  it.each(cases)('ends no earlier and hardly later than it said (%s)', async (_name, sameProcess) => {
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
    expect(waiter.events('busy')).toEqual([{ key, waitedMs: expect.any(Number) as number }]);
  });

  it('waitMs: 0 asks once: null or the error at once, and the lock itself when it is free', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const key = newKey();
    await using lease = await holder.locks.acquire(key, { waitMs: 0 });
    await waiter.locks.ping();
    expect(await within(AT_ONCE_MS, waiter.locks.tryAcquire(key))).toBeNull();
    await expect(waiter.locks.acquire(key, { waitMs: 0 })).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    expect(await lab.admin.pubsub('CHANNELS')).toEqual([]);
    expect(await lease.release()).toBe('released');
    await (await waiter.locks.acquire(key, { waitMs: 0 })).release();
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
    await sleep(10);
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

describe('waiting costs Redis nothing', () => {
  it('however long: no command is sent between the subscription and the release', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const key = newKey();
    await lab.admin.config('RESETSTAT');
    const lease = await holder.locks.acquire(key);
    const waiting = waiter.locks.acquire(key, { waitMs: 25_000 });
    // One question of the holder, and two of the waiter: before it has subscribed, and after.
    await until(async () => (await lab.calls())['pttl'] === 3);
    const before = await lab.calls();
    await sleep(700);
    expect((await lab.calls())['evalsha']).toBe(before['evalsha']);
    await lease.release();
    await (await within(AT_ONCE_MS, waiting)).release();
  });
});
