import { isArray } from '../errors/describe.js';
import { isSignal } from './lock-call.js';
import type { LockSettings } from './lock-settings.js';
import { checkMs, reading, refuse } from './option-checks.js';
import { checkNames, type Names } from './option-names.js';

/** Options of a wait for permits of a semaphore, or for a latch. An explicit `undefined` keeps the default. */
export interface WaitOptions {
  /**
   * How long to wait, in whole ms. Default: the module's `waitMs` (5,000); 0 for the methods that begin with `try`.
   * `Infinity` waits without end. 0 asks once.
   */
  readonly waitMs?: number;
  /** Ends the wait with `LockAbortedError`. Permits that were granted before are the caller's. */
  readonly signal?: AbortSignal;
}

/** One wait at an object without a holder, resolved and checked. */
export interface ObjectCall {
  readonly waitMs: number;
  readonly signal: AbortSignal | undefined;
}

const WAIT_NAMES: Names<WaitOptions> = { waitMs: true, signal: true };

/** Java's `int` ends there. */
const MOST = 2 ** 31 - 1;

/** Throws `LockConfigurationError` naming the option that is wrong, or that is none of `place`. */
export const resolveWait = (
  options: WaitOptions | undefined,
  place: string,
  { waitMs }: Pick<LockSettings, 'waitMs'>,
): ObjectCall =>
  reading('options', () => {
    if (options === undefined) return { waitMs, signal: undefined };
    if (typeof options !== 'object' || options === null || isArray(options)) {
      refuse('options', 'an object such as { waitMs: 2_000 }', options);
    }
    checkNames(options, place, WAIT_NAMES);
    const { signal } = options;
    if (signal !== undefined && !isSignal(signal)) refuse('signal', 'an AbortSignal', signal);
    return { waitMs: checkMs('waitMs', options.waitMs, { infinite: true }) ?? waitMs, signal };
  });

/** How many permits, or how much a latch has to be counted down. */
export const checkAmount = (name: string, value: unknown): number =>
  typeof value === 'number' && Number.isInteger(value) && value >= 1 && value <= MOST
    ? value
    : refuse(name, `a whole number from 1 to ${MOST}`, value);

/** By how many permits there are to be more; fewer with a number below zero. */
export const checkChange = (name: string, value: unknown): number =>
  typeof value === 'number' && Number.isInteger(value) && value !== 0 && Math.abs(value) <= MOST
    ? value
    : refuse(name, `a whole number from -${MOST} to ${MOST}, and not 0`, value);
