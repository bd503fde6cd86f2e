import type {
  PermitSectionOptions,
  PermitsOptions,
  SectionOptions,
} from '../core/settings/acquire-options.js';
import type { LockNotAcquiredError } from '../core/errors/lock.errors.js';

/** What a decorator takes beside the options of its section. */
export interface DecoratorOptions {
  /**
   * What happens instead of an error when the lock is taken, or no permit is free. `skip`: the method does not run and
   * gives undefined; it does not wait either, so `waitMs` cannot be given. A function: it runs in the method's place,
   * with its `this`, the error, and the arguments. Default: `LockNotAcquiredError`.
   */
  readonly onBusy?: 'skip' | BusyFallback;
  /** The name of the module whose service is asked: that of `forRoot({ name })`. Default: the unnamed one. */
  readonly service?: string;
}

/** Options of `@Locked`. */
export interface LockedOptions extends SectionOptions, DecoratorOptions {}

/** Options of `@Limited`. */
export interface LimitedOptions extends PermitSectionOptions, PermitsOptions, DecoratorOptions {}

/** Runs in the place of a method whose lock is taken, or for which no permit is free. */
export type BusyFallback = (this: never, error: LockNotAcquiredError, ...args: never[]) => unknown;
