/** How fast an estimate that was too early is forgotten, in ms for each snapshot. */
const FORGET_MS = 0.5;

/** The clock of the server, as far as the page can know it. */
export class ServerClock {
  private offset = -Infinity;

  /** A snapshot says what time it was. The one that came fastest tells it best. */
  hear(now: number): void {
    this.offset = Math.max(this.offset - FORGET_MS, now - performance.now());
  }

  now(): number {
    return performance.now() + this.offset;
  }
}
