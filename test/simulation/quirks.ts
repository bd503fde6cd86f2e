/** Deliberate mistakes of the simulated store, to show that the checker sees them. All off in earnest. */
export interface Quirks {
  /** A release ends whatever hold is there. */
  readonly releaseOfAnyOwner?: boolean;
  /** A renewal makes a hold that was lost anew. */
  readonly extendCreates?: boolean;
  /** A renewal sets the time to live, also to less. */
  readonly extendShortens?: boolean;
  /** Nobody is told when a hold is to end sooner than was said. */
  readonly silentWhenShortened?: boolean;
  /** Nobody looks again once the subscription is live. */
  readonly silentWhenLive?: boolean;
  /** Nobody looks again once the subscription is live again after an interruption. */
  readonly silentWhenLiveAgain?: boolean;
  /** "Not there" counts as certain on whatever connection it was said. */
  readonly trustsEveryUndo?: boolean;
  /** Tokens are the server's clock, without a look at the last one. */
  readonly tokensFromClockAlone?: boolean;
  /** Leases are measured with the wall clock. */
  readonly wallClock?: boolean;
}
