import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { RequestedLeases } from '../../../lib/stores/redis/quorum/requested-leases.js';

const DAY_MS = 24 * 3_600_000;

/** Leases, each asked for so long after the one before. */
const requests = fc.array(
  fc.record({
    afterMs: fc.oneof(fc.integer({ min: 0, max: 100 }), fc.integer({ min: 0, max: 100_000 })),
    leaseMs: fc.oneof(fc.integer({ min: 1, max: 1_000 }), fc.integer({ min: 1, max: DAY_MS })),
  }),
  { maxLength: 60 },
);

describe('the leases that were asked for', () => {
  it('keep a server out until each one that it may have forgotten is over, and hardly for longer than the longest', () => {
    fc.assert(
      fc.property(requests, fc.nat(), (all, seed) => {
        const leases = new RequestedLeases();
        let now = 0;
        const requested = all.map(({ afterMs, leaseMs }) => {
          now += afterMs;
          leases.add(leaseMs, now);
          return { at: now, leaseMs };
        });
        const startedAt = seed % (now + 1);
        const staysOutUntil = startedAt + leases.longestAt(startedAt);
        const before = requested.filter(({ at }) => at <= startedAt);
        for (const { at, leaseMs } of before) {
          if (at + leaseMs > now) expect(staysOutUntil).toBeGreaterThanOrEqual(at + leaseMs);
        }
        // Of leases that were asked for soon after each other, the later ones count with the first.
        const soon = requested.filter(({ at, leaseMs }) => at - leaseMs / 32 <= startedAt);
        expect(staysOutUntil - startedAt).toBeLessThanOrEqual(
          Math.max(0, ...soon.map(({ leaseMs }) => leaseMs)),
        );
      }),
      { numRuns: 2_000 },
    );
  });

  it('are few, also where each ends later than the one before', () => {
    const leases = new RequestedLeases();
    for (let now = 0; now < 1_000_000; now += 1) leases.add(DAY_MS + now, now);
    expect(leases.size).toBeLessThan(50);
    const short = new RequestedLeases();
    for (let now = 0; now < 1_000_000; now += 1) short.add(30_000, now);
    expect(short.size).toBeLessThan(500);
  });
});
