import { checkMs, invalidOption } from '../../core/settings/option-checks.js';

const DEFAULT_COMMAND_TIMEOUT_MS = 2_000;
const DEFAULT_LANES = 4;

/** Table of the locks, unless an option names another one. */
export const DEFAULT_TABLE = 'nest_lock';

/** @throws {LockConfigurationError} for a time that cannot be used */
export const resolveTimeoutMs = (commandTimeoutMs: unknown): number =>
  checkMs('commandTimeoutMs', commandTimeoutMs, { min: 1 }) ?? DEFAULT_COMMAND_TIMEOUT_MS;

/** @throws {LockConfigurationError} for a number of connections that cannot be used */
export const resolveLanes = (lanes: unknown = DEFAULT_LANES): number => {
  if (Number.isInteger(lanes) && (lanes as number) >= 1 && (lanes as number) <= 100) return lanes as number;
  return invalidOption('lanes', 'a whole number from 1 to 100', lanes);
};

/** Returns whether a `/` or `#` in the password has ended the name of the server: what follows is shown as a database. */
export const hasOpenPassword = (address: string): boolean => /^\w+:\/\/[^/?#]*[/#][^?]*@/.test(address);
