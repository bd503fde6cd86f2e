import { AsyncLocalStorage } from 'node:async_hooks';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { systemRuntime } from '../../core/util/runtime.js';

/** How long a returned stream may stay unread before its lock is released, in ms. */
export const UNREAD_STREAM_MS = 30_000;

const timers = systemRuntime();

/**
 * Runs `action` if the stream stays unread; returns a function that stops the timer. A background timer: a forgotten
 * stream does not keep the process alive.
 */
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
 * Period for which a returned stream is locked: from the first reader to the last, if one comes in time. It is created
 * inside the section, and runs the readers' work in the async context of the section.
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

  /** @param isUnread checks a source that can be read without a call of `begin` */
  constructor(
    private readonly where: string,
    private readonly isUnread = () => true,
  ) {}

  get over(): boolean {
    return this.finished;
  }

  /** Registers a reader. Returns an error for a reader that comes too late, because it would work without the lock. */
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

  /** Ends it for all readers: their source is closed. */
  finish(): void {
    this.stopTimer();
    this.finished = true;
    this.end();
  }

  late(): LockConfigurationError {
    return tooLate(this.where);
  }
}
