import type { ExclusiveClaim, FairClaim, ReadClaim, WriteClaim } from '../../../core/seam/claim.js';
import type { Standing } from '../../../core/seam/reply.js';
import { left, type Timed } from './space-clock.js';

/** A claim of a lock with one owner. */
export type OneOwnerClaim = ExclusiveClaim | FairClaim;

/** A claim that can stand in line. */
type LinedClaim = OneOwnerClaim | ReadClaim | WriteClaim;

/** One owner that waits; its lease is that of its place. */
interface InLine<C> extends Timed {
  readonly claim: C;
  /** Nobody hears its messages: it is granted without one. */
  readonly deaf: boolean;
}

/** Whether it may be granted. One whose time is farther away than it asked for comes from another clock. */
const isAlive = (one: Timed, now: number): boolean => left(one, now) <= one.leaseMs;

/** The owners that wait for one key, in order: what the hash of a line is in Redis. */
export class Line<C extends LinedClaim> {
  private readonly places = new Map<string, InLine<C>>();

  get length(): number {
    return this.places.size;
  }

  has(owner: string): boolean {
    return this.places.has(owner);
  }

  get owners(): string[] {
    return [...this.places.keys()];
  }

  add(claim: C, now: number, deaf: boolean): void {
    this.places.set(claim.owner, { claim, since: now, leaseMs: claim.place?.aliveMs ?? 0, deaf });
  }

  /** A place that is there lives longer. Never makes one. */
  keep({ owner, place }: C, now: number, deaf: boolean): void {
    const one = this.places.get(owner);
    if (one && place) this.places.set(owner, { ...one, since: now, leaseMs: place.aliveMs, deaf });
  }

  remove(owner: string): boolean {
    return this.places.delete(owner);
  }

  /** Removes those that nobody has kept. */
  removeDead(now: number): void {
    for (const [owner, one] of this.places) if (left(one, now) <= 0) this.places.delete(owner);
  }

  /** Those that may be granted, in order. */
  *alive(now: number): Generator<InLine<C>> {
    for (const one of this.places.values()) if (isAlive(one, now)) yield one;
  }

  /** For how long those before an owner may stand there that are meant, at most, in ms; 0 when there are none. */
  waitMs(owner: string, now: number, isMeant: (before: C) => boolean): number {
    let waitMs = 0;
    for (const one of this.places.values()) {
      // Also where its own time comes from another clock: who stands behind it is not before it.
      if (one.claim.owner === owner) break;
      if (isAlive(one, now) && isMeant(one.claim)) waitMs = Math.max(waitMs, left(one, now));
    }
    return waitMs;
  }

  /** How an owner stands, when this is known of the hold in the way. */
  standingOf(owner: string, hold: Omit<Standing, 'position'>): Standing {
    return { position: Math.max(0, this.owners.indexOf(owner)), ...hold };
  }
}
