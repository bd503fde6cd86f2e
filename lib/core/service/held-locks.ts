import type { LockKind } from '../kinds/kinds.js';
import type { Hold } from '../lease/hold.js';
import type { Lease } from '../lease/lease.js';

/** One lock or permit that this process holds. */
export interface HeldLock {
  /** Key as the caller wrote it, without the prefix. */
  readonly key: string;
  /** The `mode` of a lock (`exclusive`, `fair`, `read`, `write`), or `permit`. */
  readonly kind: LockKind;
  /** Label of the call that has it; of a hold that several readers of this process share, of one of them. */
  readonly label: string;
  /** Undefined with `fencing: false`, and for read locks and permits, which have no token. */
  readonly fencingToken: number | undefined;
  /** How long its current holder has had it, in whole ms. */
  readonly heldMs: number;
  /** How long it is certainly still valid, in whole ms, rounded down. A renewal raises it again. */
  readonly remainingMs: number;
}

/** Lease of one service, for a call that acquires locks of several services. */
export interface OneOfSeveral {
  readonly lease: Lease;
  /**
   * Called when the locks of the other services are held, too. Starts its fixed lease and its minimum time, and emits
   * `acquired`.
   */
  readonly allHeld: () => Promise<void>;
}

/** Counters for leak checks. All are zero when the service holds nothing and no caller waits. */
export interface LockUsage {
  /** Number of callers that have a lease (including nested ones), or wait for a lock, a semaphore or a latch. */
  readonly leases: number;
  /** Number of keys that callers hold or wait for, including semaphores and latches. */
  readonly keys: number;
  /** Number of locks and permits that are held in the store, as `held()` lists them. */
  readonly holds: number;
  /** Number of pending releases: holds without an owner that are being released in the background. */
  readonly undoing: number;
}

/** Returns holds as `held()` shows them. */
export const heldLocks = (holds: readonly Hold[], now: number): HeldLock[] =>
  holds.map((hold) => ({
    key: hold.key,
    kind: hold.claim.kind,
    label: hold.label,
    fencingToken: hold.token,
    heldMs: Math.round(now - hold.grantedAt),
    remainingMs: Math.max(0, Math.floor(hold.validUntil - now)),
  }));
