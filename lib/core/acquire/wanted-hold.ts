import { kindOf } from '../kinds/kinds.js';
import type { Hold } from '../lease/hold.js';
import type { LockCall } from '../settings/lock-call.js';

/** Hold that a caller wants. */
export interface WantedHold {
  readonly finalKey: string;
  readonly call: LockCall;
  /** Length of a fixed lease, in ms; undefined: the watchdog renews. */
  readonly leaseMs: number | undefined;
  /** Lease that the watchdog renews, in ms; undefined for a fixed lease. */
  readonly watchdogMs: number | undefined;
}

/** Returns whether a call may share a hold: its lease is renewed, and has neither a minimum nor a maximum time. */
export const mayShare = ({ kind, leaseMs, holdAtLeastMs, maxHoldMs }: LockCall): boolean =>
  kindOf(kind).shared && leaseMs === undefined && holdAtLeastMs === 0 && maxHoldMs === Infinity;

/** What a contention needs of the service instance. */
export interface HoldTerms {
  /** Handles a loss of the hold. */
  readonly whenLost: (hold: Hold) => void;
  /** Called when the store had another limit than the claim's, which is in force now. */
  limitChanged(key: string, before: number, now: number | undefined): void;
}
