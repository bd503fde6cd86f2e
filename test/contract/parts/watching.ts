import { describe, expect, it } from 'vitest';
import type { FullStore } from '../../support/stores/harness.js';
import type { KindUnderContract } from '../kinds/kind-under-contract.js';
import {
  expectGranted,
  expectTaken,
  type WakeUpCounter,
  newKey,
  takeWhenFree,
  eventLoopTurn,
  type ContractContext,
} from '../../support/stores/harness.js';

/** Wake-up hints, and knowing of others who wait. */
export function describeWatching(context: ContractContext, kind: KindUnderContract): void {
  const takeAndRelease = async (store: FullStore, key: string): Promise<boolean> => {
    const claim = kind.claimFor(key);
    expectGranted(await kind.of(store).acquire(claim));
    return (await kind.of(store).release(claim)).othersWaiting;
  };

  /** A poller wakes a process that is not in the wait queue, so that it enters it. */
  const enter = async (store: FullStore, key: string): Promise<void> => {
    if (context.polled) await kind.of(store).acquire({ ...kind.claimFor(key), waits: true });
  };

  describe('watch', () => {
    it('hints when it becomes live, and never inside the call', async () => {
      const store = await context.connect();
      const wakeUps = kind.wakeUps(store, newKey());
      expect(wakeUps.count).toBe(0);
      await wakeUps.next(0);
      expect(wakeUps.watch.live).toBe(true);
      expect(wakeUps.failures).toEqual([]);
    });

    it('hints on a release in another process', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      const wakeUps = await kind.live(b, claim.finalKey);
      const seen = wakeUps.count;
      await kind.of(a).release(claim);
      await wakeUps.next(seen);
      expectGranted(await kind.of(b).acquire(kind.claimFor(claim.finalKey)));
    });

    it('hints on forceUnlock, in the process that asked for it too', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      const watchers = [await kind.live(a, claim.finalKey), await kind.live(b, claim.finalKey)];
      const seen = watchers.map(({ count }) => count);
      expect(await b.forceUnlock(claim.finalKey)).toBe(true);
      await Promise.all(watchers.map((wakeUps, i) => wakeUps.next(seen[i])));
    });

    it('hints when a hold is re-armed to end sooner than was said, and only then', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      await enter(b, claim.finalKey);
      const wakeUps = await kind.live(b, claim.finalKey);
      const seen = wakeUps.count;
      expectGranted(await kind.of(a).acquire({ ...claim, reacquires: true, leaseMs: claim.leaseMs * 2 }));
      await b.inspect(claim.finalKey);
      await eventLoopTurn();
      expect(wakeUps.count).toBe(seen);
      expectGranted(await kind.of(a).acquire({ ...claim, reacquires: true, leaseMs: 5_000 }));
      await wakeUps.next(seen);
      await kind.of(a).release(claim);
    });

    it('reaches every watcher of the key, in the same process and in others', async () => {
      const [a, b, c] = [await context.connect(), await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      const watchers = await Promise.all([b, b, b, c, c].map((store) => kind.live(store, claim.finalKey)));
      const seen = watchers.map(({ count }) => count);
      await kind.of(a).release(claim);
      await Promise.all(watchers.map((wakeUps, i) => wakeUps.next(seen[i])));
    });

    it('a second watcher of a watched key gets a hint of its own when it is live', async () => {
      const store = await context.connect();
      const key = newKey();
      await kind.live(store, key);
      const second = kind.wakeUps(store, key);
      await second.next(0);
      expect(second.watch.live).toBe(true);
    });

    it('does not hint after it was closed, and closing one does not deafen another', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      const closed = await kind.live(b, claim.finalKey);
      const open = await kind.live(b, claim.finalKey);
      const [closedSeen, openSeen] = [closed.count, open.count];
      closed.watch.close();
      closed.watch.close();
      expect(closed.watch.live).toBe(false);
      await kind.of(a).release(claim);
      await open.next(openSeen);
      await eventLoopTurn();
      expect(closed.count).toBe(closedSeen);
    });

    it('closed before it became live, it never hints, and a later watch of the key works', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      const early = kind.wakeUps(b, claim.finalKey);
      early.watch.close();
      const later = await kind.live(b, claim.finalKey);
      const seen = later.count;
      await kind.of(a).release(claim);
      await later.next(seen);
      expect(early.count).toBe(0);
      expect(early.watch.live).toBe(false);
    });

    it('closed from within its own hint, it stays closed, and its neighbours still hear', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      const before = await kind.live(b, claim.finalKey);
      let armed = false;
      const closing = await kind.live(b, claim.finalKey, () => {
        if (armed) closing.watch.close();
      });
      const after = await kind.live(b, claim.finalKey);
      armed = true;
      const [beforeSeen, closingSeen, afterSeen] = [before.count, closing.count, after.count];
      await kind.of(a).release(claim);
      // A poller wakes each of them at a time of its own.
      await Promise.all([before.next(beforeSeen), closing.next(closingSeen), after.next(afterSeen)]);
      const afterAll = after.count;
      await takeAndRelease(a, claim.finalKey);
      await after.next(afterAll);
      await eventLoopTurn();
      expect(closing.count).toBe(closingSeen + 1);
    });

    it('closed by a neighbour while both are being woken, it does not hint any more', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      let armed = false;
      const woken: string[] = [];
      const pair = new Map<string, WakeUpCounter>();
      const other = (name: string): WakeUpCounter => pair.get(name === 'one' ? 'two' : 'one')!;
      for (const name of ['one', 'two']) {
        const closeOther = (): void => {
          if (!armed) return;
          woken.push(name);
          other(name).watch.close();
        };
        pair.set(name, await kind.live(b, claim.finalKey, closeOther));
      }
      const witness = await kind.live(b, claim.finalKey);
      armed = true;
      const seen = witness.count;
      await kind.of(a).release(claim);
      await witness.next(seen);
      await expect.poll(() => woken.length).toBeGreaterThan(0);
      await eventLoopTurn();
      // A poller wakes the open one again while the key is free.
      expect(new Set(woken).size).toBe(1);
    });

    it('after many watches are opened and closed, the last open one is notified', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = kind.claimFor(newKey());
      await kind.of(a).acquire(claim);
      for (let i = 0; i < 20; i += 1) kind.wakeUps(b, claim.finalKey).watch.close();
      const last = await kind.live(b, claim.finalKey);
      const seen = last.count;
      await kind.of(a).release(claim);
      await last.next(seen);
    });

    it('of one key is not woken by the release of another', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const [mine, other] = [newKey(), newKey()];
      await kind.of(a).acquire(kind.claimFor(mine));
      await enter(b, mine);
      const wakeUps = await kind.live(b, mine);
      const witness = await kind.live(b, other);
      const [seen, witnessSeen] = [wakeUps.count, witness.count];
      await takeAndRelease(a, other);
      await witness.next(witnessSeen);
      await eventLoopTurn();
      expect(wakeUps.count).toBe(seen);
    });

    it('misses no release, however it falls between the "taken" reply and the live watch', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const moments: ((release: () => void) => Promise<void>)[] = [
        async (release) => release(),
        async (release) => (await eventLoopTurn(), release()),
        async (release) => (await a.ping(), release()),
        async (release) => (await b.ping(), release()),
        async (release) => (await b.ping(), await eventLoopTurn(), await eventLoopTurn(), release()),
      ];
      for (let round = 0; round < 60; round += 1) {
        const [mine, theirs] = [kind.claimFor(key), kind.claimFor(key)];
        expectGranted(await kind.of(a).acquire(mine));
        const waiting = takeWhenFree(b, theirs);
        let released: Promise<unknown> | undefined;
        await moments[round % moments.length]!(() => {
          released = kind.of(a).release(mine);
        });
        await Promise.all([waiting, released]);
        await kind.of(b).release(theirs);
      }
    });
  });

  // A store with an order does not need to know.
  if (kind.ordered) return;
  describe('othersWaiting', () => {
    /** Has each store's request refused while the key is held, and releases. Watches are there from before. */
    const releaseBefore = async (
      store: FullStore,
      key: string,
      ...refused: FullStore[]
    ): Promise<boolean> => {
      const claim = kind.claimFor(key);
      await expect
        .poll(async () => (await kind.of(store).acquire(claim)).status, { timeout: 5_000 })
        .toBe('granted');
      for (const other of refused) expectTaken(await kind.refused(other, key));
      return (await kind.of(store).release(claim)).othersWaiting;
    };

    it('is false without a waiter, and when only the own process waits', async () => {
      const store = await context.connect();
      const key = newKey();
      expect(await takeAndRelease(store, key)).toBe(false);
      await kind.live(store, key);
      await kind.live(store, key);
      expect(await releaseBefore(store, key, store)).toBe(false);
    });

    it('is true when another process was refused and watches, whether the own one waits too or not', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      await kind.live(b, key);
      expect(await releaseBefore(a, key, b)).toBe(true);
      await kind.live(a, key);
      expect(await releaseBefore(a, key, a, b)).toBe(true);
      expect(await releaseBefore(b, key, b, a)).toBe(true);
    });

    it('is false again after the other process left, and true while one of its two watchers stays', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const [one, two] = [await kind.live(b, key), await kind.live(b, key)];
      one.watch.close();
      await b.ping();
      expect(await releaseBefore(a, key, b)).toBe(true);
      two.watch.close();
      // Leaving travels on another connection than the question, so it may arrive a moment later.
      await expect.poll(() => takeAndRelease(a, key), { timeout: 5_000 }).toBe(false);
    });

    it('is false again after the own watcher left', async () => {
      const store = await context.connect();
      const key = newKey();
      (await kind.live(store, key)).watch.close();
      await expect.poll(() => takeAndRelease(store, key), { timeout: 5_000 }).toBe(false);
    });

    it('does not count a waiter for another key', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const other = newKey();
      await kind.of(a).acquire(kind.claimFor(other));
      await kind.live(b, other);
      expectTaken(await kind.refused(b, other));
      expect(await takeAndRelease(a, newKey())).toBe(false);
    });
  });
}
