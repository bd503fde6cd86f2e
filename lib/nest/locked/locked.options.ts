import type {
  PermitSectionOptions,
  PermitsOptions,
  SectionOptions,
} from '../../core/settings/acquire-options.js';
import type { LockNotAcquiredError } from '../../core/errors/lock.errors.js';

/** Options of a decorator in addition to those of its section. */
export interface DecoratorOptions {
  /**
   * What to do when the lock is taken, or no permit is free, instead of throwing. `skip`: the method does not run and
   * returns undefined; it does not wait, so `waitMs` cannot be given. A function runs in place of the method, with the
   * method's `this`, the error, and the arguments. Default: throw `LockNotAcquiredError`.
   */
  readonly onBusy?: 'skip' | BusyFallback | undefined;
  /** Name of the lock module to use: the `name` of its `forRoot`. Default: the unnamed one. */
  readonly service?: string | undefined;
}

/** Options of `@Locked`. */
export interface LockedOptions extends Omit<SectionOptions, 'inside'>, DecoratorOptions {}

/** Options of `@Limited`. */
export interface LimitedOptions extends PermitSectionOptions, PermitsOptions, DecoratorOptions {}

/**
 * Options that a function of `@Locked` or `@Limited` may return for each call, beside those that are fixed: a lease from the
 * configuration, a wait that depends on an argument. A name that is undefined keeps its default.
 */
export type VaryingOptions = Pick<
  PermitSectionOptions,
  'waitMs' | 'leaseMs' | 'watchdogMs' | 'holdAtLeastMs' | 'maxHoldMs' | 'signal' | 'onLost' | 'awaitRelease'
>;

/** Function that runs in place of a method whose lock is taken, or for which no permit is free. */
export type BusyFallback = (this: never, error: LockNotAcquiredError, ...args: never[]) => unknown;
