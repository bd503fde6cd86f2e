import type { Runtime } from '../../core/util/runtime.js';

/** How often rows are swept, in ms. Processes that share a table do so at different times. */
const SWEEP_MS = 3_600_000;
/** Pause after a part, in ms: the rest of a large table must not wait for an hour. */
const MORE_MS = 1_000;
/** Number of rows in one part. */
export const SWEPT_ROWS = 500;

/** Deletes rows of locks that have been free for a day, now and then. */
export class Sweeper {
  private timer: unknown;

  constructor(
    private readonly runtime: Runtime,
    private readonly sweep: () => Promise<number>,
  ) {}

  start(): void {
    if (this.timer === undefined) this.arm(SWEEP_MS);
  }

  stop(): void {
    this.runtime.clearTimer(this.timer);
    this.timer = undefined;
  }

  private arm(ms: number): void {
    const varied = ms * (0.5 + this.runtime.random());
    this.timer = this.runtime.setTimer(() => void this.run(), varied, true);
  }

  private async run(): Promise<void> {
    let swept = 0;
    try {
      swept = await this.sweep();
    } catch {
      // The next time will do: nothing depends on it.
    }
    if (this.timer !== undefined) this.arm(swept === SWEPT_ROWS ? MORE_MS : SWEEP_MS);
  }
}
