import type { LockKind } from '../../../core/kinds/kinds.js';

export interface SpaceClock {
  /** Returns the time in ms; never goes back. */
  now(): number;
  /** Returns the wall clock in µs. */
  wallClockMicros(): number;
}

/** Something with a lease. */
export interface Timed {
  readonly since: number;
  readonly leaseMs: number;
}

/** A hold that blocks another kind of lock. */
export interface Blocker extends Timed {
  readonly kind: LockKind;
}

/** Size at which expired entries of a map are swept for the first time. Later it is twice what the last sweep left. */
export const FIRST_SWEEP_AT = 64;

/** Returns what remains of a lease, in ms. Not "end minus now": rounding of that sum can give more than the lease. */
export const left = ({ since, leaseMs }: Timed, now: number): number => leaseMs - (now - since);
