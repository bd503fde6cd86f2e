import { describe, expect, it } from 'vitest';
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
}
