import { systemRuntime, type Runtime } from '../../core/util/runtime.js';
import { checkChoice, checkMs, invalidOption } from '../../core/settings/option-checks.js';

const DEFAULT_COMMAND_TIMEOUT_MS = 2_000;
const DEFAULT_LANES = 4;

/** Table of the locks, unless an option names another one. */
export const DEFAULT_TABLE = 'nest_lock';

/** Options that all databases have in common, as they are given. */
interface GivenOptions {
  readonly runtime?: Runtime | undefined;
  readonly lanes?: unknown;
  readonly pooled?: unknown;
  readonly commandTimeoutMs?: unknown;
  readonly migrate?: unknown;
}

/**
 * Returns the options that all databases have in common, with defaults.
 *
 * @throws {LockConfigurationError} for one that cannot be used
 */
export const resolveSqlOptions = (given: GivenOptions) => ({
  runtime: given.runtime ?? systemRuntime(),
  commandTimeoutMs:
    checkMs('commandTimeoutMs', given.commandTimeoutMs, { min: 1 }) ?? DEFAULT_COMMAND_TIMEOUT_MS,
  pooled: checkChoice('pooled', given.pooled, [true, false]) ?? false,
  lanes: resolveLanes(given.lanes),
  migratesOnStart: checkChoice('migrate', given.migrate, ['on start']) !== undefined,
});

const resolveLanes = (lanes: unknown = DEFAULT_LANES): number => {
  if (Number.isInteger(lanes) && (lanes as number) >= 1 && (lanes as number) <= 100) return lanes as number;
  return invalidOption('lanes', 'a whole number from 1 to 100', lanes);
};

/** Returns whether a `/` or `#` in the password has ended the name of the server: what follows is shown as a database. */
export const hasOpenPassword = (address: string): boolean => /^\w+:\/\/[^/?#]*[/#][^?]*@/.test(address);
