/**
 * Properties of a kind of lock. The core decides by these, and by a kind's name where only that kind is meant, such as for
 * the number of permits.
 */
export interface Kind {
  /** Name of a hold in messages. */
  readonly noun: string;
  /**
   * Whether there is at most one owner at a time. The holder then stays the contender of its local queue until its hold
   * has ended. With several owners, the next caller becomes the contender as soon as the one before has its hold.
   */
  readonly singleHolder: boolean;
  /**
   * Whether each caller has its own entry in the store's wait queue, and sends its requests as the same owner when it
   * is notified. Otherwise the callers of a process share one entry, and wait in the local queue.
   */
  readonly eachQueued: boolean;
  /** Whether a hold may be handed off from one local lease to the next, without a request to the store. */
  readonly handedOff: boolean;
  /**
   * Whether several local leases may share one hold. Leases that come within its hand-off batch join it, without a
   * request to the store.
   */
  readonly shared: boolean;
  /** Whether a grant has a fencing token. */
  readonly fenced: boolean;
  /**
   * Kinds that this kind is reentrant into: a nested call enters such a hold without a request to the store. A nested call
   * of a hold of any other kind would wait for itself, and is rejected. None: permits do not nest.
   */
  readonly reentrantInto: readonly string[];
  /** Kind that a hold of this kind downgrades to, in one step and for the same owner. */
  readonly downgradesTo: string | undefined;
  /**
   * Form of the owners' names. `counted`: the process's id and a number. `named`: with the kind's name between them,
   * where nothing else distinguishes holds of two kinds. `short`: 32 hexadecimal digits, the beginning of the id and a number.
   */
  readonly owners: 'counted' | 'named' | 'short';
}
