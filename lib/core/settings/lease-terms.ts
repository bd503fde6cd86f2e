import { LockConfigurationError } from '../errors/lock.errors.js';
import type { SectionOptions } from './acquire-options.js';
import { checkMs, invalidOption } from './option-checks.js';

/** Least `watchdogMs`, in ms. A store whose commands may take longer has a larger one. */
export const LEAST_WATCHDOG_MS = 1_000;

/** How long a call holds its lock, checked and with defaults. */
export interface LeaseTerms {
  /** Length in ms of a fixed lease; undefined: the watchdog renews. */
  readonly leaseMs: number | undefined;
  /** Lease length in ms when no fixed lease is given. */
  readonly watchdogMs: number;
  readonly holdAtLeastMs: number;
  /** `Infinity`: no limit. */
  readonly maxHoldMs: number;
  /** Window in ms, from the grant, in which the section succeeds once; undefined: none. */
  readonly oncePerMs: number | undefined;
}

type Options = Pick<SectionOptions, 'leaseMs' | 'watchdogMs' | 'holdAtLeastMs' | 'maxHoldMs' | 'oncePerMs'>;

/** Options that exclude each other, and why. */
const EXCLUSIVE: readonly (readonly [keyof Options, keyof Options, string])[] = [
  ['leaseMs', 'watchdogMs', 'A fixed lease is not renewed: keep the one that is meant.'],
  ['leaseMs', 'maxHoldMs', 'A fixed lease ends by itself: keep the one that is meant.'],
  ['leaseMs', 'oncePerMs', 'The watchdog renews the lease until the work has ended: leave out leaseMs.'],
  ['holdAtLeastMs', 'oncePerMs', 'Both keep the lock after the work: keep the one that is meant.'],
];

/** Throws for options that exclude each other. */
const checkTogether = (options: Options): void => {
  for (const [one, other, remedy] of EXCLUSIVE) {
    if (options[one] === undefined || options[other] === undefined) continue;
    throw new LockConfigurationError(`Both ${one} and ${other} are given. ${remedy}`);
  }
};

/** Returns the limit of a hold, which must not come before the first renewal of its lease. */
export const checkMaxHold = (value: unknown, watchdogMs: number): number | undefined => {
  const maxHoldMs = checkMs('maxHoldMs', value, { min: 1, infinite: true });
  if (maxHoldMs === undefined || maxHoldMs >= watchdogMs / 3) return maxHoldMs;
  return invalidOption('maxHoldMs', `at least a third of watchdogMs, which is ${watchdogMs} ms`, maxHoldMs);
};

/**
 * Returns the terms of a call. A call with an own `watchdogMs`, `maxHoldMs` or `oncePerMs` does not want the module's fixed
 * lease.
 *
 * @throws LockConfigurationError naming the invalid option, or two that exclude each other
 */
export const leaseTermsOf = (options: Options, defaults: LeaseTerms, minWatchdogMs: number): LeaseTerms => {
  const why = minWatchdogMs > LEAST_WATCHDOG_MS ? ' (more than commandTimeoutMs of the store)' : '';
  const ownWatchdogMs = checkMs('watchdogMs', options.watchdogMs, { min: minWatchdogMs, why });
  const fixedMs = checkMs('leaseMs', options.leaseMs, { min: 1 });
  const watchdogMs = ownWatchdogMs ?? defaults.watchdogMs;
  const ownMaxMs = checkMaxHold(options.maxHoldMs, watchdogMs);
  const oncePerMs = checkMs('oncePerMs', options.oncePerMs, { min: 1 });
  checkTogether(options);
  const isRenewed = (ownWatchdogMs ?? ownMaxMs ?? oncePerMs) !== undefined;
  const leaseMs = fixedMs ?? (isRenewed ? undefined : defaults.leaseMs);
  const holdAtLeastMs = checkMs('holdAtLeastMs', options.holdAtLeastMs) ?? defaults.holdAtLeastMs;
  if (leaseMs !== undefined && holdAtLeastMs > leaseMs) {
    invalidOption('holdAtLeastMs', `at most leaseMs, which is ${leaseMs} ms and not renewed`, holdAtLeastMs);
  }
  const maxHoldMs =
    leaseMs === undefined ? (ownMaxMs ?? checkMaxHold(defaults.maxHoldMs, watchdogMs)!) : Infinity;
  return { leaseMs, watchdogMs, holdAtLeastMs, maxHoldMs, oncePerMs };
};
