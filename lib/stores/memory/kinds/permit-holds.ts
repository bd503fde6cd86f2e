import { NO_NUMBER_OF_PERMITS } from '../../../core/kinds/permit.kind.js';
import type { PermitClaim } from '../../../core/seam/claim.js';
import type { AcquireReply, ExtendReply, KeyState, PermitState } from '../../../core/seam/reply.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import { FIRST_SWEEP_AT, left, type SpaceClock, type Timed } from './space-clock.js';

/** The permits of one key: their limit, and the acquired ones by owner. */
interface Permits {
  limit: number;
  /** End of the longest lease so far. Until then the limit is remembered, like the counter in Redis. */
  keptUntil: number;
  readonly taken: Map<string, Timed>;
}

/** The permits of a memory space, like counters, sorted sets and their scripts in Redis. */
export class PermitHolds {
  private readonly keys = new Map<string, Permits>();
  private sweepAt = FIRST_SWEEP_AT;

  constructor(
    private readonly clock: SpaceClock,
    private readonly notify: (finalKey: string) => void,
  ) {}

  /** Number of acquired permits of all keys. */
  get size(): number {
    this.sweep();
    let size = 0;
    for (const { taken } of this.keys.values()) size += taken.size;
    return size;
  }

  has(finalKey: string): boolean {
    return this.find(finalKey) !== undefined;
  }

  names(): Iterable<string> {
    return this.keys.keys();
  }

  /** See `KindStore.acquire`. */
  acquire({ finalKey, owner, leaseMs, of }: PermitClaim): AcquireReply {
    const now = this.clock.now();
    if (this.keys.size >= this.sweepAt) this.sweep();
    const permits = this.find(finalKey, now) ?? this.begin(of);
    const { limit: before, taken } = permits;
    permits.limit = of ?? before;
    const changed = permits.limit === before ? {} : { limitBefore: before };
    const own = taken.get(owner);
    if (own || taken.size < permits.limit) {
      taken.set(owner, { since: now, leaseMs });
      permits.keptUntil = Math.max(permits.keptUntil, now + leaseMs);
      this.keys.set(finalKey, permits);
      const more = permits.limit > before && taken.size < permits.limit;
      const sooner = own !== undefined && left(own, now) > leaseMs;
      if (more || sooner) this.notify(finalKey);
      return { status: 'granted', validForMs: leaseMs, ...changed };
    }
    let next = Infinity;
    for (const one of taken.values()) next = Math.min(next, left(one, now));
    // The caller may wait for the length of its lease: remember the limit for that long.
    permits.keptUntil = Math.max(permits.keptUntil, now + leaseMs);
    return { status: 'taken', retryInMs: Math.ceil(next), ...changed };
  }

  /** See `KindStore.extendMany`; for one claim. */
  extend({ finalKey, owner, leaseMs }: PermitClaim): ExtendReply {
    const now = this.clock.now();
    const permits = this.find(finalKey, now);
    const own = permits?.taken.get(owner);
    if (!permits || !own) return { status: 'lost' };
    const remainingMs = left(own, now);
    if (remainingMs >= leaseMs) return { status: 'held', validForMs: remainingMs };
    permits.taken.set(owner, { since: now, leaseMs });
    permits.keptUntil = Math.max(permits.keptUntil, now + leaseMs);
    return { status: 'held', validForMs: leaseMs };
  }

  /** See `KindStore.release`. Returns whether the owner had one. */
  release({ finalKey, owner }: PermitClaim, keepForMs?: number): boolean {
    const now = this.clock.now();
    const permits = this.find(finalKey, now);
    if (!permits?.taken.has(owner)) return false;
    if (keepForMs === undefined) permits.taken.delete(owner);
    else {
      permits.taken.set(owner, { since: now, leaseMs: keepForMs });
      permits.keptUntil = Math.max(permits.keptUntil, now + keepForMs);
    }
    this.notify(finalKey);
    return true;
  }

  /** See `LockStore.inspect`. */
  inspect(finalKey: string): KeyState | null {
    const holders = this.state(finalKey)?.holders ?? [];
    return holders.length === 0 ? null : { kind: 'permit', holders, waiting: [] };
  }

  /** See `LockStore.permits`. */
  state(finalKey: string): PermitState | null {
    const now = this.clock.now();
    const permits = this.find(finalKey, now);
    if (!permits) return null;
    const { limit, taken } = permits;
    const holders = [...taken].slice(0, 100).map(([owner, own]) => ({
      owner,
      count: 1,
      remainingMs: left(own, now),
    }));
    return { permits: limit, free: Math.max(0, limit - taken.size), holders };
  }

  /** See `LockStore.forceUnlock`. */
  forceUnlock(finalKey: string): boolean {
    const permits = this.find(finalKey);
    if (!permits) return false;
    if (permits.taken.size === 0) {
      // A key without acquired permits can be used for something else.
      this.keys.delete(finalKey);
      return false;
    }
    permits.taken.clear();
    this.notify(finalKey);
    return true;
  }

  private begin(of: number | undefined): Permits {
    if (of !== undefined) return { limit: of, keptUntil: 0, taken: new Map() };
    throw new StoreFailure(NO_NUMBER_OF_PERMITS, 'not-executed', { keyOnly: true, claimOnly: true });
  }

  private sweep(): void {
    for (const finalKey of [...this.keys.keys()]) this.find(finalKey);
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.keys.size * 2);
  }

  private find(finalKey: string, now = this.clock.now()): Permits | undefined {
    const permits = this.keys.get(finalKey);
    if (!permits) return undefined;
    for (const [owner, own] of permits.taken) if (left(own, now) <= 0) permits.taken.delete(owner);
    if (permits.taken.size > 0 || permits.keptUntil > now) return permits;
    this.keys.delete(finalKey);
    return undefined;
  }
}
