import type { ExclusiveClaim, FairClaim, ReadClaim, WriteClaim } from '../../../core/seam/claim.js';
import type { QueuePosition } from '../../../core/seam/reply.js';
import { left, type Timed } from './space-clock.js';

/** A claim of a lock with a single holder. */
export type OneOwnerClaim = ExclusiveClaim | FairClaim;

type QueuedClaim = OneOwnerClaim | ReadClaim | WriteClaim;

/** A waiting owner; the lease is the time to live of its queue entry. */
interface InQueue<C> extends Timed {
  readonly claim: C;
  /** Its process is not subscribed: it gets its grant without a notification. */
  readonly notSubscribed: boolean;
}

/** Returns whether an entry may get a grant. An entry with more time left than it asked for is of another clock. */
const isAlive = (one: Timed, now: number): boolean => left(one, now) <= one.leaseMs;

/** The wait queue of one key, in order, like the hash of a wait queue in Redis. */
export class WaitQueue<C extends QueuedClaim> {
  private readonly entries = new Map<string, InQueue<C>>();

  get length(): number {
    return this.entries.size;
  }

  has(owner: string): boolean {
    return this.entries.has(owner);
  }

  get owners(): string[] {
    return [...this.entries.keys()];
  }

  add(claim: C, now: number, notSubscribed: boolean): void {
    this.entries.set(claim.owner, {
      claim,
      since: now,
      leaseMs: claim.entryTerms?.aliveMs ?? 0,
      notSubscribed,
    });
  }

  /** Refreshes an existing entry. Never makes one. */
  keep({ owner, entryTerms }: C, now: number, notSubscribed: boolean): void {
    const one = this.entries.get(owner);
    if (one && entryTerms)
      this.entries.set(owner, { ...one, since: now, leaseMs: entryTerms.aliveMs, notSubscribed });
  }

  remove(owner: string): boolean {
    return this.entries.delete(owner);
  }

  /** Removes the entries that were not refreshed in time. */
  removeDead(now: number): void {
    for (const [owner, one] of this.entries) if (left(one, now) <= 0) this.entries.delete(owner);
  }

  /** Yields the entries that may get a grant, in order. */
  *alive(now: number): Generator<InQueue<C>> {
    for (const one of this.entries.values()) if (isAlive(one, now)) yield one;
  }

  /** Returns how long the entries before an owner that `isMeant` selects may stay at most, in ms; 0 without any. */
  waitMs(owner: string, now: number, isMeant: (before: C) => boolean): number {
    let waitMs = 0;
    for (const one of this.entries.values()) {
      // Also when the time of the owner's own entry comes from another clock: later entries are not before it.
      if (one.claim.owner === owner) break;
      if (isAlive(one, now) && isMeant(one.claim)) waitMs = Math.max(waitMs, left(one, now));
    }
    return waitMs;
  }

  /** Returns the queue position of an owner, together with the reply about the blocking hold. */
  positionOf(owner: string, hold: Omit<QueuePosition, 'position'>): QueuePosition {
    return { position: Math.max(0, this.owners.indexOf(owner)), ...hold };
  }
}
