/** What callers of one side had of a contended lock. */
export interface Had {
  readonly served: number;
  /** The longest time without it, in ms. */
  readonly longestMs: number;
}

/** What a thread came to that went in, worked and left for a while. */
export interface Sections extends Had {
  /** When each section began and ended. */
  readonly times: readonly (readonly [beganAt: number, endedAt: number])[];
}
