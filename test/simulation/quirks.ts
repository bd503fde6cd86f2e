/** Deliberate mistakes in what the simulation has instead of the Redis store's own code. All off in earnest. */
export interface Quirks {
  /** Nobody looks again once the subscription is live. */
  readonly silentWhenLive?: boolean;
  /** Nobody looks again once the subscription is live again after an interruption. */
  readonly silentWhenLiveAgain?: boolean;
  /** "Not there" counts as certain on whatever connection it was said. */
  readonly trustsEveryUndo?: boolean;
  /** Leases are measured with the wall clock. */
  readonly wallClock?: boolean;
}
