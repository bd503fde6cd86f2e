import { LockConfigurationError, withStackFromHere } from '../errors/lock.errors.js';
import { formatValue, isArray, textOf } from '../util/describe.js';

/** Maximum duration: 366 days. Redis allows more, but a longer lease is a mistake. */
const MAX_LEASE_MS = 366 * 24 * 3_600_000;

/** Throws the error for an invalid option: its name, what it must be, and what it is. */
export const invalidOption = (name: string, expected: string, value: unknown): never => {
  throw new LockConfigurationError(`${name} must be ${expected}, but is ${formatValue(value)}.`);
};

/** Rejects the name of a server with a login, which logs and errors would show. */
export const checkLogin = (name: string, server: unknown): void => {
  if (typeof server !== 'string' || !server.includes('@')) return;
  throw new LockConfigurationError(
    `${name} contains an @. It is a name or an address; give user and password as options of their own.`,
  );
};

/** Checks that options are an object. */
export const checkObject = (name: string, expected: string, value: unknown): void => {
  if (typeof value !== 'object' || value === null || isArray(value)) invalidOption(name, expected, value);
};

/** Reads options. An error of a getter or a Proxy rejects the options as a whole. */
export const reading = <T>(name: string, read: () => T): T => {
  try {
    return read();
  } catch (error) {
    // The checks are deep: else the stack would end before the caller.
    if (error instanceof LockConfigurationError) throw withStackFromHere(error);
    throw new LockConfigurationError(`${name} cannot be read: ${textOf(error)}.`, { cause: error });
  }
};

/** Adds where it happened to the error of a check: `Class.method`. */
export const named = <T>(where: string, check: () => T): T => {
  try {
    return check();
  } catch (error) {
    throw new LockConfigurationError(`${where}: ${(error as Error).message}`, { cause: error });
  }
};

/** Checks a whole number of ms in a range, or undefined. */
export const checkMs = (
  name: string,
  value: unknown,
  { min = 0, max = MAX_LEASE_MS, infinite = false, why = '' } = {},
): number | undefined => {
  if (value === undefined) return undefined;
  if (value === Infinity && infinite) return Infinity;
  if (typeof value === 'number' && Number.isInteger(value) && value >= min && value <= max) return value;
  return invalidOption(
    name,
    `a whole number of milliseconds from ${min} to ${max}${infinite ? ', or Infinity' : ''}${why}`,
    value,
  );
};

export const checkFunction = <F extends (...args: never[]) => unknown>(
  name: string,
  value: unknown,
): F | undefined =>
  value === undefined || typeof value === 'function'
    ? (value as F | undefined)
    : invalidOption(name, 'a function', value);

export const checkChoice = <T>(name: string, value: unknown, choices: readonly T[]): T | undefined => {
  if (value === undefined || choices.includes(value as T)) return value as T | undefined;
  return invalidOption(name, choices.map((choice) => JSON.stringify(choice)).join(' or '), value);
};

export const checkCount = (name: string, value: unknown): number | undefined => {
  if (value === undefined || value === Infinity) return value;
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  return invalidOption(name, 'a whole number, or Infinity', value);
};

export const checkText = (name: string, value: unknown, maxLength: number): string | undefined => {
  if (value === undefined) return undefined;
  if (typeof value === 'string' && value !== '' && value.length <= maxLength && value.isWellFormed())
    return value;
  return invalidOption(name, `well-formed text of 1 to ${maxLength} characters`, value);
};
