import { invalidOption } from '../core/settings/option-checks.js';
import { DIALECTS, type FencingDialect } from './fence-dialects.js';
import { DEFAULT_TABLE, dialectOf, resolveFencing, type FencingOptions } from './fencing-options.js';
import { statementsOf, type FencingTransaction } from './transactions.js';

/** Options of `sweepFences`. */
export interface SweepOptions extends FencingOptions {
  /** Age in days from which a row is deleted, since its last transaction: a whole number from 1. */
  readonly olderThanDays: number;
}

/** Statement that creates the table `lock_fence`, for each database. */
export const FENCING_MIGRATIONS: Readonly<Record<FencingDialect, string>> = {
  postgres: DIALECTS.postgres.migration(DEFAULT_TABLE),
  mysql: DIALECTS.mysql.migration(DEFAULT_TABLE),
  sqlite: DIALECTS.sqlite.migration(DEFAULT_TABLE),
};

/**
 * Creates the table of the fences if it is missing. Several apps may do so at once. It also takes a pool, and the
 * `QueryRunner` of a TypeORM migration.
 *
 * @throws LockConfigurationError for an object that runs no statements, and for invalid options
 */
export const migrateFencing = async (db: FencingTransaction, options: FencingOptions = {}): Promise<void> => {
  const { table, dialect } = resolveFencing('migrateFencing', options);
  const statements = statementsOf('migrateFencing', db);
  const sql = DIALECTS[dialectOf('migrateFencing', statements, dialect)];
  const migration = sql.migration(table);
  await (statements.execute ?? statements.query)(sql.alone?.(migration) ?? migration, []);
};

/**
 * Deletes the fences that no transaction has used for some days. A process that has been stopped for longer than that
 * is no longer recognized as late.
 *
 * @throws LockConfigurationError for an object that runs no statements, and for invalid options
 */
export const sweepFences = async (db: FencingTransaction, options: SweepOptions): Promise<void> => {
  const { table, dialect } = resolveFencing('sweepFences', options, {
    ...{ table: true, dialect: true, olderThanDays: true },
  });
  const { olderThanDays } = options;
  if (!Number.isInteger(olderThanDays) || olderThanDays < 1 || olderThanDays > 100_000)
    invalidOption('olderThanDays', 'a whole number of days from 1 to 100000', olderThanDays);
  const statements = statementsOf('sweepFences', db);
  const sql = DIALECTS[dialectOf('sweepFences', statements, dialect)];
  await (statements.execute ?? statements.query)(sql.sweep(table), [olderThanDays]);
};
