import type { Runtime } from '../util/runtime.js';
import type { Claim } from '../seam/claim.js';
import type { StoreQueueEntry } from '../seam/store-queue-entry.js';
import { deadlineOf, type TimedWait } from './wait.js';
import type { WakeUp } from './wake-up.js';

/** How long a process may go on with a key while other processes wait for it, in ms. */
export const TURN_MS = 50;
/** How long it then lets them go first, in ms. */
export const YIELD_MS = 25;
/** Letting them go first ends after two wake-ups: our own release message, which this process hears too, and the next holder's. */
const YIELD_WAKE_UPS = 2;
/** Longest pause before a retry after a foreign release, in ms: 1 ms for each position in the wait queue. */
const LONGEST_STEP_ASIDE_MS = 20;

/** The queue whose callers have the holds. */
interface QueueOfHolds {
  readonly wakeUps: number;
  lookAgain(): void;
  holdEnds(othersWaiting: boolean): void;
}

/**
 * Decides when a process lets the others go first, for kinds with several holders (permits, readers). Otherwise its next
 * request would reach the store before the others have been notified of the release.
 *
 * It listens for the end of each hold: its caller is no contender any more, so the queue goes on without it.
 */
export class Fairness {
  private endsAt = -Infinity;
  private endsAfterWakeUps = 0;
  /** Until when the process may take more although others wait. */
  private mayTakeUntil: number | undefined;

  constructor(
    private readonly queue: QueueOfHolds,
    private readonly runtime: Runtime,
  ) {}

  /** Until when the contender lets others go first; undefined when it need not. */
  get asideUntil(): number | undefined {
    return this.queue.wakeUps >= this.endsAfterWakeUps || this.runtime.now() >= this.endsAt
      ? undefined
      : this.endsAt;
  }

  handOff(): boolean {
    return false;
  }

  /** One of the holds is given back. The own message of that is no sign that others had their chance. */
  releaseSent(): void {
    const now = this.runtime.now();
    if (this.asideUntil !== undefined) this.endsAfterWakeUps++;
    else if (this.mayTakeUntil !== undefined && now >= this.mayTakeUntil) {
      this.endsAt = now + YIELD_MS;
      this.endsAfterWakeUps = this.queue.wakeUps + YIELD_WAKE_UPS;
      this.mayTakeUntil = undefined;
    }
  }

  /** The store has replied to that. While others wait, the process yields after each turn; else it need not. */
  releaseOver(othersWaiting: boolean | undefined): void {
    if (othersWaiting === true && this.asideUntil === undefined)
      this.mayTakeUntil ??= this.runtime.now() + TURN_MS;
    if (othersWaiting === false) {
      this.endsAt = -Infinity;
      this.mayTakeUntil = undefined;
      this.queue.lookAgain();
    }
    this.queue.holdEnds(othersWaiting ?? false);
  }

  leave(): void {
    this.queue.holdEnds(false);
  }

  /** Waits while the contender lets others go first. */
  async yieldToOthers(wakeUp: WakeUp, wait: TimedWait, claim: Claim): Promise<void> {
    wakeUp.listen(claim);
    for (;;) {
      const until = this.asideUntil;
      const now = this.runtime.now();
      const leftMs = deadlineOf(wait) - now;
      if (until === undefined || leftMs <= 0 || wait.signal?.aborted) return;
      try {
        await wakeUp.untilWoken(Math.min(until - now, leftMs), wait.signal);
      } catch {
        // Nothing can be heard; asking the store will show whether that matters.
        return;
      }
    }
  }
}

/**
 * Lets the entries before this one send their requests first, after a foreign holder has released the lock: all queued
 * processes are notified of that.
 */
export const letOthersLook = async (
  wakeUp: WakeUp,
  entry: StoreQueueEntry | undefined,
  signal: AbortSignal | undefined,
  wakeUpsBefore: number,
): Promise<void> => {
  if (!entry || entry.outcome || entry.position === 0 || wakeUp.wakeUps === wakeUpsBefore) return;
  await wakeUp.untilWoken(Math.min(entry.position, LONGEST_STEP_ASIDE_MS), signal);
};
