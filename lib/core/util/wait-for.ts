import { onAbort } from './abort-listeners.js';
import type { Runtime } from './runtime.js';

/** Event that is waited for, and what may end the wait before. */
export interface WaitFor<T> {
  /** Maximum time in ms; `Infinity`: no limit. */
  readonly ms: number;
  readonly signal?: AbortSignal | undefined;
  /** Starts listening for the event. */
  listen?(waiting: Waiting<T>): void;
  /** Stops listening: the wait is over. */
  stop?(): void;
  /** Called when the time is over. The wait goes on unless this ends it; it is called again after the ms it returns. */
  onTime(waiting: Waiting<T>): number | void;
  onAbort?(waiting: Waiting<T>): void;
}

/** A wait in progress. What ends it first counts. A class, since thousands may wait: each closure is memory. */
export class Waiting<T> {
  private over = false;
  private timer: unknown;
  private stopSignal: (() => void) | undefined;

  constructor(
    private readonly runtime: Runtime,
    private readonly wait: WaitFor<T>,
    private readonly resolved: (value: T) => void,
    private readonly rejected: (error: Error) => void,
  ) {}

  begin(): void {
    const { wait } = this;
    const { ms, signal } = wait;
    wait.listen?.(this);
    // Each callback may have ended the wait already, and before all was there to be stopped.
    if (this.over) return wait.stop?.();
    if (signal) {
      this.stopSignal = onAbort(signal, () => wait.onAbort?.(this));
      if (signal.aborted) wait.onAbort?.(this);
    }
    if (this.over) return;
    if (ms <= 0) this.timeIsOver();
    else if (ms < Infinity) this.arm(ms);
  }

  resolve(value: T): void {
    if (this.end()) this.resolved(value);
  }

  reject(error: Error): void {
    if (this.end()) this.rejected(error);
  }

  private arm(ms: number): void {
    this.timer = this.runtime.setTimer(() => this.timeIsOver(), ms);
  }

  private timeIsOver(): void {
    const againInMs = this.wait.onTime(this);
    if (againInMs && !this.over) this.arm(againInMs);
  }

  private end(): boolean {
    if (this.over) return false;
    this.over = true;
    if (this.timer !== undefined) this.runtime.clearTimer(this.timer);
    this.wait.stop?.();
    this.stopSignal?.();
    return true;
  }
}

/**
 * Waits for an event, a timer or an abort, whichever ends the wait first, and then stops all three.
 *
 * @example
 * await waitFor<void>(runtime, { ms: 50, listen: (w) => emitter.on(() => w.resolve()), onTime: (w) => w.resolve() });
 */
export const waitFor = <T>(runtime: Runtime, wait: WaitFor<T>): Promise<T> =>
  new Promise((resolve, reject) => new Waiting(runtime, wait, resolve, reject).begin());

/** Resolves when `work` does, or after `ms`. */
export const withinMs = (work: Promise<unknown>, ms: number, runtime: Runtime): Promise<void> =>
  waitFor<void>(runtime, {
    ms,
    listen: (waiting) => void work.then(() => waiting.resolve()),
    onTime: (waiting) => waiting.resolve(),
  });
