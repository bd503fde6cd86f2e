import type { Runtime } from '../util/runtime.js';
import { waitFor } from '../util/wait-for.js';
import { deadlineOf, type TimedWait } from './wait.js';

/** What ends the wait of a caller before its time. */
export interface StopHost {
  readonly runtime: Runtime;
  /** Returns the error for a caller that must stop waiting; undefined while it may go on. */
  reasonToStop(wait: TimedWait): Error | undefined;
  /** Registers a listener for changes of {@link reasonToStop}; returns a function that removes it. */
  onStop(listener: () => void): () => void;
}

/**
 * Sends a request that changes nothing, while the store fails. The end of the wait, an abort and a shutdown do not wait
 * for its reply.
 *
 * @param late returns the error at the end of the wait
 */
export const unlessOver = <T>(
  host: StopHost,
  wait: TimedWait,
  send: () => Promise<T>,
  late: () => Error,
): Promise<T> => {
  let stopListening: (() => void) | undefined;
  return waitFor<T>(host.runtime, {
    // Timers may come a moment early.
    ms: Math.ceil(deadlineOf(wait) - host.runtime.now()) + 1,
    signal: wait.signal,
    listen: (waiting) => {
      const stop = (): void => {
        const over = host.reasonToStop(wait);
        if (over) waiting.reject(over);
      };
      if (host.runtime.now() < deadlineOf(wait)) {
        send().then(
          (value) => waiting.resolve(value),
          (error: Error) => waiting.reject(error),
        );
      }
      stopListening = host.onStop(stop);
    },
    stop: () => stopListening?.(),
    onTime: (waiting) => waiting.reject(late()),
    onAbort: (waiting) => waiting.reject(host.reasonToStop(wait)!),
  });
};
