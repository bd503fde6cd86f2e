/** Deliberate mistakes in what the simulation has instead of the Redis store's own code. All off in earnest. */
export interface Quirks {
  /** Nobody looks again once the subscription is live. */
  readonly silentWhenLive?: boolean;
  /** "Not there" counts as certain on whatever connection it was said. */
  readonly trustsEveryUndo?: boolean;
  /** Grants are believed from whatever server they come. */
  readonly believesEveryServer?: boolean;
  /** Leases are measured with the wall clock. */
  readonly wallClock?: boolean;
}
