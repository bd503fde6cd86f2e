import { kindOf } from '../kinds/kinds.js';
import type { Hold } from '../lease/hold.js';
import type { Claim } from '../seam/claim.js';
import type { LockCall } from '../settings/lock-call.js';

/** The hold that a caller wants. */
export interface WantedHold {
  readonly finalKey: string;
  readonly call: LockCall;
  /** A fixed lease; undefined: the watchdog renews. */
  readonly leaseMs: number | undefined;
  /** The lease that the watchdog renews; undefined for a fixed lease. */
  readonly watchdogMs: number | undefined;
}

/** Whether a call may have a hold together with others: its lease is renewed, and it asks for no time beyond its work. */
export const mayShare = ({ kind, leaseMs, holdAtLeastMs }: LockCall): boolean =>
  kindOf(kind).shared && leaseMs === undefined && holdAtLeastMs === 0;

/** What the contention for a hold leaves to the service instance that wants it. */
export interface HoldTerms {
  /** A claim of a new owner. */
  claimFor(wanted: WantedHold): Claim;
  /** What to do when the hold turns out to be lost. */
  readonly whenLost: (hold: Hold) => void;
  /** The store had another limit than the claim's, and has the claim's now. */
  limitChanged(key: string, before: number, now: number | undefined): void;
}
