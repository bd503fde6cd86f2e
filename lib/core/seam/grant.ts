/** The store gave the hold to the claim's owner. */
export interface Grant {
  readonly status: 'granted';
  /** How long the hold is valid, in ms, counted from before the request was sent. May be less than was asked for. */
  readonly validForMs: number;
  /** Greater than every token given for this key before; undefined when none was asked for. */
  readonly token?: number;
  /** How many tokens were reserved, from `token` on. Default: as many as were asked for. */
  readonly tokens?: number;
  /** About how many stand in line behind it; undefined when the store keeps no line. */
  readonly waiting?: number;
  /** Aborts when the store learns by itself that the hold is gone; for stores whose holds end with a session. */
  readonly lost?: AbortSignal;
  /** The names of the stores that gave it, where several give a key together. */
  readonly grantedBy?: readonly string[];
  /** The name of the owner in the store, as `inspect` shows it. Default: that of the claim. */
  readonly owner?: string;
  /** The limit that was in force before this claim set its own; see `PermitClaim.of`. */
  readonly limitBefore?: number;
}
