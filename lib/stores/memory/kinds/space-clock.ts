import type { HeldAs } from '../../../core/seam/reply.js';

/** Clocks of a space of memory. */
export interface SpaceClock {
  /** In ms; never goes back. */
  now(): number;
  /** The wall clock in µs. */
  wallClockMicros(): number;
}

/** Something that a process has until a moment. */
export interface Timed {
  readonly since: number;
  readonly leaseMs: number;
}

/** What one kind of lock has in the way of another. */
export interface InTheWay extends Timed {
  readonly kind: HeldAs;
}

/** What has expired is swept when a map has grown to this size, or to twice what the last sweep left. */
export const FIRST_SWEEP_AT = 64;

/** How much of it is left. Not "end minus now": rounding in that sum can make what is left more than the lease. */
export const left = ({ since, leaseMs }: Timed, now: number): number => leaseMs - (now - since);
