import { isSignal } from './lock-call.js';
import type { LockSettings } from './lock-settings.js';
import { checkMs, checkObject, reading, invalidOption } from './option-checks.js';
import { checkNames, type Names } from './option-names.js';
import { namesOf } from './option-table.js';

/** Options of a wait for a semaphore or a latch. `undefined` keeps the default. */
export interface WaitOptions {
  /**
   * Maximum wait in whole ms. `Infinity`: no limit. 0: one request. Default: the module's `waitMs` (5,000); 0 for the
   * methods that begin with `try`.
   */
  readonly waitMs?: number | undefined;
  /** Signal that ends the wait with `LockAbortedError`. If permits were granted before, the caller gets them. */
  readonly signal?: AbortSignal | undefined;
}

/** Options of one wait for a semaphore or a latch, checked and with defaults. */
export interface ObjectCall {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

const WAIT_NAMES = namesOf('wait') satisfies Names<WaitOptions>;

/** Largest number of permits or count of a latch: the maximum of Java's `int`. */
export const MAX_AMOUNT = 2 ** 31 - 1;

/**
 * Returns the options of a wait, with defaults.
 *
 * @throws LockConfigurationError naming the invalid option, or one that `owner` does not have
 */
export const resolveWait = (
  options: WaitOptions | undefined,
  owner: string,
  { waitMs }: Pick<LockSettings, 'waitMs'>,
): ObjectCall =>
  reading('options', () => {
    if (options === undefined) return { waitMs, signal: undefined };
    checkObject('options', 'an object such as { waitMs: 2_000 }', options);
    checkNames(options, owner, WAIT_NAMES);
    const { signal } = options;
    if (signal !== undefined && !isSignal(signal)) invalidOption('signal', 'an AbortSignal', signal);
    return { waitMs: checkMs('waitMs', options.waitMs, { infinite: true }) ?? waitMs, signal };
  });

/** Checks a number of permits, or the count of a latch. */
export const checkAmount = (name: string, value: unknown): number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MAX_AMOUNT
    ? value
    : invalidOption(name, `a whole number from 1 to ${MAX_AMOUNT}`, value);

/** Checks a change of a number of permits, which may be negative. */
export const checkChange = (name: string, value: unknown): number =>
  typeof value === 'number' && Number.isInteger(value) && value !== 0 && Math.abs(value) <= MAX_AMOUNT
    ? value
    : invalidOption(name, `a whole number from -${MAX_AMOUNT} to ${MAX_AMOUNT}, and not 0`, value);
