/** Maximum number of updates in a second, on any screen and at any load; and where motion is not wanted. */
const MAX_RATE = 60;
const CALM_RATE = 2;

/** Draws the page again when something has changed, together for all changes, and not too often. */
export class Frames {
  private isWanted = false;
  private drawnAt = -Infinity;
  private updates = 0;
  private readonly calm = matchMedia('(prefers-reduced-motion: reduce)');

  /** `draw` returns whether the page moves, so that it must be drawn again without a change. */
  constructor(private readonly draw: () => boolean) {}

  /** Something has changed. */
  want(): void {
    if (this.isWanted) return;
    this.isWanted = true;
    requestAnimationFrame((now) => this.frame(now));
  }

  private frame(now: number): void {
    const periodMs = 1_000 / (this.calm.matches ? CALM_RATE : MAX_RATE);
    this.isWanted = false;
    // A screen of 60 Hz is late and early by a little: its every frame counts.
    if (now - this.drawnAt < periodMs - 1) return this.want();
    this.drawnAt = now;
    const moves = this.draw();
    this.updates += 1;
    document.body.dataset['updates'] = String(this.updates);
    if (moves) this.want();
  }
}
