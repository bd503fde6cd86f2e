import { deadlineOf, type TimedWait } from '../wait/wait.js';
import type { CoreContext } from '../context/core-context.js';
import { waitFor } from '../util/wait-for.js';

/**
 * Sends a request that changes nothing, while the store fails. The end of the wait, an abort and a shutdown do not wait
 * for its reply.
 *
 * @param late returns the error at the end of the wait
 */
export const unlessOver = <T>(
  core: CoreContext,
  wait: TimedWait,
  send: () => Promise<T>,
  late: () => Error,
): Promise<T> =>
  waitFor<T>(core.runtime, {
    // Timers may come a moment early.
    ms: Math.ceil(deadlineOf(wait) - core.runtime.now()) + 1,
    signal: wait.signal,
    listen: ({ resolve, reject }) => {
      const stop = (): void => {
        const over = core.reasonToStop(wait);
        if (over) reject(over);
      };
      if (core.runtime.now() < deadlineOf(wait)) send().then(resolve, reject);
      return core.onStop(stop);
    },
    onTime: ({ reject }) => reject(late()),
    onAbort: ({ reject }) => reject(core.reasonToStop(wait)!),
  });
