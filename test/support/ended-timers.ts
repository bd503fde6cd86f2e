import { afterAll } from 'vitest';

/*
 * Files of the project `fast` share a process. Services that are never closed, as in unit tests of users, have timers for
 * records and renewals. After their file, such a timer would start the next one in the middle of another file, which
 * counts the timers of its fake clock.
 */
const PENDING = Symbol.for('test: timers of this file');
const shared = globalThis as { [PENDING]?: Set<NodeJS.Timeout> };

if (!shared[PENDING]) {
  const pending = (shared[PENDING] = new Set());
  const { setTimeout: start, clearTimeout: end } = globalThis;
  const started = (action: (...args: unknown[]) => void, ms?: number, ...args: unknown[]): NodeJS.Timeout => {
    const run = (): void => {
      pending.delete(timer);
      action(...args);
    };
    const timer = start(run, ms);
    pending.add(timer);
    return timer;
  };
  globalThis.setTimeout = Object.defineProperties(started, Object.getOwnPropertyDescriptors(start)) as never;
  globalThis.clearTimeout = (timer) => {
    pending.delete(timer as NodeJS.Timeout);
    end(timer);
  };
}

afterAll(() => {
  for (const timer of shared[PENDING]!) clearTimeout(timer);
});
