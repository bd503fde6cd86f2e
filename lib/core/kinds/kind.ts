/** What the core has to know about a kind of lock. What it does follows from these, not from the kind's name. */
export interface Kind {
  /** What a holder has, as messages call it. */
  readonly noun: string;
  /**
   * At most one owner at a time, so its holder stays at the head of its process's local queue until the hold has ended.
   * Of a kind with several owners the next caller comes to the head as soon as the one before has its hold.
   */
  readonly alone: boolean;
  /**
   * Each caller stands in the store's line itself, and asks again from there, as the same owner, when it is woken. Else
   * the callers of a process line up among themselves, and have one place in the store's line.
   */
  readonly eachInLine: boolean;
  /** A hold may pass from one local lease to the next within a turn, without asking the store. */
  readonly handedOver: boolean;
  /** Local leases may have one hold together: those that come within its turn join it, without asking the store. */
  readonly shared: boolean;
  /** A grant carries a fencing token. */
  readonly fenced: boolean;
  /** The kinds of holds into which a nested claim of this kind goes, instead of asking the store. */
  readonly entersInto: readonly string[];
  /**
   * The kinds of holds inside which a nested claim of this kind, for the same key, would wait for its own caller: it is
   * refused at once.
   */
  readonly waitsForItselfIn: readonly string[];
  /** The kind that a hold of this one can be turned into, in one step and for the same owner. */
  readonly becomes: string | undefined;
  /**
   * How owners are named: `counted`, the process's id and a number; `named`, with the kind's name between these, where
   * nothing else tells holds of two kinds apart; `random`, 32 hexadecimal digits.
   */
  readonly owners: 'counted' | 'named' | 'random';
}
