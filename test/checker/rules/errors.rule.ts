import type { ErrorSeen } from '../history.js';
import type { Violation } from '../violation.js';
import type { Rule } from './rule.js';

/** What every code of the library is named by. */
const NAMES: Readonly<Record<string, string>> = {
  LOCK_TAKEN: 'LockNotAcquiredError',
  LOCK_QUEUE_FULL: 'LockNotAcquiredError',
  LOCK_NOT_REENTRANT: 'LockNotAcquiredError',
  LOCK_LOST: 'LockLostError',
  LOCK_STORE_FAILED: 'LockStoreError',
  LOCK_KEY_INVALID: 'LockKeyError',
  LOCK_CONFIGURATION: 'LockConfigurationError',
  LOCK_ABORTED: 'LockAbortedError',
  LOCK_SHUTDOWN: 'LockAbortedError',
};

/** These come from something underneath. */
const CAUSED = new Set(['LOCK_STORE_FAILED', 'LOCK_ABORTED']);

const complaint = ({ name, code, hasCause, message }: ErrorSeen): string | undefined => {
  if (code === undefined || NAMES[code] !== name) return `got ${name} (${code}): ${message}`;
  return CAUSED.has(code) && !hasCause ? `got a ${name} without a cause: ${message}` : undefined;
};

/** Every error is one of the library's, with a cause where there is one, and none goes uncaught. */
export const errors: Rule = function* (past): Generator<Violation> {
  for (const { at, call, error } of past.all('refused')) {
    const text = error && complaint(error);
    if (text) yield { rule: 'errors', at, text: `${call} ${text}` };
  }
  for (const { at, process, doing, error } of past.all('result')) {
    const text = error && complaint(error);
    if (text) yield { rule: 'errors', at, text: `${process}: ${doing} ${text}` };
  }
  for (const { at, use, error } of past.all('used')) {
    const text = error && complaint(error);
    if (text) yield { rule: 'errors', at, text: `${use} ${text}` };
  }
  for (const { at, message } of past.all('unhandled')) {
    yield { rule: 'errors', at, text: `nobody caught: ${message}` };
  }
};
