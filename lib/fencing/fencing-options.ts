import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { checkChoice, checkObject, invalidOption, reading } from '../core/settings/option-checks.js';
import { checkNames, type Names } from '../core/settings/option-names.js';
import { DIALECTS, type FencingDialect } from './fence-dialects.js';
import type { Statements } from './transactions.js';

/** Options of the fence. */
export interface FencingOptions {
  /** Table of the fences: `table` or `schema.table`. Default: `lock_fence`. */
  readonly table?: string | undefined;
  /** The database. Required where the transaction does not tell: for a function, and for some drivers. */
  readonly dialect?: FencingDialect | undefined;
}

export const DEFAULT_TABLE = 'lock_fence';

const NAMES: Names<FencingOptions> = { table: true, dialect: true };

/** At most 63 characters in each part, as in PostgreSQL. The quotes of no database can be in it. */
const TABLE = /^\w{1,63}(\.\w{1,63})?$/;

const checkTable = (table: unknown): string =>
  typeof table === 'string' && TABLE.test(table)
    ? table
    : invalidOption('table', 'the name of a table, or schema.table, of letters, digits and _', table);

/** @param caller function that has the options, for messages */
export const resolveFencing = (
  caller: string,
  options: unknown,
  names: Readonly<Record<string, true>> = NAMES,
): { readonly table: string; readonly dialect: FencingDialect | undefined } => {
  checkObject(`The options of ${caller}`, 'an object', options);
  return reading(`The options of ${caller}`, () => {
    checkNames(options as object, caller, names);
    const { table = DEFAULT_TABLE, dialect } = options as FencingOptions;
    return {
      table: checkTable(table),
      dialect: checkChoice('dialect', dialect, Object.keys(DIALECTS) as FencingDialect[]),
    };
  });
};

/** Returns the dialect: the option, or what the transaction tells. */
export const dialectOf = (
  caller: string,
  statements: Statements,
  option: FencingDialect | undefined,
): FencingDialect => {
  const dialect = option ?? statements.dialect;
  if (dialect) return dialect;
  throw new LockConfigurationError(
    `${caller} cannot find out the database of this transaction: pass the option dialect, ` +
      `one of ${Object.keys(DIALECTS).join(', ')}.`,
  );
};
