import type { Runtime } from '../../../core/util/runtime.js';

/** Calls `action` every `ms`, in the background. Returns the function that ends the calls. */
export const every = (runtime: Runtime, ms: number, action: () => void): (() => void) => {
  const next = (): unknown => runtime.setTimer(call, ms, true);
  const call = (): void => {
    // Before the action, which may end the calls.
    timer = next();
    action();
  };
  let timer = next();
  return () => runtime.clearTimer(timer);
};

/** Resolves after `ms`. A background pause does not keep the process alive. */
export const pause = (runtime: Runtime, ms: number, background = false): Promise<void> =>
  new Promise((resolve) => void runtime.setTimer(resolve, ms, background));
