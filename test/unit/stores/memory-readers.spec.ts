import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import type { ReadClaim, WriteClaim } from '../../../lib/core/seam/claim.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';

/** Counts each look at a lease. */
class Visits {
  count = 0;

  /** Returns a duration in ms that counts how often it is used in a calculation. */
  lease(ms: number): number {
    const counted = { valueOf: () => ((this.count += 1), ms) };
    return counted as unknown as number;
  }

  of(act: () => unknown): number {
    this.count = 0;
    act();
    return this.count;
  }
}

const readerOf = (owner: string, leaseMs: number): ReadClaim => ({
  kind: 'read',
  finalKey: 'stock',
  owner,
  leaseMs,
  tokens: 0,
  waits: false,
});
const writer: WriteClaim = { ...readerOf('writer', 1_000), kind: 'write' };

const setUp = () => {
  const clock = { now: 0 };
  const space = new MemorySpace({ now: () => clock.now });
  return { clock, reading: space.of('read'), writing: space.of('write'), space };
};

describe('the readers of a key in memory', () => {
  it.each<[string, (one: ReturnType<typeof setUp>, claim: ReadClaim) => unknown]>([
    ['a release', ({ reading }, claim) => reading.release(claim)],
    ['a release of a key that is left for a while', ({ reading }, claim) => reading.release(claim, 50)],
    ['a renewal', ({ reading }, claim) => reading.extend({ ...claim, leaseMs: 100_000 })],
    ['an acquire', ({ reading }) => reading.acquire(readerOf('one more', 70_000))],
    ['a refused writer', ({ writing }) => writing.acquire(writer)],
  ])('are not all visited by %s', (_what, act) => {
    const visitsAmong = (count: number): number => {
      const visits = new Visits();
      const one = setUp();
      const claims = Array.from({ length: count }, (_, i) =>
        readerOf(`reader ${i}`, visits.lease(1_000 + ((i * 7) % count))),
      );
      for (const claim of claims) one.reading.acquire(claim);
      return visits.of(() => act(one, claims[3]!));
    };
    const few = visitsAmong(10);
    // A heap: each of its levels may be looked at, and a thousand readers have 10 of them.
    for (const many of [1_000, 10_000]) expect(visitsAmong(many), `${many} readers`).toBeLessThan(few + 100);
  });

  it('keep a writer out for as long as the longest of them has', () => {
    const step = fc.oneof(
      fc.record({
        do: fc.constant('acquire' as const),
        owner: fc.nat(9),
        leaseMs: fc.integer({ min: 1, max: 50 }),
      }),
      fc.record({
        do: fc.constant('extend' as const),
        owner: fc.nat(9),
        leaseMs: fc.integer({ min: 1, max: 50 }),
      }),
      fc.record({ do: fc.constant('release' as const), owner: fc.nat(9) }),
      fc.record({ do: fc.constant('pass' as const), ms: fc.integer({ min: 1, max: 20 }) }),
    );
    fc.assert(
      fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
        const { clock, reading, writing } = setUp();
        const ends = new Map<number, number>();
        for (const one of steps) {
          if (one.do === 'pass') clock.now += one.ms;
          else if (one.do === 'release') {
            const isHeld = (ends.get(one.owner) ?? 0) > clock.now;
            expect(reading.release(readerOf(`${one.owner}`, 0))).toBe(isHeld);
            ends.delete(one.owner);
          } else {
            const end = ends.get(one.owner) ?? 0;
            const isHeld = end > clock.now;
            const claim = readerOf(`${one.owner}`, one.leaseMs);
            if (one.do === 'acquire') reading.acquire(claim);
            else expect(reading.extend(claim).status).toBe(isHeld ? 'held' : 'lost');
            if (one.do === 'acquire') ends.set(one.owner, clock.now + one.leaseMs);
            else if (isHeld) ends.set(one.owner, Math.max(end, clock.now + one.leaseMs));
          }
          const alive = [...ends.values()].filter((end) => end > clock.now);
          const holders = reading.inspect('stock')?.holders ?? [];
          expect(holders).toHaveLength(alive.length);
          expect(reading.size).toBe(alive.length);
          const reply = writing.acquire(writer);
          if (alive.length === 0) {
            expect(reply.status).toBe('granted');
            writing.release(writer);
          } else {
            expect(reply).toMatchObject({ status: 'taken', retryInMs: Math.max(...alive) - clock.now });
          }
        }
      }),
      { numRuns: 300 },
    );
  });

  it('that have expired are forgotten although others stay', () => {
    const { clock, reading, space } = setUp();
    reading.acquire(readerOf('stays', 1_000_000));
    for (let i = 0; i < 10_000; i += 1) {
      clock.now += 1;
      reading.acquire(readerOf(`gone ${i}`, 1));
    }
    expect(space.size.holds).toBe(2);
  });
});
