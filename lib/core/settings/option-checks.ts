import { LockConfigurationError } from '../errors/lock.errors.js';
import { shown, textOf } from '../errors/describe.js';

/** Redis takes larger times, but nothing sensible is that long: a year. */
const MAX_LEASE_MS = 366 * 24 * 3_600_000;

/** The error for an option that cannot be meant: its name, what it has to be, and what it is. */
export const refuse = (name: string, expected: string, value: unknown): never => {
  throw new LockConfigurationError(`${name} must be ${expected}, but is ${shown(value)}.`);
};

/** Looks at options. What one of their getters, or a Proxy, throws is a refusal of them as a whole. */
export const reading = <T>(name: string, read: () => T): T => {
  try {
    return read();
  } catch (error) {
    if (error instanceof LockConfigurationError) throw error;
    throw new LockConfigurationError(`${name} cannot be read: ${textOf(error)}.`, { cause: error });
  }
};

/** A whole number of ms in a range, or undefined. */
export const checkMs = (
  name: string,
  value: unknown,
  { min = 0, max = MAX_LEASE_MS, infinite = false } = {},
): number | undefined => {
  if (value === undefined) return undefined;
  if (value === Infinity && infinite) return Infinity;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  return refuse(
    name,
    `a whole number of milliseconds from ${min} to ${max}${infinite ? ', or Infinity' : ''}`,
    value,
  );
};

/** A function, or undefined. */
export const checkFunction = <F extends (...args: never[]) => unknown>(
  name: string,
  value: unknown,
): F | undefined =>
  value === undefined || typeof value === 'function'
    ? (value as F | undefined)
    : refuse(name, 'a function', value);

/** One of a few values, or undefined. */
export const checkChoice = <T>(name: string, value: unknown, choices: readonly T[]): T | undefined => {
  if (value === undefined || choices.includes(value as T)) return value as T | undefined;
  return refuse(name, choices.map((choice) => JSON.stringify(choice)).join(' or '), value);
};

/** A whole number or Infinity, or undefined. */
export const checkCount = (name: string, value: unknown): number | undefined => {
  if (value === undefined || value === Infinity) return value;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  return refuse(name, 'a whole number, or Infinity', value);
};
