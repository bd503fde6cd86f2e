import { isBusy, notRun, optionsNow, type AnyMethod, type LockedMethodSpec } from './locked-method.js';
import { openSection } from './open-section.js';
import { stepsIn } from './streams.js';

/** Wraps an async generator: its reader holds the lock from the first step to the last. */
export const lockedGenerator = (spec: LockedMethodSpec): AnyMethod =>
  async function* (this: unknown, ...args: unknown[]): AsyncGenerator<unknown, unknown, unknown> {
    const { onBusy } = spec.options;
    const locks = spec.serviceOf(this);
    const keys = spec.keysOf(locks, args, this);
    let section;
    try {
      section = await openSection(
        (body) => spec.run(locks, keys, optionsNow(spec), body),
        () => notRun(spec),
      );
    } catch (error) {
      if (!onBusy || !isBusy(error, false)) throw error;
      if (onBusy === 'skip') return undefined;
      return yield* onBusy.apply(this as never, [error, ...args] as never) as AsyncGenerator<
        unknown,
        unknown,
        unknown
      >;
    }
    const opened = section;
    let done = false;
    try {
      const source = opened.inSection(() => spec.original.apply(this, args)) as AsyncGenerator<
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
