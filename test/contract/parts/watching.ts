import { describe, expect, it } from 'vitest';
import type { FullStore } from '../../support/stores/harness.js';
import {
  claimFor,
  expectGranted,
  HintCounter,
  newKey,
  takeWhenFree,
  turn,
  type ContractContext,
} from '../../support/stores/harness.js';

const takeAndRelease = async (store: FullStore, key: string): Promise<boolean> => {
  const claim = claimFor(key);
  expectGranted(await store.kinds.exclusive.acquire(claim));
  return (await store.kinds.exclusive.release(claim)).othersWaiting;
};

/** Wake-up hints, and knowing of others who wait. */
export function describeWatching(context: ContractContext): void {
  describe('watch', () => {
    it('hints when it becomes live, and never inside the call', async () => {
      const store = await context.connect();
      const hints = new HintCounter(store, newKey());
      expect(hints.count).toBe(0);
      await hints.next(0);
      expect(hints.watch.live).toBe(true);
      expect(hints.failures).toEqual([]);
    });

    it('hints on a release in another process', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      const hints = await HintCounter.live(b, claim.finalKey);
      const seen = hints.count;
      await a.kinds.exclusive.release(claim);
      await hints.next(seen);
      expectGranted(await b.kinds.exclusive.acquire(claimFor(claim.finalKey)));
    });

    it('hints on forceUnlock, in the process that asked for it too', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      const watchers = [await HintCounter.live(a, claim.finalKey), await HintCounter.live(b, claim.finalKey)];
      const seen = watchers.map(({ count }) => count);
      expect(await b.forceUnlock(claim.finalKey)).toBe(true);
      await Promise.all(watchers.map((hints, i) => hints.next(seen[i])));
    });

    it('hints when a hold is re-armed to end sooner than was said, and only then', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      const hints = await HintCounter.live(b, claim.finalKey);
      const seen = hints.count;
      expectGranted(await a.kinds.exclusive.acquire({ ...claim, rearms: true, leaseMs: claim.leaseMs * 2 }));
      await b.inspect(claim.finalKey);
      await turn();
      expect(hints.count).toBe(seen);
      expectGranted(await a.kinds.exclusive.acquire({ ...claim, rearms: true, leaseMs: 5_000 }));
      await hints.next(seen);
      await a.kinds.exclusive.release(claim);
    });

    it('reaches every watcher of the key, in the same process and in others', async () => {
      const [a, b, c] = [await context.connect(), await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      const watchers = await Promise.all(
        [b, b, b, c, c].map((store) => HintCounter.live(store, claim.finalKey)),
      );
      const seen = watchers.map(({ count }) => count);
      await a.kinds.exclusive.release(claim);
      await Promise.all(watchers.map((hints, i) => hints.next(seen[i])));
    });

    it('a second watcher of a watched key gets a hint of its own when it is live', async () => {
      const store = await context.connect();
      const key = newKey();
      await HintCounter.live(store, key);
      const second = new HintCounter(store, key);
      await second.next(0);
      expect(second.watch.live).toBe(true);
    });

    it('does not hint after it was closed, and closing one does not deafen another', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      const closed = await HintCounter.live(b, claim.finalKey);
      const open = await HintCounter.live(b, claim.finalKey);
      const [closedSeen, openSeen] = [closed.count, open.count];
      closed.watch.close();
      closed.watch.close();
      expect(closed.watch.live).toBe(false);
      await a.kinds.exclusive.release(claim);
      await open.next(openSeen);
      await turn();
      expect(closed.count).toBe(closedSeen);
    });

    it('closed before it became live, it never hints, and a later watch of the key works', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      const early = new HintCounter(b, claim.finalKey);
      early.watch.close();
      const later = await HintCounter.live(b, claim.finalKey);
      const seen = later.count;
      await a.kinds.exclusive.release(claim);
      await later.next(seen);
      expect(early.count).toBe(0);
      expect(early.watch.live).toBe(false);
    });

    it('closed from within its own hint, it stays closed, and its neighbours still hear', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      const before = await HintCounter.live(b, claim.finalKey);
      let armed = false;
      const closing = await HintCounter.live(b, claim.finalKey, () => {
        if (armed) closing.watch.close();
      });
      const after = await HintCounter.live(b, claim.finalKey);
      armed = true;
      const [beforeSeen, closingSeen, afterSeen] = [before.count, closing.count, after.count];
      await a.kinds.exclusive.release(claim);
      await Promise.all([before.next(beforeSeen), after.next(afterSeen)]);
      await takeAndRelease(a, claim.finalKey);
      await after.next(afterSeen + 1);
      await turn();
      expect(closing.count).toBe(closingSeen + 1);
    });

    it('closed by a neighbour while both are being woken, it does not hint any more', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      let armed = false;
      const woken: string[] = [];
      const pair = new Map<string, HintCounter>();
      const other = (name: string): HintCounter => pair.get(name === 'one' ? 'two' : 'one')!;
      for (const name of ['one', 'two']) {
        const closeOther = (): void => {
          if (!armed) return;
          woken.push(name);
          other(name).watch.close();
        };
        pair.set(name, await HintCounter.live(b, claim.finalKey, closeOther));
      }
      const witness = await HintCounter.live(b, claim.finalKey);
      armed = true;
      const seen = witness.count;
      await a.kinds.exclusive.release(claim);
      await witness.next(seen);
      await turn();
      expect(woken).toHaveLength(1);
    });

    it('opened and closed many times over, it ends as its last state says', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      for (let i = 0; i < 20; i += 1) new HintCounter(b, claim.finalKey).watch.close();
      const last = await HintCounter.live(b, claim.finalKey);
      const seen = last.count;
      await a.kinds.exclusive.release(claim);
      await last.next(seen);
    });

    it('of one key is not woken by the release of another', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const [mine, other] = [newKey(), newKey()];
      const hints = await HintCounter.live(b, mine);
      const witness = await HintCounter.live(b, other);
      const [seen, witnessSeen] = [hints.count, witness.count];
      await takeAndRelease(a, other);
      await witness.next(witnessSeen);
      await turn();
      expect(hints.count).toBe(seen);
    });

    it('misses no release, however it falls between the "taken" reply and the live watch', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const moments: ((release: () => void) => Promise<void>)[] = [
        async (release) => release(),
        async (release) => (await turn(), release()),
        async (release) => (await a.ping(), release()),
        async (release) => (await b.ping(), release()),
        async (release) => (await b.ping(), await turn(), await turn(), release()),
      ];
      for (let round = 0; round < 60; round += 1) {
        const [mine, theirs] = [claimFor(key), claimFor(key)];
        expectGranted(await a.kinds.exclusive.acquire(mine));
        const waiting = takeWhenFree(b, theirs);
        let released: Promise<unknown> | undefined;
        await moments[round % moments.length]!(() => {
          released = a.kinds.exclusive.release(mine);
        });
        await Promise.all([waiting, released]);
        await b.kinds.exclusive.release(theirs);
      }
    });
  });

  describe('othersWaiting', () => {
    it('is false when nobody watches, and when only the own process does', async () => {
      const store = await context.connect();
      const key = newKey();
      expect(await takeAndRelease(store, key)).toBe(false);
      await HintCounter.live(store, key);
      await HintCounter.live(store, key);
      expect(await takeAndRelease(store, key)).toBe(false);
    });

    it('is true when another process watches, whether the own one watches too or not', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      await HintCounter.live(b, key);
      expect(await takeAndRelease(a, key)).toBe(true);
      await HintCounter.live(a, key);
      expect(await takeAndRelease(a, key)).toBe(true);
      await HintCounter.live(a, key);
      expect(await takeAndRelease(a, key)).toBe(true);
      expect(await takeAndRelease(b, key)).toBe(true);
    });

    it('is false again after the other process left, and true while one of its two watchers stays', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const [one, two] = [await HintCounter.live(b, key), await HintCounter.live(b, key)];
      one.watch.close();
      await b.ping();
      expect(await takeAndRelease(a, key)).toBe(true);
      two.watch.close();
      // Leaving travels on another connection than the question, so it may arrive a moment later.
      await expect.poll(() => takeAndRelease(a, key), { timeout: 5_000 }).toBe(false);
    });

    it('is false again after the own watcher left', async () => {
      const store = await context.connect();
      const key = newKey();
      (await HintCounter.live(store, key)).watch.close();
      await expect.poll(() => takeAndRelease(store, key), { timeout: 5_000 }).toBe(false);
    });

    it('does not count who watches another key', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      await HintCounter.live(b, newKey());
      expect(await takeAndRelease(a, newKey())).toBe(false);
    });
  });
}
