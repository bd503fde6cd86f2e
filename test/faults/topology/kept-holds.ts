/** A hold that servers keep. */
export interface KeptHold {
  /** The final key. */
  readonly key: string;
  readonly owner: string;
}

/** Servers other than Redis that keep the locks, and can say which. */
export interface KeptHolds {
  readonly shape: string;
  /** Holds that have not ended. */
  holds(): Promise<readonly KeptHold[]>;
}
