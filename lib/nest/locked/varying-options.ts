import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { invalidOption, named } from '../../core/settings/option-checks.js';
import type { DecoratorName } from './check-use.js';
import { isPromiseLike } from './held-iterable.js';
import type { VaryingOptions } from './locked.options.js';

/** Function of a decorator that returns further options of one call. */
export type Vary = (self: never, ...args: never[]) => VaryingOptions | undefined;

/** Options that are the same for all calls of a method, and why. */
const FIXED: Readonly<Record<string, string>> = {
  service: 'the start of the app looks for it',
  onBusy: 'it decides about the type of the result',
  mode: 'the keys are checked with it when the class is loaded',
  oncePerMs: 'the result is checked with it when the class is loaded',
  label: 'it names the method',
  permits: 'the number of the newest call would apply to all',
};

/**
 * Returns the function for options of a decorator, from its arguments after the options.
 *
 * @throws LockConfigurationError for what is no function, and for further arguments
 */
export const checkVary = (
  decorator: DecoratorName,
  where: string,
  [vary, ...rest]: readonly unknown[],
): Vary | undefined =>
  named(where, () => {
    if (rest.some((more) => more !== undefined)) {
      throw new LockConfigurationError(
        `${decorator} takes a key, its options, and a function for further ones, and nothing after these.`,
      );
    }
    if (vary === undefined || typeof vary === 'function') return vary as Vary | undefined;
    return invalidOption(
      `The third argument of ${decorator}`,
      'a function that returns further options',
      vary,
    );
  });

/**
 * Returns a function that joins the fixed options of a decorator and what `vary` returns for a call. It checks them once for
 * each object that `vary` returns.
 *
 * @param whole the fixed options, as they were checked
 * @param check returns the options of a call from all options of the decorator, or throws for a wrong one
 */
export const varyingOptions = <O extends object>(
  fixed: object,
  whole: O,
  vary: Vary,
  check: (options: () => object) => O,
): ((self: unknown, args: readonly unknown[]) => O) => {
  const checked = new WeakMap<object, O>();
  return (self, args) => {
    const more: unknown = vary(self as never, ...(args as never[]));
    if (more === undefined) return whole;
    const known = typeof more === 'object' && more !== null ? checked.get(more) : undefined;
    if (known) return known;
    const options = check(() => ({ ...fixed, ...furtherOptions(fixed, more) }));
    checked.set(more as object, options);
    return options;
  };
};

/** Returns what was returned, without names that are undefined: these keep their default. */
const furtherOptions = (fixed: object, more: unknown): object => {
  // Its rejection would be one that no code handles.
  if (isPromiseLike(more)) void Promise.resolve(more).catch(() => undefined);
  if (typeof more !== 'object' || more === null || Array.isArray(more) || isPromiseLike(more))
    return invalidOption(
      'The result of the function for options',
      'an object such as { waitMs: 2_000 }, and no promise',
      more,
    );
  const given = Object.entries(more).filter(([, value]) => value !== undefined);
  for (const [name] of given) {
    const why = Object.hasOwn(FIXED, name) ? FIXED[name] : undefined;
    if (why !== undefined)
      throw new LockConfigurationError(
        `${name} cannot vary from call to call: ${why}. Put it into the options.`,
      );
    if (Object.hasOwn(fixed, name) && (fixed as Record<string, unknown>)[name] !== undefined)
      throw new LockConfigurationError(
        `${name} stands in the options, and the function for options returns it, too: keep the one that is meant.`,
      );
  }
  return Object.fromEntries(given);
};
