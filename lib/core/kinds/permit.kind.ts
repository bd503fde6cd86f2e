import type { Kind } from './kind.js';

/**
 * One of a limited number of permits: Redisson's RPermitExpirableSemaphore, whose permits have names of 16 bytes. A
 * nested call takes another permit: the limit counts running work, not callers.
 */
export const permit = {
  noun: 'permit',
  singleHolder: false,
  eachQueued: false,
  handedOff: false,
  shared: false,
  fenced: false,
  reentrantInto: [],
  downgradesTo: undefined,
  owners: 'short',
} as const satisfies Kind;

/** Reason for a failed claim without a number of permits, when the store has no number for the key. */
export const NO_NUMBER_OF_PERMITS =
  'the store has no number of permits for this key: it was never given, it expired with the last lease, or the store has ' +
  'lost its data. Pass permits in each decorator or call';
