import { onAbort } from './abort-listeners.js';
import type { Runtime } from './runtime.js';

/** A wait that goes on; settling it a second time does nothing. */
export interface Waiting<T> {
  readonly resolve: (value: T) => void;
  readonly reject: (error: Error) => void;
}

/** What is waited for, and what may come instead. */
export interface WaitFor<T> {
  /** How long at most, in ms; `Infinity` for as long as it takes. */
  readonly ms: number;
  /** The caller's signal. */
  readonly signal?: AbortSignal | undefined;
  /** Begins to listen for the event, and gives what stops that. */
  listen(waiting: Waiting<T>): (() => void) | undefined;
  /** The time is over. The wait goes on unless this settles it. */
  onTime(waiting: Waiting<T>): void;
  /** The signal was aborted. */
  onAbort?(waiting: Waiting<T>): void;
}

/**
 * Waits for an event, a timer or an abort, whichever settles the wait first, and lets go of all three.
 *
 * @example
 * await waitFor<void>(runtime, { ms: 50, listen: (w) => emitter.on(w.resolve), onTime: (w) => w.resolve() });
 */
export const waitFor = <T>(runtime: Runtime, wait: WaitFor<T>): Promise<T> =>
  new Promise((resolve, reject) => {
    const { ms, signal } = wait;
    let over = false;
    let timer: unknown;
    const stops: (() => void)[] = [];
    const end = (): boolean => {
      if (over) return false;
      over = true;
      if (timer !== undefined) runtime.clearTimer(timer);
      for (const stop of stops) stop();
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
    // Functions, because whatever is called here may have ended the wait already.
    const goesOn = (): boolean => !over;
    const stopListening = wait.listen(waiting);
    if (!goesOn()) return stopListening?.();
    if (stopListening) stops.push(stopListening);
    if (signal) {
      stops.push(onAbort(signal, () => wait.onAbort?.(waiting)));
      if (signal.aborted) wait.onAbort?.(waiting);
    }
    if (!goesOn()) return;
    if (ms <= 0) wait.onTime(waiting);
    else if (ms < Infinity) timer = runtime.setTimer(() => wait.onTime(waiting), ms);
  });

/** Resolves when `work` does, or after `ms`. */
export const withinMs = (work: Promise<void>, ms: number, runtime: Runtime): Promise<void> =>
  waitFor<void>(runtime, {
    ms,
    listen: (waiting) => void work.then(() => waiting.resolve()),
    onTime: (waiting) => waiting.resolve(),
  });
