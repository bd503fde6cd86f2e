import type { Runtime } from './runtime.js';

/** Counts what is under way, so that a shutdown can wait for it. */
export class Activity {
  count = 0;
  private onOver: (() => void) | undefined;

  begin(): void {
    this.count++;
  }

  end(): void {
    this.count--;
    if (this.count === 0) this.onOver?.();
  }

  /** Resolves as soon as nothing is under way. */
  over(): Promise<void> {
    return this.count === 0 ? Promise.resolve() : new Promise((resolve) => (this.onOver = resolve));
  }
}

/** Resolves when `work` does, or after `ms`. */
export const withinMs = (work: Promise<void>, ms: number, runtime: Runtime): Promise<void> =>
  new Promise((resolve) => {
    const timer = runtime.setTimer(resolve, ms);
    void work.then(() => {
      runtime.clearTimer(timer);
      resolve();
    });
  });
