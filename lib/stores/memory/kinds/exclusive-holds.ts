import type { ExclusiveClaim } from '../../../core/seam/claim.js';
import type { AcquireReply, ExtendReply, KeyState } from '../../../core/seam/reply.js';
import { StoreFailure } from '../../../core/seam/store-failure.js';
import { FIRST_SWEEP_AT, left, type SpaceClock, type Timed } from './space-clock.js';

interface Hold extends Timed {
  readonly owner: string;
}

/** The exclusive holds of a space of memory: what the hashes and the scripts of the exclusive lock are in Redis. */
export class ExclusiveHolds {
  private readonly holds = new Map<string, Hold>();
  // One series for all keys: it grows for each of them, and needs no memory per key.
  private lastToken = 0;
  private sweepAt = FIRST_SWEEP_AT;

  constructor(
    private readonly clock: SpaceClock,
    private readonly notify: (finalKey: string) => void,
  ) {}

  get size(): number {
    this.sweep();
    return this.holds.size;
  }

  has(finalKey: string): boolean {
    return this.find(finalKey) !== undefined;
  }

  /** See `KindStore.acquire`. */
  acquire({ finalKey, owner, leaseMs, tokens, rearms }: ExclusiveClaim): AcquireReply {
    const now = this.clock.now();
    const hold = this.find(finalKey, now);
    // Rounded up: looking again a fraction of a millisecond early would find the hold still there.
    if (hold && hold.owner !== owner) return { status: 'taken', retryInMs: Math.ceil(left(hold, now)) };
    const token = tokens > 0 ? this.reserveTokens(tokens, finalKey) : undefined;
    if (!hold && this.holds.size >= this.sweepAt) this.sweep();
    this.holds.set(finalKey, { owner, since: now, leaseMs });
    if (rearms && hold && left(hold, now) > leaseMs) this.notify(finalKey);
    return { status: 'granted', validForMs: leaseMs, ...(token === undefined ? {} : { token }) };
  }

  /** See `KindStore.extendMany`; here for one claim. */
  extend({ finalKey, owner, leaseMs }: ExclusiveClaim): ExtendReply {
    const now = this.clock.now();
    const hold = this.find(finalKey, now);
    if (hold?.owner !== owner) return { status: 'lost' };
    const remainingMs = left(hold, now);
    if (remainingMs >= leaseMs) return { status: 'held', validForMs: remainingMs };
    this.holds.set(finalKey, { owner, since: now, leaseMs });
    return { status: 'held', validForMs: leaseMs };
  }

  /** See `KindStore.release`. True when the owner had it. */
  release({ finalKey, owner }: ExclusiveClaim, keepForMs?: number): boolean {
    const now = this.clock.now();
    if (this.find(finalKey, now)?.owner !== owner) return false;
    if (keepForMs === undefined) this.holds.delete(finalKey);
    else this.holds.set(finalKey, { owner, since: now, leaseMs: keepForMs });
    this.notify(finalKey);
    return true;
  }

  /** See `LockStore.inspect`. */
  inspect(finalKey: string): KeyState | null {
    const now = this.clock.now();
    const hold = this.find(finalKey, now);
    if (!hold) return null;
    const holder = { owner: hold.owner, count: 1, remainingMs: left(hold, now) };
    return { kind: 'exclusive', holders: [holder], waiting: [] };
  }

  /** See `LockStore.forceUnlock`. */
  forceUnlock(finalKey: string): boolean {
    if (!this.find(finalKey)) return false;
    this.holds.delete(finalKey);
    this.notify(finalKey);
    return true;
  }

  private find(finalKey: string, now = this.clock.now()): Hold | undefined {
    const hold = this.holds.get(finalKey);
    if (!hold || left(hold, now) > 0) return hold;
    this.holds.delete(finalKey);
    return undefined;
  }

  private reserveTokens(count: number, finalKey: string): number {
    const first = Math.max(this.lastToken + 1, Math.floor(this.clock.wallClockMicros()));
    // Without the brackets the sum could leave the exact integers and come back rounded.
    const last = first + (count - 1);
    if (!Number.isSafeInteger(last)) {
      throw new StoreFailure(
        `No fencing token can be given for '${finalKey}': ${String(last)} is not an exact integer. ` +
          'The wall clock of the memory store is far in the future, or does not answer a number.',
        'not-executed',
      );
    }
    this.lastToken = last;
    return first;
  }

  private sweep(): void {
    const now = this.clock.now();
    for (const [finalKey, hold] of this.holds) if (left(hold, now) <= 0) this.holds.delete(finalKey);
    this.sweepAt = Math.max(FIRST_SWEEP_AT, this.holds.size * 2);
  }
}
