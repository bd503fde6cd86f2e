import type { SimProcess } from '../engine/sim-process.js';

/** A timer that is this late, in ms, tells that the event loop stood still. */
const FROZEN_MS = 50;

/** Calls `onOverdue` when `settle` was not called in time. As in the Redis store, replies that lie waiting go first. */
export class Deadline {
  done = false;
  private timer: unknown;

  constructor(
    private readonly process: SimProcess,
    private readonly timeoutMs: number,
    private readonly onOverdue: () => void,
  ) {
    this.arm(timeoutMs, false);
  }

  /** True the first time. */
  settle(): boolean {
    if (this.done) return false;
    this.done = true;
    this.process.clearTimer(this.timer);
    return true;
  }

  private arm(ms: number, patient: boolean): void {
    const plannedAt = this.process.at + ms;
    const look = (): void => {
      if (this.done) return;
      const lateMs = this.process.at - plannedAt;
      if (lateMs > FROZEN_MS && !patient) return this.arm(Math.min(lateMs, this.timeoutMs), true);
      this.done = true;
      this.onOverdue();
    };
    this.timer = this.process.setTimer(() => this.process.afterArrivals(look), ms);
  }
}
