import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { uptime } from 'node:os';

/**
 * Returns a UUID of version 8, the version for custom formats. Nearly all other software, such as Redisson, creates
 * version
 * 4. So a store can see from an owner's name whether it belongs to this library.
 */
const newId = (): string => {
  const id = randomUUID();
  return `${id.slice(0, 14)}8${id.slice(15)}`;
};

/** Clock, timers and ids of the core, so that it can run on a virtual clock. */
export interface Runtime {
  /** Returns ms on a clock that never steps back, and that includes the time when the machine was asleep. */
  now(): number;
  /** Starts a timer. A background timer does not keep the process alive. */
  setTimer(action: () => void, ms: number, background?: boolean): unknown;
  clearTimer(timer: unknown): void;
  /** Runs `action` after all code that can run now has gone on as far as it can. */
  soon(action: () => void): void;
  /** Returns a globally unique id. One of them names this process in the store. */
  newId(): string;
  /** Returns a random number from 0 on, below 1. */
  random(): number;
}

/** Async context of the library: a timer started in it keeps no request of a user in memory. */
const ownContext = new AsyncResource('nest-redis-lock');

/** Runs `action` outside the caller's async context. For timers that outlive a call. */
export const unbound = <T>(action: () => T): T => ownContext.runInAsyncScope(action);

/** Maximum delay of a Node timer, in ms; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** Interval in ms between comparisons of clock and uptime, and the difference in ms that counts as sleep. */
const SLEEP_CHECK_MS = 1_000;
const SLEEP_MS = 1_000;

/**
 * Clock that includes the time when the machine was asleep, like the clock of the store. The monotonic clock stops
 * during sleep. The machine's uptime does not, so its lead over the monotonic clock is added.
 */
export class SuspendAwareClock {
  private asleepMs = 0;
  private checkedAt = -Infinity;
  private readonly offset: number;

  constructor(
    private readonly monotonicMs: () => number = () => performance.now(),
    private readonly uptimeMs: () => number = () => uptime() * 1_000,
  ) {
    this.offset = uptimeMs() - monotonicMs();
  }

  now(): number {
    const now = this.monotonicMs();
    if (now - this.checkedAt >= SLEEP_CHECK_MS || now < this.checkedAt) {
      this.checkedAt = now;
      const gained = this.uptimeMs() - now - this.offset;
      if (gained - this.asleepMs > SLEEP_MS) this.asleepMs = gained;
    }
    return now + this.asleepMs;
  }
}

const setNodeTimer = (action: () => void, ms: number, background: boolean): NodeJS.Timeout => {
  const timer = unbound(() => setTimeout(action, Math.max(ms, 0)));
  // Fake timers of a test in a simulated browser are numbers.
  if (background && typeof timer === 'object') timer.unref();
  return timer;
};

/** Timer for delays beyond Node's maximum: one Node timer after the other. */
class LongTimer {
  private timer: NodeJS.Timeout;

  constructor(
    private readonly action: () => void,
    private leftMs: number,
    private readonly background: boolean,
  ) {
    this.timer = this.next();
  }

  clear(): void {
    clearTimeout(this.timer);
  }

  private next(): NodeJS.Timeout {
    const ms = Math.min(this.leftMs, MAX_TIMER_MS);
    this.leftMs -= ms;
    const step = (): void => {
      if (this.leftMs > 0) this.timer = this.next();
      else this.action();
    };
    return setNodeTimer(step, ms, this.background);
  }
}

/** Node's own: the fake timers of a test would hold back what no time passes for. */
const nextTurn = setImmediate;

/** Returns a runtime with Node's timers. The default clock includes the machine's sleep. */
export const systemRuntime = (clock: { now(): number } = new SuspendAwareClock()): Runtime => ({
  now: () => clock.now(),
  setTimer: (action, ms, background = false) =>
    ms > MAX_TIMER_MS ? new LongTimer(action, ms, background) : setNodeTimer(action, ms, background),
  clearTimer: (timer) => {
    if (timer instanceof LongTimer) timer.clear();
    else clearTimeout(timer as NodeJS.Timeout | undefined);
  },
  soon: (action) => void unbound(() => nextTurn(action)),
  newId,
  random: Math.random,
});
