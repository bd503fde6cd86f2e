import { afterEach, describe, expect, it, vi } from 'vitest';
import type { ExclusiveClaim } from '../../lib/core/seam/claim.js';
import { StoreFailure } from '../../lib/core/seam/store-failure.js';
import { MemorySpace } from '../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../lib/stores/memory/memory.store.js';
import {
  claimFor,
  expectGranted,
  expectTaken,
  WakeUpCounter,
  newKey,
  takeToken,
} from '../support/stores/harness.js';

type Store = MemoryStore;

const ENTRY_TERMS = { aliveMs: 1_000, provisionalLeaseMs: 10_000, tokens: 1 };

/** Enqueues for a key that is held; returns the queued claim. */
const enqueue = async (store: Store, key: string, notified: () => void): Promise<ExclusiveClaim> => {
  const claim = claimFor(key, { waits: true, entryTerms: ENTRY_TERMS });
  const reply = await store.kinds.exclusive.acquire(claim);
  expect(reply.status).toBe('queued');
  if (reply.status === 'queued')
    reply.entry.listen({ notified, missedNotification: () => expect.unreachable() });
  return claim;
};

/** What only the memory store promises. */
describe('MemoryStore', () => {
  afterEach(() => {
    vi.useRealTimers();
  });

  it('stores with spaces of their own do not exclude each other', async () => {
    const claim = claimFor(newKey());
    expectGranted(await new MemoryStore().kinds.exclusive.acquire(claim));
    expectGranted(await new MemoryStore().kinds.exclusive.acquire(claimFor(claim.finalKey)));
  });

  it('a store made with the space of another excludes it', async () => {
    const store = new MemoryStore();
    const claim = claimFor(newKey());
    await store.kinds.exclusive.acquire(claim);
    expectTaken(
      await new MemoryStore({ shared: store.space }).kinds.exclusive.acquire(claimFor(claim.finalKey)),
    );
  });

  it('a lease ends on the default clock', async () => {
    const store = new MemoryStore();
    const claim = claimFor(newKey(), { leaseMs: 20 });
    // Read before the lease begins: read after it, the clock may have moved on, and the lease seem to end early.
    const requestedAt = performance.now();
    await store.kinds.exclusive.acquire(claim);
    await vi.waitUntil(async () => (await store.inspect(claim.finalKey)) === null, { interval: 1 });
    expect(performance.now() - requestedAt).toBeGreaterThanOrEqual(20);
  });

  it.each([
    ['the default ones', undefined],
    [
      'microtasks included',
      { toFake: ['Date', 'performance', 'setTimeout', 'setImmediate', 'queueMicrotask'] },
    ],
  ] satisfies [string, Parameters<typeof vi.useFakeTimers>[0]][])(
    'works under fake timers (%s): leases follow them, hints need none, no timer is started',
    async (_, config) => {
      vi.useFakeTimers(config);
      const space = new MemorySpace();
      const [a, b] = [new MemoryStore({ shared: space }), new MemoryStore({ shared: space })];
      const claim = claimFor(newKey(), { leaseMs: 1_000 });
      await a.kinds.exclusive.acquire(claim);
      let wakeUps = 0;
      const watch = b.kinds.exclusive.watch(claim, {
        notified: () => {
          wakeUps += 1;
        },
        failed: () => expect.unreachable(),
      });
      await b.ping();
      expect({ live: watch.live, wakeUps }).toEqual({ live: true, wakeUps: 1 });

      vi.advanceTimersByTime(999);
      expect(await b.kinds.exclusive.acquire(claimFor(claim.finalKey))).toEqual({
        status: 'taken',
        retryInMs: 1,
      });
      vi.advanceTimersByTime(1);
      const next = claimFor(claim.finalKey);
      expectGranted(await b.kinds.exclusive.acquire(next));
      await b.kinds.exclusive.release(next);
      await b.ping();
      expect(wakeUps).toBe(2);
      expect(vi.getTimerCount()).toBe(0);
    },
  );

  it('rounds retryInMs up, so that looking again then finds the lease over', async () => {
    let now = 0.3;
    const store = new MemoryStore({ now: () => now });
    const claim = claimFor(newKey(), { leaseMs: 100 });
    await store.kinds.exclusive.acquire(claim);
    now = 50.7;
    const reply = await store.kinds.exclusive.acquire(claimFor(claim.finalKey));
    expect(reply).toEqual({ status: 'taken', retryInMs: 50 });
    now += 50;
    expectGranted(await store.kinds.exclusive.acquire(claimFor(claim.finalKey)));
  });

  it('tokens start at the wall clock in µs, follow it, and still grow when it steps back or stands still', async () => {
    let wall = 2_000_000;
    const store = new MemoryStore({ wallClockMicros: () => wall });
    expect(await takeToken(store, claimFor(newKey()))).toBe(2_000_000);
    expect(await takeToken(store, claimFor(newKey()))).toBe(2_000_001);
    wall = 3_000_000.7;
    expect(await takeToken(store, claimFor(newKey(), { tokens: 10 }))).toBe(3_000_000);
    wall = 5;
    expect(await takeToken(store, claimFor(newKey()))).toBe(3_000_010);
  });

  it.each([Number.MAX_SAFE_INTEGER, Number.NaN, Infinity])(
    'a wall clock at %s gives no token and takes no hold: StoreFailure',
    async (micros) => {
      const store = new MemoryStore({ wallClockMicros: () => micros });
      const claim = claimFor(newKey(), { tokens: 2 });
      const failure = await store.kinds.exclusive.acquire(claim).catch((error: unknown) => error);
      expect(failure).toBeInstanceOf(StoreFailure);
      expect(failure).toMatchObject({ outcome: 'not-executed' });
      expect((failure as StoreFailure).message).toContain('fencing token');
      expect(store.size.holds).toBe(0);
    },
  );

  it('size counts running holds and watches of all who share the space', async () => {
    let now = 0;
    const space = new MemorySpace({ now: () => now });
    const [a, b] = [new MemoryStore({ shared: space }), new MemoryStore({ shared: space })];
    await a.kinds.exclusive.acquire(claimFor(newKey(), { leaseMs: 10 }));
    await b.kinds.exclusive.acquire(claimFor(newKey(), { leaseMs: 20 }));
    await WakeUpCounter.live(b, newKey());
    expect(a.size).toEqual({ holds: 2, watches: 1 });
    now = 10;
    expect(b.size).toEqual({ holds: 1, watches: 1 });
    await b.close();
    expect(a.size).toEqual({ holds: 1, watches: 0 });
  });

  it('holds of keys that are never used again do not pile up: 100,000 of them leave no maps behind', async () => {
    let now = 0;
    const space = new MemorySpace({ now: () => now });
    const store = new MemoryStore({ shared: space });
    // `size` leaves out what is over; here it matters what is still in memory.
    const { kinds, subscriptions } = space as unknown as {
      kinds: { exclusive: { holds: Map<string, unknown> } };
      subscriptions: Map<string, unknown>;
    };
    const { holds } = kinds.exclusive;
    let max = 0;
    for (let i = 0; i < 100_000; i += 1) {
      now += 1;
      await store.kinds.exclusive.acquire(claimFor(`lock:${String(i)}`, { owner: 'me', leaseMs: 100 }));
      max = Math.max(max, holds.size);
    }
    expect(max).toBeLessThanOrEqual(201);
    for (let i = 0; i < 100; i += 1) (await WakeUpCounter.live(store, newKey())).watch.close();
    expect(subscriptions.size).toBe(0);
  });

  it('that is closed gives up its places, and none of them is granted while the others go', async () => {
    const space = new MemorySpace();
    const { waiting } = space as unknown as { waiting: Map<string, unknown> };
    const [a, b, c] = [1, 2, 3].map(() => new MemoryStore({ shared: space })) as [Store, Store, Store];
    const [kept, free] = [newKey('kept'), newKey('free')];
    await a.kinds.exclusive.acquire(claimFor(kept));
    const brief = claimFor(free);
    await a.kinds.exclusive.acquire(brief);
    const notifications: string[] = [];
    for (const key of [kept, free, free]) await enqueue(b, key, () => notifications.push('closed'));
    await enqueue(c, free, () => notifications.push('open'));
    await b.close();
    expect((await a.inspect(kept))?.waiting).toEqual([]);
    expect((await a.inspect(free))?.waiting).toHaveLength(1);
    await a.kinds.exclusive.release(brief);
    await a.ping();
    expect([notifications, waiting.size]).toEqual([['open'], 0]);
  });

  it('a queue entry lives until it is left, however long it is not refreshed', async () => {
    let now = 0;
    const store = new MemoryStore({ now: () => now });
    const claim = claimFor(newKey());
    await store.kinds.exclusive.acquire(claim);
    let notifications = 0;
    await enqueue(store, claim.finalKey, () => (notifications += 1));
    now = 29_999;
    await store.kinds.exclusive.release(claim);
    await store.ping();
    expect(notifications).toBe(1);
  });

  it('a place is told of its turn after the call that brings it, as over a network', async () => {
    const store = new MemoryStore();
    const claim = claimFor(newKey());
    await store.kinds.exclusive.acquire(claim);
    let notifications = 0;
    await enqueue(store, claim.finalKey, () => (notifications += 1));
    const release = store.kinds.exclusive.release(claim);
    expect(notifications).toBe(0);
    await release;
    await store.ping();
    expect(notifications).toBe(1);
  });

  it('a wall clock that gives no token fails those who ask, and never a release', async () => {
    let wall = 1_000;
    const space = new MemorySpace({ wallClockMicros: () => wall });
    const { waiting } = space as unknown as { waiting: Map<string, unknown> };
    const [a, b] = [new MemoryStore({ shared: space }), new MemoryStore({ shared: space })];
    const claim = claimFor(newKey());
    await a.kinds.exclusive.acquire(claim);
    let notifications = 0;
    const first = await enqueue(b, claim.finalKey, () => (notifications += 1));
    wall = Number.NaN;
    expect((await a.kinds.exclusive.release(claim)).wasHeld).toBe(true);
    expect(await a.inspect(claim.finalKey)).toBeNull();
    const [kept, gone] = await b.kinds.exclusive.refreshEntries([first, claimFor(newKey())]);
    expect(kept).toMatchObject({ status: 'failed', cause: { outcome: 'not-executed' } });
    expect(gone).toEqual({ status: 'gone' });
    const late = { ...claimFor(claim.finalKey), waits: true, entryTerms: ENTRY_TERMS };
    await expect(a.kinds.exclusive.acquire(late)).resolves.toMatchObject({ status: 'queued', position: 1 });
    await a.kinds.exclusive.release(late);
    await b.kinds.exclusive.release(first);
    await expect(a.kinds.exclusive.acquire({ ...late, owner: 'p:3' })).rejects.toThrow('fencing token');
    expect([notifications, waiting.size]).toEqual([0, 0]);
  });

  it('a hint comes after the call that causes it, as over a network', async () => {
    const space = new MemorySpace();
    const [a, b] = [new MemoryStore({ shared: space }), new MemoryStore({ shared: space })];
    const claim = claimFor(newKey());
    await a.kinds.exclusive.acquire(claim);
    const wakeUps = await WakeUpCounter.live(b, claim.finalKey);
    const release = a.kinds.exclusive.release(claim);
    expect(wakeUps.count).toBe(1);
    expect((await release).wasHeld).toBe(true);
    await wakeUps.next(1);
  });
});
