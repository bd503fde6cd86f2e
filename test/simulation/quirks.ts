/** Deliberate mistakes in what the simulation has instead of a machine. All off in earnest. */
export interface Quirks {
  /** Leases are measured with the wall clock. */
  readonly wallClock?: boolean;
}
