import type { ExclusiveClaim, FairClaim, ReadClaim, WriteClaim } from '../../../core/seam/claim.js';
import type { QueuePosition } from '../../../core/seam/reply.js';

/** A claim of a lock with a single holder. */
export type OneOwnerClaim = ExclusiveClaim | FairClaim;

type QueuedClaim = OneOwnerClaim | ReadClaim | WriteClaim;

/**
 * The wait queue of one key, in order, like the hash of a wait queue in Redis. Its entries do not expire: in memory no
 * process dies alone.
 */
export class WaitQueue<C extends QueuedClaim> {
  private readonly entries = new Map<string, C>();

  get length(): number {
    return this.entries.size;
  }

  has(owner: string): boolean {
    return this.entries.has(owner);
  }

  get owners(): string[] {
    return [...this.entries.keys()];
  }

  get claims(): Iterable<C> {
    return this.entries.values();
  }

  add(claim: C): void {
    this.entries.set(claim.owner, claim);
  }

  remove(owner: string): boolean {
    return this.entries.delete(owner);
  }

  /** Returns whether `isMeant` selects an entry before an owner's. An owner without an entry is behind all entries. */
  isBehind(owner: string, isMeant: (before: C) => boolean): boolean {
    for (const claim of this.entries.values()) {
      if (claim.owner === owner) return false;
      if (isMeant(claim)) return true;
    }
    return false;
  }

  /** Returns the queue position of an owner, together with the reply about the blocking hold. */
  positionOf(owner: string, hold: Omit<QueuePosition, 'position'>): QueuePosition {
    return { position: Math.max(0, this.owners.indexOf(owner)), ...hold };
  }
}
