import type { Runtime } from '../util/runtime.js';
import type { AppStart } from '../seam/lock-store.js';

/** Maximum delay of a Node timer, in ms. */
const VERY_LONG_MS = 2 ** 31 - 1;

/**
 * A service whose app has not started yet. If the start fails, Nest calls no hook of the service, so its connections
 * and holds stay. Until the app has started, only callers that wait for a reply keep the process alive.
 */
export class Starting implements AppStart {
  private waiting = 0;
  private readonly listeners: (() => void)[] = [];
  private timer: unknown;

  constructor(private readonly runtime: Runtime) {}

  get isNeeded(): boolean {
    return this.waiting > 0;
  }

  whenOver(listener: () => void): void {
    this.listeners.push(listener);
  }

  over(): void {
    for (const listener of this.listeners.splice(0)) listener();
  }

  /** Keeps the process alive until the work has ended. */
  async during<T>(work: Promise<T>): Promise<T> {
    this.waiting += 1;
    this.timer ??= this.runtime.setTimer(() => undefined, VERY_LONG_MS);
    try {
      return await work;
    } finally {
      this.waiting -= 1;
      if (this.waiting === 0) {
        this.runtime.clearTimer(this.timer);
        this.timer = undefined;
      }
    }
  }
}
