import { describe, expect, it } from 'vitest';
import {
  holderOf,
  claimFor,
  expectGranted,
  expectTaken,
  LONG_LEASE_MS,
  newKey,
  type ContractContext,
} from '../../support/stores/harness.js';

/** Holds that end by themselves, each at the end of its lease. */
export function describeLeases(context: ContractContext): void {
  describe('leases', () => {
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
  });
}
