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

    it('a grant is valid for the lease, counted from before the request', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey());
      const sentAt = performance.now();
      const reply = await store.kinds.exclusive.acquire(claim);
      expectGranted(reply);
      expect(reply.validForMs).toBeLessThanOrEqual(claim.leaseMs);
      expect(reply.validForMs).toBeGreaterThan(claim.leaseMs - 5_000);
      const info = await holderOf(store, claim.finalKey);
      // The end its owner believes in is never later than the end the store keeps (which counts whole ms).
      expect(sentAt + reply.validForMs).toBeLessThanOrEqual(performance.now() + info!.remainingMs + 1);
    });

    it('"taken" says when to look again: no later than the end of the lease in the way', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      await a.kinds.exclusive.acquire(claimFor(key));
      const reply = await b.kinds.exclusive.acquire(claimFor(key));
      expectTaken(reply);
      expect(reply.retryInMs).toBeGreaterThan(LONG_LEASE_MS - 5_000);
      expect(reply.retryInMs).toBeLessThanOrEqual(LONG_LEASE_MS);
    });

    it('a lease expires, and a caller that retries after retryInMs gets the key', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const mine = claimFor(key, { leaseMs: 1_000 });
      const theirs = claimFor(key);
      await a.kinds.exclusive.acquire(mine);
      const reply = await b.kinds.exclusive.acquire(theirs);
      expectTaken(reply);
      expect(reply.retryInMs).toBeLessThanOrEqual(1_000);
      await context.harness.pass(reply.retryInMs);
      expectGranted(await b.kinds.exclusive.acquire(theirs));
      expect(await a.kinds.exclusive.extendMany([mine])).toEqual([{ status: 'lost' }]);
      expect((await a.inspect(key))?.holders[0]?.owner).toBe(theirs.owner);
    });

    it('an own hold is re-armed to the new lease, and one release ends it', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey());
      await a.kinds.exclusive.acquire(claim);
      const again = await a.kinds.exclusive.acquire({ ...claim, leaseMs: 60_000 });
      expectGranted(again);
      expect(again.validForMs).toBeGreaterThan(55_000);
      const info = await holderOf(b, claim.finalKey);
      expect(info).toMatchObject({ owner: claim.owner, count: 1 });
      expect(info!.remainingMs).toBeGreaterThan(55_000);
      expect((await a.kinds.exclusive.release(claim)).wasHeld).toBe(true);
      expect(await b.inspect(claim.finalKey)).toBeNull();
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

    it('the late release of an expired hold leaves the next owner alone', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const expired = claimFor(key, { leaseMs: 40 });
      await a.kinds.exclusive.acquire(expired);
      await context.harness.pass(40);
      const next = claimFor(key);
      expectGranted(await b.kinds.exclusive.acquire(next));
      expect((await a.kinds.exclusive.release(expired)).wasHeld).toBe(false);
      expect(await holderOf(a, key)).toMatchObject({ owner: next.owner, count: 1 });
    });

    it('the release of an expired hold on a free key answers "was not held"', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey(), { leaseMs: 40 });
      await store.kinds.exclusive.acquire(claim);
      await context.harness.pass(40);
      expect((await store.kinds.exclusive.release(claim)).wasHeld).toBe(false);
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
      expect(info!.remainingMs).toBeGreaterThan(LONG_LEASE_MS - 5_000);
      expect(info!.remainingMs).toBeLessThanOrEqual(LONG_LEASE_MS);
      expect(Number.isInteger(info!.remainingMs)).toBe(true);
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
