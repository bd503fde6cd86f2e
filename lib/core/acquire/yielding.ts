import { LONGEST_TURN_MS } from './turn.js';

/** How long the process that had the lock lets others go first, in ms. */
const YIELD_MS = 25;
/** Yielding ends after two hints: our own release message, which this process hears too, and the next holder's. */
const YIELD_HINTS = 2;

/**
 * Decides whether a process lets the others go first after a release, for permits: an exclusive or fair lock is granted by the
 * store to the next process. Otherwise its next request would reach the store
 * before the others have been notified of the release.
 */
export class Yielding {
  private endsAt = -Infinity;
  private endsAfterHints = 0;
  /** Where a process has several holds: until when it may take more although others wait. */
  private turnEndsAt: number | undefined;

  /** The process had the lock until now, and others wait for it. `hints`: how many had come before its release. */
  begin(now: number, hints: number): void {
    this.endsAt = now + YIELD_MS;
    this.endsAfterHints = hints + YIELD_HINTS;
  }

  /** The process gives back one of several holds. Its own message of that is no sign that others had their chance. */
  releaseSent(now: number, hints: number): void {
    if (this.until(now, hints) !== undefined) this.endsAfterHints++;
    else if (this.turnEndsAt !== undefined && now >= this.turnEndsAt) {
      this.begin(now, hints);
      this.turnEndsAt = undefined;
    }
  }

  /** The store has answered that. While others wait, the process yields after each turn; else it need not. */
  releaseAnswered(now: number, hints: number, othersWaiting: boolean): void {
    if (!othersWaiting) {
      this.endsAt = -Infinity;
      this.turnEndsAt = undefined;
    } else if (this.until(now, hints) === undefined) this.turnEndsAt ??= now + LONGEST_TURN_MS;
  }

  /** Until when the process yields; undefined when it does not. */
  until(now: number, hints: number): number | undefined {
    return hints >= this.endsAfterHints || now >= this.endsAt ? undefined : this.endsAt;
  }
}

/** How long a queue outlives its last caller, in ms, so that the next caller yields too. */
export const KEEP_AFTER_TURN_MS = YIELD_MS;
