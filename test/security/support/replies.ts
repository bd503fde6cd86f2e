import { LockError } from 'nest-redis-lock';
import { within } from '../../support/async.js';

/** What a busy machine may add before a test says that something did not end in time. */
const SLACK_MS = 5_000;

/** The code of the lock error with which something fails, or 'no error'. Any other error is not caught. */
export const codeOf = async (requested: Promise<unknown>): Promise<string> => {
  try {
    await requested;
    return 'no error';
  } catch (error) {
    if (error instanceof LockError) return error.code;
    throw error;
  }
};

/** Fails when something takes longer than it may: the caller's wait and one command time-out. */
export const inTime = <T>(requested: Promise<T>, waitMs: number, commandTimeoutMs: number): Promise<T> =>
  within(waitMs + commandTimeoutMs + SLACK_MS, requested, 'what should end within its wait');
