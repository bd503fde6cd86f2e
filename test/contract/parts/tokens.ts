import { describe, expect, it } from 'vitest';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import { ALIVE_MS, PROVISIONAL_LEASE_MS, waitingProcesses } from '../../support/stores/waiter.js';
import {
  claimFor,
  expectGranted,
  newKey,
  takeToken,
  type ContractContext,
} from '../../support/stores/harness.js';

/** Fencing tokens. */
export function describeTokens(context: ContractContext): void {
  describe('fencing tokens', () => {
    it('grow with every grant: by release, expiry, forceUnlock, re-arming, and from process to process', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const tokens: number[] = [];

      const first = claimFor(key);
      tokens.push(await takeToken(a, first));
      await a.kinds.exclusive.release(first);

      const second = claimFor(key);
      tokens.push(await takeToken(b, second), await takeToken(b, second), await takeToken(b, second));
      await a.forceUnlock(key);

      tokens.push(await takeToken(a, claimFor(key, { leaseMs: 40 })));
      await context.harness.pass(40);
      tokens.push(await takeToken(b, claimFor(key)));

      expect(tokens).toEqual([...new Set(tokens)].sort((x, y) => x - y));
      expect(tokens.every((token) => Number.isSafeInteger(token) && token > 0)).toBe(true);
    });

    it('a block of n reserves n: the next token is greater than the last of the block', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      // Blocks so large that the clock cannot pass them while the test runs.
      for (const block of [1_000_000_000, 1, 250_000_000]) {
        const claim = claimFor(key, { tokens: block });
        const first = await takeToken(a, claim);
        await a.kinds.exclusive.release(claim);
        const next = claimFor(key);
        expect(await takeToken(b, next)).toBeGreaterThan(first + block - 1);
        await b.kinds.exclusive.release(next);
      }
    });

    it('re-arming an own hold does not give a token out of the block before', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey(), { tokens: 1_000_000_000 });
      const first = await takeToken(store, claim);
      expect(await takeToken(store, claim)).toBeGreaterThan(first + 999_999_999);
    });

    it('a claim that wants none gets none', async () => {
      const store = await context.connect();
      const claim = claimFor(newKey(), { tokens: 0 });
      const reply = await store.kinds.exclusive.acquire(claim);
      expectGranted(reply);
      expect(reply.token).toBeUndefined();
      const again = await store.kinds.exclusive.acquire(claim);
      expectGranted(again);
      expect(again.token).toBeUndefined();
    });

    it('a grant without a token in between does not set the series back', async () => {
      const store = await context.connect();
      const key = newKey();
      const [before, without, after] = [claimFor(key), claimFor(key, { tokens: 0 }), claimFor(key)];
      const first = await takeToken(store, before);
      await store.kinds.exclusive.release(before);
      await store.kinds.exclusive.acquire(without);
      await store.kinds.exclusive.release(without);
      expect(await takeToken(store, after)).toBeGreaterThan(first);
    });
  });

  if (!context.hasCounters) return;
  describe('fencing tokens of a counter of the key', () => {
    const counted = (key: string, overrides: Partial<ExclusiveClaim> = {}): ExclusiveClaim =>
      claimFor(key, { perKeyCounter: true, ...overrides });

    it('begin with 1, and go on by release, expiry, forceUnlock, re-arming, and from process to process', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const tokens: number[] = [];

      const first = counted(key);
      tokens.push(await takeToken(a, first));
      await a.kinds.exclusive.release(first);

      const second = counted(key);
      tokens.push(await takeToken(b, second), await takeToken(b, second));
      await a.forceUnlock(key);

      tokens.push(await takeToken(a, counted(key, { leaseMs: 40 })));
      await context.harness.pass(40);
      tokens.push(await takeToken(b, counted(key)));

      expect(tokens).toEqual([1, 2, 3, 4, 5]);
    });

    it('are of each key for itself', async () => {
      const store = await context.connect();
      for (const key of [newKey(), newKey('{a}b')]) {
        const claim = counted(key);
        expect(await takeToken(store, claim)).toBe(1);
        await store.kinds.exclusive.release(claim);
      }
    });

    it('a block of n reserves n tokens, and unused ones are not given again', async () => {
      const [a, b] = [await context.connect(), await context.connect()];
      const key = newKey();
      const claim = counted(key, { tokens: 64 });
      expect(await takeToken(a, claim)).toBe(1);
      await a.kinds.exclusive.release(claim);
      const next = counted(key);
      expect(await takeToken(b, next)).toBe(65);
    });

    it('a grant that wants none leaves them as they are', async () => {
      const store = await context.connect();
      const key = newKey();
      for (const [tokens, token] of [
        [1, 1],
        [0, undefined],
        [1, 2],
      ]) {
        const claim = counted(key, { tokens });
        const reply = await store.kinds.exclusive.acquire(claim);
        expectGranted(reply);
        expect(reply.token).toBe(token);
        await store.kinds.exclusive.release(claim);
      }
    });

    if (!context.hasWaitQueue) return;

    it('come with a grant to a queued claim, in the requested number, from any releasing owner', async () => {
      const [a, b, c] = await waitingProcesses(context, 3);
      const key = newKey();
      // The previous holder takes no token, or one of the other series, and so does the caller that ends its hold.
      for (const [round, tokens] of [0, 1].entries()) {
        const holder = await a!.take(key, { tokens });
        const entryTerms = { aliveMs: ALIVE_MS, provisionalLeaseMs: PROVISIONAL_LEASE_MS, tokens: 5 };
        const waiter = await b!.enqueue(key, { perKeyCounter: true, entryTerms });
        const last = await c!.enqueue(key, { perKeyCounter: true });
        await a!.store.kinds.exclusive.release(holder);
        const first = 1 + 6 * round;
        if ((await waiter.grant()) === 'granted') {
          expect(waiter.notified).toMatchObject([{ token: first, tokens: 5 }]);
        }
        await waiter.release();
        if ((await last.grant()) === 'granted') {
          expect(last.notified).toMatchObject([{ token: first + 5, tokens: 1 }]);
        }
        await last.release();
      }
    });

    it('go on where one who was granted in line asks for its hold', async () => {
      const [a, b] = await waitingProcesses(context, 2);
      const key = newKey();
      const holder = await a!.take(key, { perKeyCounter: true });
      const waiter = await b!.enqueue(key, { perKeyCounter: true });
      await a!.store.kinds.exclusive.release(holder);
      await waiter.grant();
      const rearmed = { ...waiter.claim, waits: false, reacquires: true };
      expect(await takeToken(b!.store, rearmed)).toBe(3);
    });
  });
}
