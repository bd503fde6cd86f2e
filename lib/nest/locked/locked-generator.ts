import { isBusy, notRun, optionsInside, type CallLocked, type LockedMethodSpec } from './locked-method.js';
import { openSection } from './open-section.js';
import { stepsIn } from './streams.js';

/** Wraps an async generator: its reader holds the lock from the first step to the last. */
export const lockedGenerator = (spec: LockedMethodSpec): CallLocked =>
  async function* (self, args, inside): AsyncGenerator<unknown, unknown, unknown> {
    const { onBusy } = spec.options;
    const locks = spec.serviceOf(self);
    const keys = spec.keysOf(locks, args, self);
    const options = spec.optionsOf(self, args);
    let section;
    try {
      section = await openSection(
        (body) => spec.run(locks, keys, optionsInside(spec, options, inside), body),
        () => notRun(spec),
      );
    } catch (error) {
      if (!onBusy || !isBusy(error, false)) throw error;
      if (onBusy === 'skip') return undefined;
      return yield* onBusy.apply(self as never, [error, ...args] as never) as AsyncGenerator<
        unknown,
        unknown,
        unknown
      >;
    }
    const opened = section;
    let done = false;
    try {
      const source = opened.inSection(() => spec.original.apply(self, args)) as AsyncGenerator<
        unknown,
        unknown,
        unknown
      >;
      const result = yield* stepsIn((fn) => opened.inSection(fn), source);
      done = true;
      return result;
    } finally {
      // An error of the body takes precedence over an error of the lock's end.
      await (done ? opened.end() : opened.end().catch(() => undefined));
    }
  };
