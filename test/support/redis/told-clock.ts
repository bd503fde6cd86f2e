import type { Runtime } from '../../../lib/core/runtime.js';

interface Timer {
  readonly dueAt: number;
  readonly action: () => void;
}

/** A clock that shows what it was told, and timers that go by it. Redis and the network stay as real as they are. */
export class ToldClock {
  private ms = 0;
  private ids = 0;
  private readonly timers = new Set<Timer>();

  /** What the library is given for a clock. `prefix` keeps the ids of several processes apart. */
  runtime(prefix: string): Runtime {
    return {
      now: () => this.ms,
      setTimer: (action, ms) => this.setTimer(action, ms),
      clearTimer: (timer) => void this.timers.delete(timer as Timer),
      soon: (action) => void setImmediate(action),
      newId: () => `${prefix}-${(this.ids += 1)}`,
    };
  }

  setTimer(action: () => void, ms: number): Timer {
    const timer = { dueAt: this.ms + Math.max(0, ms), action };
    this.timers.add(timer);
    return timer;
  }

  /** Moves on to a moment. The timers due until then fire, each at its own time. */
  tell(ms: number): void {
    for (;;) {
      const [next] = [...this.timers].filter(({ dueAt }) => dueAt <= ms).sort((a, b) => a.dueAt - b.dueAt);
      if (!next) break;
      this.timers.delete(next);
      this.ms = next.dueAt;
      next.action();
    }
    this.ms = ms;
  }
}
