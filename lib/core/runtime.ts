import { AsyncResource } from 'node:async_hooks';
import { randomUUID } from 'node:crypto';
import { uptime } from 'node:os';

/**
 * A UUID of version 8, which is for own purposes: nearly all others make those of version 4, as Redisson does. So a store
 * sees by an owner's name whether it is of this library.
 */
const newId = (): string => {
  const id = randomUUID();
  return `${id.slice(0, 14)}8${id.slice(15)}`;
};

/** What the core needs of the world, so that it can be run on a virtual clock. */
export interface Runtime {
  /** Milliseconds on a clock that never steps back, and that counts the time the machine was asleep. */
  now(): number;
  /** A background timer is no reason for the process to stay alive. */
  setTimer(action: () => void, ms: number, background?: boolean): unknown;
  clearTimer(timer: unknown): void;
  /** Does it when all that can go on now has gone on as far as it can. */
  soon(action: () => void): void;
  /** Unique in the world; names this process among all that use the store. */
  newId(): string;
}

/** An asynchronous context of the library's own: a timer started in it keeps no request of a user in memory. */
const ownContext = new AsyncResource('nest-redis-lock');

/** Runs `action` outside the caller's asynchronous context; for timers that outlive a call. */
export const unbound = <T>(action: () => T): T => ownContext.runInAsyncScope(action);

/** The longest delay a Node timer takes; a longer one would fire at once. */
const MAX_TIMER_MS = 2 ** 31 - 1;
/** How often the clock is checked against the machine's uptime, and how much of a difference is sleep. */
const SLEEP_CHECK_MS = 1_000;
const SLEEP_MS = 1_000;

/**
 * The monotonic clock stands still while a machine sleeps, the store's does not. The machine's uptime goes on, so
 * what it gained on the monotonic clock is added.
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

/** For longer than Node can wait: one timer after the other. */
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

/** Timers of Node, and a clock: by default one that knows of the machine's sleep. */
export const systemRuntime = (clock: { now(): number } = new SuspendAwareClock()): Runtime => ({
  now: () => clock.now(),
  setTimer: (action, ms, background = false) =>
    ms > MAX_TIMER_MS ? new LongTimer(action, ms, background) : setNodeTimer(action, ms, background),
  clearTimer: (timer) => {
    if (timer instanceof LongTimer) timer.clear();
    else clearTimeout(timer as NodeJS.Timeout | undefined);
  },
  soon: (action) => void unbound(() => setImmediate(action)),
  newId,
});
