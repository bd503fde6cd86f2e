/** How long the process that had the lock lets others go first, in ms. */
const YIELD_MS = 25;
/** Yielding ends after two hints: our own release message, which this process hears too, and the next holder's. */
const YIELD_HINTS = 2;

/**
 * Whether a process lets the others go first after its turn. Otherwise its next question would reach the store before
 * the others have heard of the release.
 */
export class Yielding {
  private endsAt = -Infinity;
  private endsAfterHints = 0;

  /** The process had the lock until now, and others wait for it. `hints`: how many had come before its release. */
  begin(now: number, hints: number): void {
    this.endsAt = now + YIELD_MS;
    this.endsAfterHints = hints + YIELD_HINTS;
  }

  /** Until when the process yields; undefined when it does not. */
  until(now: number, hints: number): number | undefined {
    return hints >= this.endsAfterHints || now >= this.endsAt ? undefined : this.endsAt;
  }
}

/** For how long a queue outlives its last caller, so that the next caller yields too. */
export const KEEP_AFTER_TURN_MS = YIELD_MS;
