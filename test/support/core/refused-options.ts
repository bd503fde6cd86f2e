import { expect } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';

/** The error with which an option is refused. */
export const refusalOf = (action: () => unknown): LockConfigurationError => {
  try {
    action();
  } catch (error) {
    expect(error).toBeInstanceOf(LockConfigurationError);
    return error as LockConfigurationError;
  }
  throw new Error('nothing was refused');
};

/** What is no duration in ms. */
export const NO_DURATIONS: readonly unknown[] = [
  -1,
  -0.5,
  0.5,
  NaN,
  -Infinity,
  '1000',
  '',
  null,
  true,
  false,
  {},
  [],
  [1_000],
  1n,
  new Date(),
  () => 1,
  Number.MAX_SAFE_INTEGER + 1,
  2 ** 63,
];
