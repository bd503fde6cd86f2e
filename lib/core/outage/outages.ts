import type { Runtime } from '../util/runtime.js';

/** Pause before all try again, in ms. It doubles with each failed try, up to the longest. */
const FIRST_PAUSE_MS = 50;
const LONGEST_PAUSE_MS = 500;
/** How many keys try at the same time, and the pause between two batches once the store works again, in ms. */
const BATCH = 64;
const BATCH_EVERY_MS = 5;

/** Part of the pause that differs between processes, so that they do not all try at the same moment. */
const JITTER = 0.5;

/** Returns a number from 0 to 1 for a process's id. */
const shareOf = (id: string): number =>
  [...id].reduce((sum, character) => (31 * sum + character.charCodeAt(0)) % 1_024, 7) / 1_024;

/** A key, semaphore or latch for which the store fails. */
export interface Failing {
  /** Makes the caller that waits for the store try again. */
  retry(): void;
}

/**
 * Keys, semaphores and latches of one service for which the store fails for a temporary reason. It decides when their
 * callers try again, with one timer. While the store fails, a few of them try at a time. Once it works for one, the
 * others follow in batches.
 */
export class Outages {
  /** Whether the store fails, at least for some keys, as far as the service knows. */
  storeFails = false;
  private readonly failing = new Set<Failing>();
  /** Failing keys that wait for their next try; a key is absent while its try is in progress. */
  private readonly pausing = new Set<Failing>();
  private readonly spread: number;
  private pauseMs = FIRST_PAUSE_MS;
  private isRecovering = false;
  private timer: unknown;

  constructor(
    private readonly runtime: Runtime,
    id: string,
  ) {
    this.spread = 1 - JITTER / 2 + JITTER * shareOf(id);
  }

  /** Number of keys, semaphores and latches for which the store fails. */
  get size(): number {
    return this.failing.size;
  }

  /** Registers a failed request for a key. Its `retry` is called once. */
  failed(key: Failing): void {
    this.failing.add(key);
    this.isRecovering = false;
    this.pausing.add(key);
    this.arm();
  }

  /**
   * Removes a key, because no caller waits for it any more, or the store works for it. In the latter case the others
   * try, too.
   */
  over(key: Failing, works: boolean): void {
    if (!this.failing.delete(key)) return;
    this.pausing.delete(key);
    if (works || this.failing.size === 0) this.pauseMs = FIRST_PAUSE_MS;
    if (this.pausing.size > 0 && !works) return;
    this.disarm();
    if (this.pausing.size === 0) return;
    this.isRecovering = true;
    this.arm();
  }

  private arm(): void {
    if (this.timer !== undefined) return;
    const ms = this.isRecovering ? BATCH_EVERY_MS : this.pauseMs * this.spread;
    this.timer = this.runtime.setTimer(() => this.tryAgain(), ms);
  }

  private disarm(): void {
    this.runtime.clearTimer(this.timer);
    this.timer = undefined;
  }

  private tryAgain(): void {
    this.timer = undefined;
    this.pauseMs = Math.min(2 * this.pauseMs, LONGEST_PAUSE_MS);
    const batch = [...this.pausing].slice(0, BATCH);
    for (const key of batch) this.pausing.delete(key);
    if (this.pausing.size > 0) this.arm();
    for (const key of batch) key.retry();
  }
}
