import { expect } from 'vitest';
import { LockConfigurationError, LockKeyError } from '../../../lib/core/errors/lock.errors.js';

/** What became of a call: its result, or what it threw. */
export type Outcome<T> = { readonly value: T } | { readonly thrown: unknown };

/** Runs it, whether it throws or gives a promise that rejects. */
export const outcomeOf = async <T>(action: () => T | Promise<T>): Promise<Outcome<T>> => {
  try {
    return { value: await action() };
  } catch (thrown) {
    return { thrown };
  }
};

const describe = (thrown: unknown): string =>
  thrown instanceof Error ? `${thrown.name}: ${thrown.message}` : `something of type ${typeof thrown}`;

/** The value, when it was accepted. */
export const expectAccepted = <T>(outcome: Outcome<T>, name: string): T => {
  if ('value' in outcome) return outcome.value;
  return expect.fail(`${name} was refused: ${describe(outcome.thrown)}`);
};

/** The library's own error, which names what is wrong. */
export const expectRefusal = (outcome: Outcome<unknown>, name: string): void => {
  if (!('thrown' in outcome)) return expect.fail(`${name} was accepted`);
  const { thrown } = outcome;
  if (!(thrown instanceof LockConfigurationError)) {
    return expect.fail(`${name} ended in an error of another kind: ${describe(thrown)}`);
  }
  expect(thrown.code).toBe('LOCK_CONFIGURATION');
  expect(thrown.message).toMatch(new RegExp(`\\b${name}\\b`));
};

/** The error of keys. */
export const expectKeyRefusal = (outcome: Outcome<unknown>): void => {
  if (!('thrown' in outcome)) return expect.fail('the key was accepted');
  if (!(outcome.thrown instanceof LockKeyError)) {
    expect.fail(`it ended in an error of another kind: ${describe(outcome.thrown)}`);
  }
};

/** The text of what was thrown. */
export const messageOf = (outcome: Outcome<unknown>): string =>
  'thrown' in outcome && outcome.thrown instanceof Error ? outcome.thrown.message : '';
