/** Something in a history that must not be. */
export interface Violation {
  /** Which promise was broken. */
  readonly rule: string;
  /** When, on the clock of the history. */
  readonly at: number;
  readonly text: string;
}
