import type { SectionOptions } from '../core/settings/acquire-options.js';
import type { LockNotAcquiredError } from '../core/errors/lock.errors.js';

/** Options of `@Locked`. */
export interface LockedOptions extends SectionOptions {
  /**
   * What happens instead of an error when the lock is taken. `skip`: the method does not run and gives undefined;
   * it does not wait either, so `waitMs` cannot be given. A function: it runs in the method's place, with its `this`,
   * the error, and the arguments. Default: `LockNotAcquiredError`.
   */
  readonly onBusy?: 'skip' | BusyFallback;
  /** The name of the module whose service takes the lock: that of `forRoot({ name })`. Default: the unnamed one. */
  readonly service?: string;
}

/** Runs in the place of a method whose lock is taken. */
export type BusyFallback = (this: never, error: LockNotAcquiredError, ...args: never[]) => unknown;
