import { describe, expect, it } from 'vitest';
import {
  holderOf,
  claimFor,
  expectGranted,
  expectTaken,
  LONG_LEASE_MS,
  newKey,
  takeWhenFree,
  type ContractContext,
} from '../../support/stores/harness.js';

/** Taking, keeping, giving back. */
export function describeHolds(context: ContractContext): void {
  describe('holds', () => {
    it('of many who ask at once, exactly one gets the key', async () => {
      const stores = await Promise.all([context.connect(), context.connect(), context.connect()]);
      const key = newKey();
      const claims = Array.from({ length: 30 }, () => claimFor(key));
      const replies = await Promise.all(
        claims.map((claim, i) => stores[i % 3]!.kinds.exclusive.acquire(claim)),
      );
      const winners = claims.filter((_, i) => replies[i]!.status === 'granted');
      expect(winners).toHaveLength(1);
      expect((await stores[0].inspect(key))?.holders[0]?.owner).toBe(winners[0]!.owner);
    });

    it('a release is idempotent', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey());
      await store.kinds.exclusive.acquire(claim);
      expect((await store.kinds.exclusive.release(claim)).wasHeld).toBe(true);
      expect((await store.kinds.exclusive.release(claim)).wasHeld).toBe(false);
      expectGranted(await store.kinds.exclusive.acquire(claimFor(claim.finalKey)));
    });

    it('a release by an owner that never held the key changes nothing', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      expect((await b.kinds.exclusive.release(claimFor(key))).wasHeld).toBe(false);
      const claim = claimFor(key);
      await a.kinds.exclusive.acquire(claim);
      expect((await b.kinds.exclusive.release(claimFor(key))).wasHeld).toBe(false);
      expect(await holderOf(b, key)).toMatchObject({ owner: claim.owner, count: 1 });
      expectTaken(await b.kinds.exclusive.acquire(claimFor(key)));
    });

    it('keys are independent of each other', async () => {
      const store = await context.connect();
      const [one, two] = [claimFor(newKey()), claimFor(newKey())];
      expectGranted(await store.kinds.exclusive.acquire(one));
      expectGranted(await store.kinds.exclusive.acquire(two));
      await store.kinds.exclusive.release(one);
      expect(await holderOf(store, two.finalKey)).toMatchObject({ owner: two.owner });
    });

    it('inspect shows owner, count and what is left, and null for a free key', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      expect(await b.inspect(claim.finalKey)).toBeNull();
      await a.kinds.exclusive.acquire(claim);
      const info = await holderOf(b, claim.finalKey);
      expect(info).toMatchObject({ owner: claim.owner, count: 1 });
      if (context.hasSessions) expect(info!.remainingMs).toBe(Infinity);
      else {
        expect(info!.remainingMs).toBeGreaterThan(LONG_LEASE_MS - 5_000);
        expect(info!.remainingMs).toBeLessThanOrEqual(LONG_LEASE_MS);
        expect(Number.isInteger(info!.remainingMs)).toBe(true);
      }
      await a.kinds.exclusive.release(claim);
      expect(await b.inspect(claim.finalKey)).toBeNull();
    });

    it('forceUnlock ends any hold and says whether there was one', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      expect(await b.forceUnlock(claim.finalKey)).toBe(false);
      await a.kinds.exclusive.acquire(claim);
      expect(await b.forceUnlock(claim.finalKey)).toBe(true);
      expect(await b.forceUnlock(claim.finalKey)).toBe(false);
      expect((await a.kinds.exclusive.release(claim)).wasHeld).toBe(false);
      expectGranted(await b.kinds.exclusive.acquire(claimFor(claim.finalKey)));
    });

    it('40 tasks of four processes are never two inside the section, and all are served', async () => {
      const stores = await Promise.all(Array.from({ length: 4 }, () => context.connect()));
      const key = newKey();
      let inside = 0;
      let max = 0;
      let served = 0;
      let lastToken = 0;
      const task = async (index: number): Promise<void> => {
        const store = stores[index % stores.length]!;
        for (let round = 0; round < 3; round += 1) {
          const claim = claimFor(key);
          const { token } = await takeWhenFree(store, claim);
          inside += 1;
          max = Math.max(max, inside);
          expect(token).toBeGreaterThan(lastToken);
          lastToken = token as number;
          await store.ping();
          inside -= 1;
          served += 1;
          expect((await store.kinds.exclusive.release(claim)).wasHeld).toBe(true);
        }
      };
      await Promise.all(Array.from({ length: 40 }, (_, index) => task(index)));
      expect({ max, served, inside }).toEqual({ max: 1, served: 120, inside: 0 });
    });
  });
}
