import type { Runtime } from '../../../lib/core/util/runtime.js';
import { MAX_YIELD_MS } from '../../../lib/stores/redis/kinds/exclusive/queue-functions.js';

interface Timer {
  readonly dueAt: number;
  readonly action: () => void;
  /** Of one that goes by the clock of the machine. */
  readonly real?: NodeJS.Timeout;
}

/**
 * A clock that shows what it was told, and timers that go by it. Redis and the network stay as real as they are, and so does
 * the moment for which a release may leave a lock to those outside of its line: Redis counts it, from a second on after
 * somebody came to stand there, so on a busy machine it comes where else it does not. Timers as short as that go by the clock
 * of the machine.
 */
export class ManualClock {
  private ms = 0;
  private ids = 0;
  private readonly timers = new Set<Timer>();

  /** What the library is given for a clock. `prefix` keeps the ids of several processes apart. */
  runtime(prefix: string): Runtime {
    return {
      now: () => this.ms,
      setTimer: (action, ms) => this.setTimer(action, ms),
      clearTimer: (timer) => this.clearTimer(timer as Timer | undefined),
      soon: (action) => void setImmediate(action),
      newId: () => `${prefix}-${(this.ids += 1)}`,
      random: () => 0.5,
    };
  }

  setTimer(action: () => void, ms: number): Timer {
    const dueAt = this.ms + Math.max(0, ms);
    if (ms <= MAX_YIELD_MS) return { dueAt, action, real: setTimeout(action, ms) };
    const timer = { dueAt, action };
    this.timers.add(timer);
    return timer;
  }

  private clearTimer(timer: Timer | undefined): void {
    if (!timer) return;
    this.timers.delete(timer);
    clearTimeout(timer.real);
  }

  /** Moves on to a moment. The timers due until then fire, each at its own time. */
  moveTo(ms: number): void {
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
