import type { EventEmitter } from 'node:events';

/** Counts timers that are set, also those in the background, which no list of Node's has. */
export const countTimers = (): (() => number) => {
  const live = new Set<unknown>();
  const {
    setTimeout: setOnce,
    clearTimeout: clearOnce,
    setInterval: setAgain,
    clearInterval: clearAgain,
  } = globalThis;
  const set = ((action: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const timer = setOnce(() => {
      live.delete(timer);
      action(...args);
    }, ms);
    live.add(timer);
    return timer;
  }) as typeof setTimeout;
  const repeat = ((action: (...args: unknown[]) => void, ms?: number, ...args: unknown[]) => {
    const timer = setAgain(action, ms, ...args);
    live.add(timer);
    return timer;
  }) as typeof setInterval;
  globalThis.setTimeout = Object.assign(set, setOnce);
  globalThis.setInterval = Object.assign(repeat, setAgain);
  globalThis.clearTimeout = (timer) => {
    live.delete(timer);
    clearOnce(timer);
  };
  globalThis.clearInterval = (timer) => {
    live.delete(timer);
    clearAgain(timer);
  };
  return () => live.size;
};

/** All listeners of an emitter, whatever they listen to. */
export const countListeners = (emitter: EventEmitter): number =>
  emitter.eventNames().reduce((total, name) => total + emitter.listenerCount(name), 0);
