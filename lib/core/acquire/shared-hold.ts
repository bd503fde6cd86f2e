import type { Hold } from '../lease/hold.js';
import type { LocalWaiters } from './local-waiters.js';

/** The last hold that callers of one process have together, of a kind whose holds are shared. */
export class SharedHold {
  private hold: Hold | undefined;

  /** The hold, if one more caller may join it. */
  join(watchdogMs: number, now: number): Hold | undefined {
    if (this.hold?.addLease(watchdogMs, now)) return this.hold;
    this.hold = undefined;
    return undefined;
  }

  /** Waiters join the hold at once, and later callers may. */
  begin(hold: Hold, waiters: LocalWaiters, now: number): void {
    this.hold = hold;
    for (const waiter of waiters.all) {
      const { requesting, watchdogMs } = waiter;
      if (requesting || watchdogMs === undefined || !hold.addLease(watchdogMs, now)) continue;
      waiters.delete(waiter);
      waiter.admit(hold);
    }
  }
}
