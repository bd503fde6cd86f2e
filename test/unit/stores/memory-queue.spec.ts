import { describe, expect, it } from 'vitest';
import type { WriteClaim } from '../../../lib/core/seam/claim.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';

const claimOf = (owner: string): WriteClaim => ({
  kind: 'write',
  finalKey: 'stock',
  owner,
  leaseMs: 1_000,
  tokens: 0,
  waits: true,
  entryTerms: { aliveMs: 5_000, provisionalLeaseMs: 1_000, tokens: 0 },
});

describe('the line of a read-write lock in memory', () => {
  it('lets the first one in at every moment, also where sums of fractions come out rounded', () => {
    let now = 0;
    const holds = new MemorySpace({ now: () => now }).of('write');
    for (let i = 0; i < 1_000; i++) {
      now = 3_500 + i / 7;
      const [holder, first, second] = ['holder', 'first', 'second'].map((name) => claimOf(`${name} ${i}`));
      expect(holds.acquire(holder!).status).toBe('granted');
      expect(holds.acquire(first!).status).toBe('queued');
      expect(holds.acquire(second!).status).toBe('queued');
      holds.release(holder!);
      expect(holds.keep!(second!).status, `the second one at ${now}`).toBe('queued');
      expect(holds.keep!(first!).status, `the first one at ${now}`).toBe('held');
      holds.release(first!);
      holds.release(second!);
    }
  });
});
