import { describe, expect, it } from 'vitest';
import type { ExtendReply } from '../../../lib/core/seam/reply.js';
import {
  holderOf,
  claimFor,
  LONG_LEASE_MS,
  newKey,
  type ContractContext,
} from '../../support/stores/harness.js';

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
      await store.kinds.exclusive.acquire(claim);
      const sentAt = performance.now();
      const [reply] = await store.kinds.exclusive.extendMany([{ ...claim, leaseMs: 120_000 }]);
      expectHeld(reply, 120_000);
      const info = await holderOf(store, claim.finalKey);
      expect(info).toMatchObject({ owner: claim.owner, count: 1 });
      expect(info!.remainingMs).toBeGreaterThan(110_000);
      const believed = sentAt + (reply as Extract<ExtendReply, { status: 'held' }>).validForMs;
      expect(believed).toBeLessThanOrEqual(performance.now() + info!.remainingMs + 1);
    });

    it('never shortens: 30 s after 120 s leaves 120 s, and says so', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey());
      await store.kinds.exclusive.acquire(claim);
      await store.kinds.exclusive.extendMany([{ ...claim, leaseMs: 120_000 }]);
      const [reply] = await store.kinds.exclusive.extendMany([claim]);
      expectHeld(reply, 120_000);
      expect((await holderOf(store, claim.finalKey))!.remainingMs).toBeGreaterThan(110_000);
    });

    it('never creates a hold: a free, an expired and an unlocked key are lost and stay free', async () => {
      const store = await context.connect();
      const [free, expired, unlocked, released] = [
        claimFor(newKey()),
        claimFor(newKey(), { leaseMs: 40 }),
        claimFor(newKey()),
        claimFor(newKey()),
      ];
      await store.kinds.exclusive.acquire(expired);
      await store.kinds.exclusive.acquire(unlocked);
      await store.kinds.exclusive.acquire(released);
      await store.forceUnlock(unlocked.finalKey);
      await store.kinds.exclusive.release(released);
      await context.harness.pass(40);
      const claims = [free, expired, unlocked, released];
      const replies = await store.kinds.exclusive.extendMany(
        claims.map((claim) => ({ ...claim, leaseMs: LONG_LEASE_MS })),
      );
      expect(replies).toEqual(claims.map(() => ({ status: 'lost' })));
      for (const { finalKey: key } of claims) expect(await store.inspect(key)).toBeNull();
    });

    it('does not extend the hold of another owner', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const theirs = claimFor(newKey());
      await a.kinds.exclusive.acquire(theirs);
      expect(await b.kinds.exclusive.extendMany([claimFor(theirs.finalKey, { leaseMs: 120_000 })])).toEqual([
        { status: 'lost' },
      ]);
      const info = await holderOf(b, theirs.finalKey);
      expect(info!.owner).toBe(theirs.owner);
      expect(info!.remainingMs).toBeLessThanOrEqual(LONG_LEASE_MS);
    });

    it('keeps a hold alive past its first lease', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const claim = claimFor(newKey(), { leaseMs: 2_000 });
      await a.kinds.exclusive.acquire(claim);
      expectHeld(
        (await a.kinds.exclusive.extendMany([{ ...claim, leaseMs: LONG_LEASE_MS }]))[0],
        LONG_LEASE_MS,
      );
      await context.harness.pass(2_000);
      expect(await holderOf(b, claim.finalKey)).toMatchObject({ owner: claim.owner });
    });

    it('gives no new fencing token and keeps the count', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey());
      await store.kinds.exclusive.acquire(claim);
      const replies = await store.kinds.exclusive.extendMany([claim, claim]);
      expect(replies).toMatchObject([{ status: 'held' }, { status: 'held' }]);
      for (const reply of replies) expect(reply).not.toHaveProperty('token');
      expect((await holderOf(store, claim.finalKey))!.count).toBe(1);
    });

    it('answers for each claim in its place, held and lost mixed', async () => {
      const store = await context.connect();
      const claims = Array.from({ length: 300 }, () => claimFor(newKey()));
      await Promise.all(
        claims.filter((_, i) => i % 3 !== 0).map((claim) => store.kinds.exclusive.acquire(claim)),
      );
      const replies = await store.kinds.exclusive.extendMany(claims);
      expect(replies.map(({ status }) => status)).toEqual(
        claims.map((_, i) => (i % 3 === 0 ? 'lost' : 'held')),
      );
    });

    it('of nothing answers nothing', async () => {
      expect(await (await context.connect()).kinds.exclusive.extendMany([])).toEqual([]);
    });
  });
}
