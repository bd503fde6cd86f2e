import type { Session } from './lease-model.js';

/** Reply: the store gave the hold to the claim's owner. */
export interface Grant {
  readonly status: 'granted';
  /** How long the hold is valid, in ms from `since`. It may be less than requested. Of a session: its time-out. */
  readonly validForMs: number;
  /**
   * When the hold was granted at the latest, on the runtime's clock. Default: when the request was sent; for a grant to a
   * queued claim, when the last request was sent that got the reply "queued".
   */
  readonly since?: number;
  /** The session that the hold belongs to, for a store with sessions. */
  readonly session?: Session;
  /** First fencing token. It is greater than every earlier token of this key; undefined if none was requested. */
  readonly token?: number;
  /** Number of reserved tokens, from `token` on. Default: 1. */
  readonly tokens?: number;
  /** Approximate number of waiters in the wait queue; undefined for a store without one. */
  readonly waiting?: number;
  /** Signal that aborts when the store itself detects that this hold is gone, and not its whole session. */
  readonly lost?: AbortSignal;
  /** Names of the nodes that granted the hold, if several decide together. */
  readonly grantedBy?: readonly string[];
  /** Name of the owner in the store, as `inspect` shows it. Default: the claim's owner. */
  readonly owner?: string;
  /** Limit that was in force before this claim set its own; see `PermitClaim.of`. */
  readonly limitBefore?: number;
}
