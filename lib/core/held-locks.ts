import type { LockKind } from './kinds/kinds.js';
import type { Hold } from './lease/hold.js';

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
