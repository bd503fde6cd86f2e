/** Pixels for a ms, on a wide page. */
const PIXELS_PER_MS = 0.08;
/** What also a narrow page shows, in ms. */
const MIN_PAST_MS = 5_000;

/** Where a time is in the drawing. The drawing moves as a whole; what is in it stays where it is. */
export class TimeScale {
  width = 0;
  now = 0;
  private base: number | undefined;
  private leaseMs = 0;

  show(now: number, leaseMs: number): void {
    this.base ??= now;
    this.now = now;
    this.leaseMs = leaseMs;
  }

  get perMs(): number {
    return Math.min(PIXELS_PER_MS, this.width / (MIN_PAST_MS + this.leaseMs));
  }

  /** Where the present is on the page: a lease left of the edge. */
  get present(): number {
    return this.width - this.leaseMs * this.perMs - 2;
  }

  /** How far the drawing has moved. */
  get shift(): number {
    return this.present - this.at(this.now);
  }

  /** Where a time is in the drawing. */
  at(time: number): number {
    return (time - (this.base ?? 0)) * this.perMs;
  }
}
