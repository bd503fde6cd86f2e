/** Reply: the store gave the hold to the claim's owner. */
export interface Grant {
  readonly status: 'granted';
  /** How long the hold is valid, in ms from before the request was sent. It may be less than requested. */
  readonly validForMs: number;
  /** First fencing token. It is greater than every earlier token of this key; undefined if none was requested. */
  readonly token?: number;
  /** Number of reserved tokens, from `token` on. Default: as many as requested. */
  readonly tokens?: number;
  /** Approximate number of waiters in the wait queue; undefined for a store without one. */
  readonly waiting?: number;
  /**
   * Signal that aborts when the store itself detects that the hold is gone, for stores whose holds end with a session.
   */
  readonly lost?: AbortSignal;
  /** Names of the nodes that granted the hold, if several decide together. */
  readonly grantedBy?: readonly string[];
  /** Name of the owner in the store, as `inspect` shows it. Default: the claim's owner. */
  readonly owner?: string;
  /** Limit that was in force before this claim set its own; see `PermitClaim.of`. */
  readonly limitBefore?: number;
}
