/** What the core has to know about a kind of lock. What it does follows from these, not from the kind's name. */
export interface Kind {
  /** What a holder has, as messages call it. */
  readonly noun: string;
  /**
   * At most one owner at a time, so its holder stays at the head of its process's local queue until the hold has ended.
   * Of a kind with several owners the next caller comes to the head as soon as the one before has its hold.
   */
  readonly alone: boolean;
  /** A hold may pass from one local lease to the next within a turn, without asking the store. */
  readonly handedOver: boolean;
  /** A grant carries a fencing token. */
  readonly fenced: boolean;
  /** The kinds of holds into which a nested claim of this kind goes, instead of asking the store. */
  readonly entersInto: readonly string[];
  /** How owners are named: `counted`, the process's id and a number; `random`, 32 hexadecimal digits. */
  readonly owners: 'counted' | 'random';
}
