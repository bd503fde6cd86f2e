import { MAX_BATCH_MS } from './hand-off-batch.js';

/** How long the process that had the lock lets others go first, in ms. */
const YIELD_MS = 25;
/** Yielding ends after two wake-ups: our own release message, which this process hears too, and the next holder's. */
const YIELD_WAKE_UPS = 2;

/**
 * Decides whether a process lets the others go first after a release, for kinds with several holders (permits, readers).
 * Otherwise its next request would reach the store before the others have been notified of the release.
 */
export class Yielding {
  private endsAt = -Infinity;
  private endsAfterWakeUps = 0;
  /** Where a process has several holds: until when it may take more although others wait. */
  private mayTakeUntil: number | undefined;

  /** The process had the lock until now, and others wait for it. `wakeUps`: how many had come before its release. */
  begin(now: number, wakeUps: number): void {
    this.endsAt = now + YIELD_MS;
    this.endsAfterWakeUps = wakeUps + YIELD_WAKE_UPS;
  }

  /** The process gives back one of several holds. Its own message of that is no sign that others had their chance. */
  releaseSent(now: number, wakeUps: number): void {
    if (this.until(now, wakeUps) !== undefined) this.endsAfterWakeUps++;
    else if (this.mayTakeUntil !== undefined && now >= this.mayTakeUntil) {
      this.begin(now, wakeUps);
      this.mayTakeUntil = undefined;
    }
  }

  /** The store has answered that. While others wait, the process yields after each batch; else it need not. */
  releaseReplied(now: number, wakeUps: number, othersWaiting: boolean): void {
    if (!othersWaiting) {
      this.endsAt = -Infinity;
      this.mayTakeUntil = undefined;
    } else if (this.until(now, wakeUps) === undefined) this.mayTakeUntil ??= now + MAX_BATCH_MS;
  }

  /** Until when the process yields; undefined when it does not. */
  until(now: number, wakeUps: number): number | undefined {
    return wakeUps >= this.endsAfterWakeUps || now >= this.endsAt ? undefined : this.endsAt;
  }
}

/** How long a queue outlives its last caller, in ms, so that the next caller yields too. */
export const KEEP_AFTER_RELEASE_MS = YIELD_MS;
