import { LockError } from '../index.js';
import { EXIT, type ExitCode } from './commands.js';
import { printable } from './table.js';
import { UsageError } from './usage-error.js';

const printableLines = (text: string): string => text.split('\n').map(printable).join('\n');

interface Failure {
  readonly exitCode: ExitCode;
  readonly text: string;
}

/**
 * Returns the exit code of an error, and its text, which cannot steer the terminal: it may contain a key, or what a server
 * replied. Only an unexpected error shows its stack.
 */
export const failureOf = (error: unknown): Failure => {
  if (error instanceof UsageError)
    return { exitCode: EXIT.USAGE, text: printable(`${error.message} See nest-redis-lock --help.`) };
  if (!(error instanceof LockError)) {
    const text = error instanceof Error ? (error.stack ?? error.message) : String(error);
    return { exitCode: EXIT.FAILED, text: printableLines(text) };
  }
  const isUsage = error.code === 'LOCK_CONFIGURATION' || error.code === 'LOCK_KEY_INVALID';
  // A statement to run is pasted as it stands.
  const text = error.code === 'LOCK_CONFIGURATION' ? printableLines(error.message) : printable(error.message);
  return { exitCode: isUsage ? EXIT.USAGE : EXIT.FAILED, text };
};
