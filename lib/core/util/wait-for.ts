import { onAbort } from './abort-listeners.js';
import type { Runtime } from './runtime.js';

/** Callbacks that end a wait; later calls have no effect. */
export interface Waiting<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** Event that is waited for, and what may end the wait before. */
export interface WaitFor<T> {
  /** Maximum time in ms; `Infinity`: no limit. */
  readonly ms: number;
  readonly signal?: AbortSignal | undefined;
  /** Starts listening for the event; returns a function that stops it. */
  listen(waiting: Waiting<T>): (() => void) | undefined;
  /** Called when the time is over. The wait goes on unless this ends it; it is called again after the ms it returns. */
  onTime(waiting: Waiting<T>): number | void;
  onAbort?(waiting: Waiting<T>): void;
}

/**
 * Waits for an event, a timer or an abort, whichever ends the wait first, and then stops all three.
 *
 * @example
 * await waitFor<void>(runtime, { ms: 50, listen: (w) => emitter.on(w.resolve), onTime: (w) => w.resolve() });
 */
export const waitFor = <T>(runtime: Runtime, wait: WaitFor<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const { ms, signal } = wait;
    // Each callback below may have ended the wait already.
    let over = false as boolean;
    let timer: unknown;
    let stopListening: (() => void) | undefined = undefined;
    let stopSignal: (() => void) | undefined;
    const end = (): boolean => {
      if (over) return false;
      over = true;
      if (timer !== undefined) runtime.clearTimer(timer);
      stopListening?.();
      stopSignal?.();
      return true;
    };
    const waiting: Waiting<T> = {
      resolve: (value) => {
        if (end()) resolve(value);
      },
      reject: (error) => {
        if (end()) reject(error);
      },
    };
    stopListening = wait.listen(waiting);
    if (over) return stopListening?.();
    if (signal) {
      stopSignal = onAbort(signal, () => wait.onAbort?.(waiting));
      if (signal.aborted) wait.onAbort?.(waiting);
    }
    if (over) return;
    const timeIsOver = (): void => {
      const againInMs = wait.onTime(waiting);
      if (againInMs && !over) timer = runtime.setTimer(timeIsOver, againInMs);
    };
    if (ms <= 0) timeIsOver();
    else if (ms < Infinity) timer = runtime.setTimer(timeIsOver, ms);
  });

/** Resolves when `work` does, or after `ms`. */
export const withinMs = (work: Promise<unknown>, ms: number, runtime: Runtime): Promise<void> =>
  waitFor<void>(runtime, {
    ms,
    listen: (waiting) => void work.then(() => waiting.resolve()),
    onTime: (waiting) => waiting.resolve(),
  });
