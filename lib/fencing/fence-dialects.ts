/** The database: `mysql` is also MariaDB. */
export type FencingDialect = 'mysql' | 'postgres' | 'sqlite';

/** SQL texts of one kind of database. */
export interface DialectSql {
  /**
   * Whether the upsert refuses an older token itself, and returns the names that it accepted. Otherwise the tokens are
   * read afterwards, with a lock.
   */
  readonly refuses: boolean;
  readonly migration: (table: string) => string;
  /** Lets several apps run a migration at once, where they would disturb each other. */
  readonly alone?: (migration: string) => string;
  /** Raises the fences of some rows. Parameters: name and token of each row. */
  readonly upsert: (table: string, rows: number) => string;
  /** Reads name and fence of some rows. Parameters: their names. */
  readonly read: (table: string, rows: number) => string;
  /** Deletes old rows. Parameter: an age in days. */
  readonly sweep: (table: string) => string;
}

/** Returns the name of a table or of `schema.table` in quotes. Its parts have only letters, digits and `_`. */
const quoted = (table: string, quote: string): string =>
  table
    .split('.')
    .map((part) => quote + part + quote)
    .join('.');

/** Returns `text(1), text(2), …`, as often as there are rows. */
const list = (rows: number, text: (row: number) => string): string =>
  Array.from({ length: rows }, (_, row) => text(row + 1)).join(', ');

/**
 * In a savepoint a row gets the number of that, and not of the transaction. Text, whatever the driver makes of other types.
 */
const SAVEPOINT =
  ", CASE WHEN stored.xmin::text <> (txid_current() & 4294967295)::text THEN 'yes' END AS savepoint";

/** Lock of a database under which the table is created. */
const MIGRATION_LOCK = 7_236_459_871_205;

/** Returns the upsert of databases with `ON CONFLICT`. It also locks the rows that it refuses to update. */
const upsertOnConflict = (table: string, values: string, more = ''): string =>
  `INSERT INTO ${quoted(table, '"')} AS stored (name, fence, seen) VALUES ${values}
ON CONFLICT (name) DO UPDATE SET fence = excluded.fence, seen = excluded.seen WHERE stored.fence <= excluded.fence
RETURNING name${more}`;

export const DIALECTS: Readonly<Record<FencingDialect, DialectSql>> = {
  postgres: {
    refuses: true,
    // The collation: others may take two names for the same.
    migration: (table) => `CREATE TABLE IF NOT EXISTS ${quoted(table, '"')} (
  name text COLLATE "C" PRIMARY KEY,
  fence bigint NOT NULL,
  seen timestamptz NOT NULL
)`,
    alone: (migration) =>
      `DO $$ BEGIN PERFORM pg_advisory_xact_lock(${MIGRATION_LOCK}); ${migration}; END $$`,
    upsert: (table, rows) =>
      upsertOnConflict(
        table,
        list(rows, (row) => `($${2 * row - 1}, $${2 * row}, CURRENT_TIMESTAMP)`),
        SAVEPOINT,
      ),
    read: (table, rows) =>
      `SELECT name, fence FROM ${quoted(table, '"')} WHERE name IN (${list(rows, (row) => `$${row}`)})`,
    sweep: (table) =>
      `DELETE FROM ${quoted(table, '"')} WHERE seen < CURRENT_TIMESTAMP - CAST($1 AS integer) * INTERVAL '1 day'`,
  },

  mysql: {
    refuses: false,
    // Bytes: collations of text take "a" and "A" or "a " for the same.
    migration: (table) => `CREATE TABLE IF NOT EXISTS ${quoted(table, '`')} (
  name VARBINARY(500) NOT NULL PRIMARY KEY,
  fence BIGINT NOT NULL,
  seen DATETIME NOT NULL
) ENGINE = InnoDB`,
    upsert: (table, rows) =>
      `INSERT INTO ${quoted(table, '`')} (name, fence, seen) VALUES ${list(rows, () => '(?, ?, UTC_TIMESTAMP())')}
ON DUPLICATE KEY UPDATE fence = GREATEST(fence, VALUES(fence)), seen = VALUES(seen)`,
    // FOR UPDATE reads the newest row also where other reads see the snapshot of the transaction.
    read: (table, rows) =>
      `SELECT CONVERT(name USING utf8mb4) AS name, fence FROM ${quoted(table, '`')}
WHERE name IN (${list(rows, () => '?')}) FOR UPDATE`,
    sweep: (table) => `DELETE FROM ${quoted(table, '`')} WHERE seen < UTC_TIMESTAMP() - INTERVAL ? DAY`,
  },

  sqlite: {
    refuses: true,
    migration: (table) => `CREATE TABLE IF NOT EXISTS ${quoted(table, '"')} (
  name TEXT PRIMARY KEY NOT NULL,
  fence INTEGER NOT NULL,
  seen TEXT NOT NULL
)`,
    upsert: (table, rows) =>
      upsertOnConflict(
        table,
        list(rows, () => '(?, ?, CURRENT_TIMESTAMP)'),
      ),
    read: (table, rows) =>
      `SELECT name, fence FROM ${quoted(table, '"')} WHERE name IN (${list(rows, () => '?')})`,
    sweep: (table) => `DELETE FROM ${quoted(table, '"')} WHERE seen < datetime('now', '-' || ? || ' days')`,
  },
};
