import { AsyncLocalStorage } from 'node:async_hooks';
import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { systemRuntime } from '../core/runtime.js';

/** How long a returned stream may stay unread before its lock is given back, in ms. */
export const UNREAD_STREAM_MS = 30_000;

const timers = systemRuntime();

/** In the background: a stream that was forgotten keeps no process alive. Returns what stops the timer. */
export const whenUnread = (action: () => void): (() => void) => {
  const timer = timers.setTimer(action, UNREAD_STREAM_MS, true);
  return () => timers.clearTimer(timer);
};

export const tooLate = (where: string): LockConfigurationError =>
  new LockConfigurationError(
    `${where}: what it returned was read again after its end, or not within ${UNREAD_STREAM_MS} ms, ` +
      `so its lock has been given back. Call the method again.`,
  );

/**
 * The time in which a returned stream is locked: from the first reader to the last, if one comes in time. Made inside
 * the section, whose async context it keeps for the work that reading does.
 */
export class Reading {
  private readers = 0;
  private finished = false;
  private end!: () => void;
  readonly done = new Promise<void>((resolve) => (this.end = resolve));
  readonly inSection = AsyncLocalStorage.snapshot();
  private readonly stopTimer = whenUnread(() => {
    if (this.isUnread()) this.finish();
  });

  /** @param isUnread whether it really is, for a source that can be read without this having been told */
  constructor(
    private readonly where: string,
    private readonly isUnread = () => true,
  ) {}

  get over(): boolean {
    return this.finished;
  }

  /** A reader that comes too late gets an error instead of unlocked work. */
  begin(): LockConfigurationError | undefined {
    if (this.finished) return this.late();
    this.stopTimer();
    this.readers++;
    return undefined;
  }

  leave(): void {
    this.readers--;
    if (this.readers === 0) this.finish();
  }

  /** Ends it for all readers: what they read from is closed. */
  finish(): void {
    this.stopTimer();
    this.finished = true;
    this.end();
  }

  late(): LockConfigurationError {
    return tooLate(this.where);
  }
}
