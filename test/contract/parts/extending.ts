import { describe, expect, it } from 'vitest';
import type { ExtendReply } from '../../../lib/core/seam/claim.js';
import { claimFor, LONG_LEASE_MS, newKey, type ContractContext } from '../harness.js';

function expectHeld(reply: ExtendReply | undefined, leaseMs: number): void {
  expect(reply).toMatchObject({ status: 'held' });
  const { validForMs } = reply as Extract<ExtendReply, { status: 'held' }>;
  expect(validForMs).toBeLessThanOrEqual(leaseMs);
  expect(validForMs).toBeGreaterThan(leaseMs - 10_000);
}

/** Renewal. */
export function describeExtending(context: ContractContext): void {
  describe('extendMany', () => {
    it('lengthens the hold', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey());
      await store.acquire(claim);
      const sentAt = performance.now();
      const [reply] = await store.extendMany([{ ...claim, leaseMs: 120_000 }]);
      expectHeld(reply, 120_000);
      const info = await store.inspect('exclusive', claim.key);
      expect(info).toMatchObject({ owner: claim.owner, count: 1 });
      expect(info!.remainingMs).toBeGreaterThan(110_000);
      const believed = sentAt + (reply as Extract<ExtendReply, { status: 'held' }>).validForMs;
      expect(believed).toBeLessThanOrEqual(performance.now() + info!.remainingMs + 1);
    });

    it('never shortens: 30 s after 120 s leaves 120 s, and says so', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey());
      await store.acquire(claim);
      await store.extendMany([{ ...claim, leaseMs: 120_000 }]);
      const [reply] = await store.extendMany([claim]);
      expectHeld(reply, 120_000);
      expect((await store.inspect('exclusive', claim.key))!.remainingMs).toBeGreaterThan(110_000);
    });

    it('never creates a hold: a free, an expired and an unlocked key are lost and stay free', async () => {
      const store = await context.connect();
      const [free, expired, unlocked, released] = [
        claimFor(newKey()),
        claimFor(newKey(), { leaseMs: 40 }),
        claimFor(newKey()),
        claimFor(newKey()),
      ];
      await store.acquire(expired);
      await store.acquire(unlocked);
      await store.acquire(released);
      await store.forceUnlock('exclusive', unlocked.key);
      await store.release(released);
      await context.harness.pass(40);
      const claims = [free, expired, unlocked, released];
      const replies = await store.extendMany(claims.map((claim) => ({ ...claim, leaseMs: LONG_LEASE_MS })));
      expect(replies).toEqual(claims.map(() => ({ status: 'lost' })));
      for (const { key } of claims) expect(await store.inspect('exclusive', key)).toBeNull();
    });

    it('does not lengthen the hold of somebody else', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const theirs = claimFor(newKey());
      await a.acquire(theirs);
      expect(await b.extendMany([claimFor(theirs.key, { leaseMs: 120_000 })])).toEqual([{ status: 'lost' }]);
      const info = await b.inspect('exclusive', theirs.key);
      expect(info!.owner).toBe(theirs.owner);
      expect(info!.remainingMs).toBeLessThanOrEqual(LONG_LEASE_MS);
    });

    it('keeps a hold alive past its first lease', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey(), { leaseMs: 2_000 });
      await a.acquire(claim);
      expectHeld((await a.extendMany([{ ...claim, leaseMs: LONG_LEASE_MS }]))[0], LONG_LEASE_MS);
      await context.harness.pass(2_000);
      expect(await b.inspect('exclusive', claim.key)).toMatchObject({ owner: claim.owner });
    });

    it('gives no new fencing token and keeps the count', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey());
      await store.acquire(claim);
      const replies = await store.extendMany([claim, claim]);
      expect(replies.map((reply) => Object.keys(reply).sort())).toEqual([
        ['status', 'validForMs'],
        ['status', 'validForMs'],
      ]);
      expect((await store.inspect('exclusive', claim.key))!.count).toBe(1);
    });

    it('answers for each claim in its place, held and lost mixed', async () => {
      const store = await context.connect();
      const claims = Array.from({ length: 300 }, () => claimFor(newKey()));
      await Promise.all(claims.filter((_, i) => i % 3 !== 0).map((claim) => store.acquire(claim)));
      const replies = await store.extendMany(claims);
      expect(replies.map(({ status }) => status)).toEqual(
        claims.map((_, i) => (i % 3 === 0 ? 'lost' : 'held')),
      );
    });

    it('of nothing answers nothing', async () => {
      expect(await (await context.connect()).extendMany([])).toEqual([]);
    });
  });
}
