import { Lane, type LaneHost } from '../sql/lane.js';
import type { RunStatement } from '../sql/sql-dialect.js';
import { checkSettingValues, refuse } from '../sql/sql-settings.js';
import { bytes, nothing } from '../sql/sql-terms.js';
import { isRefused, raw, sql, SqlFailure } from '../sql/sql.js';
import { migrationOf, recreationOf, VERSION } from './mysql-migration.js';
import { REFUSED_SETTINGS } from './mysql-settings.js';
import { rowsOf, textRowsOf } from './mysql-terms.js';

const READ_ONLY = new Set([1290, 1792, 1836]);
const NO_RIGHT = new Set([1142, 1143]);
/** Errors of a login: user, password, database. */
const NO_LOGIN = new Set([1044, 1045, 1049, 1698]);

const errnoOf = (failure: unknown): number =>
  failure instanceof SqlFailure ? ((failure.cause as { errno?: number } | undefined)?.errno ?? 0) : 0;

/** Throws the error again, as a LockConfigurationError if only another login mends it. */
const loginFailed = (failure: unknown): never => {
  const { message = '' } = ((failure as SqlFailure).cause ?? {}) as Partial<Error>;
  if (message.includes('max-session-mem-used'))
    return refuse(
      'The server gives the connections of MysqlStore too little memory. Set max_session_mem_used to its default.',
      failure,
    );
  if (!NO_LOGIN.has(errnoOf(failure))) throw failure;
  return refuse(
    `The server refuses the login of MysqlStore: ${message}. Check the user, its password and the database.`,
    failure,
  );
};

const readOnly = (cause: unknown): never => {
  return refuse(
    'The database of MysqlStore is read-only. On a replica, give it the address of the primary.',
    cause,
  );
};

/** @throws {LockConfigurationError} when the user may not create the table, or the server is read-only */
export const migrateTable = async (run: RunStatement, table: string): Promise<void> => {
  try {
    await run({ sql: raw(migrationOf(table)), read: nothing });
  } catch (failure) {
    if (READ_ONLY.has(errnoOf(failure))) readOnly(failure);
    if (!NO_RIGHT.has(errnoOf(failure))) throw failure;
    return refuse(
      `The user of MysqlStore may not create the table ${table}. As another user, run: ${migrationOf(table)}`,
      failure,
    );
  }
};

/** @throws {LockConfigurationError} when a variable of the session has a value under which locks cannot work */
export const checkSettings = async (run: RunStatement): Promise<void> => {
  const columns = ['DATABASE() AS inUse', ...REFUSED_SETTINGS.map(({ name, read }) => `${read} AS ${name}`)];
  const values = await run({
    // The limit is that of the statement, not sql_select_limit.
    sql: raw(`SELECT ${columns.join(', ')} LIMIT 1`),
    read: (reply) => textRowsOf(reply)[0]!,
  }).catch(loginFailed);
  if (values['inUse'] === null) {
    refuse('The connection of MysqlStore has no database. Name one: mysql://user:password@host:3306/app.');
  }
  checkSettingValues(
    'MysqlStore',
    REFUSED_SETTINGS,
    values,
    ({ name, instead }) => `Set ${name} to ${instead}, on the server or in the proxy`,
  );
};

interface Found {
  readonly inUse: string;
  readonly comment: string | null;
  readonly engine: string | null;
}

/** @throws {LockConfigurationError} when there is no such table, or one of another version */
export const checkTable = async (run: RunStatement, table: string): Promise<void> => {
  const found = await run({
    sql: sql`SELECT one.inUse, t.TABLE_COMMENT AS comment, t.ENGINE AS engine
FROM (SELECT DATABASE() AS inUse) one LEFT JOIN information_schema.TABLES t ON t.TABLE_SCHEMA = DATABASE() AND t.TABLE_NAME = ${bytes(table)}`,
    read: (reply) => rowsOf<Found>(reply)[0]!,
  });
  const { inUse, comment, engine } = found;
  if (comment === VERSION) {
    if (engine === 'InnoDB') return;
    return refuse(
      `The table ${table} of MysqlStore has the engine ${engine}. Run: ALTER TABLE \`${table}\` ENGINE = InnoDB.`,
    );
  }
  const migration = migrationOf(table);
  return refuse(
    comment === null
      ? `The database ${inUse} has no table ${table}, or the user of the connection has no right to it. ` +
          `As a user that may create tables, call store.migrate() or run: ${migration}`
      : `The database ${inUse} has another version of the table ${table} ("${comment}"). ` +
          `Name another table, or while no process uses this one, run: ${recreationOf(table)}`,
  );
};

/** @throws {LockConfigurationError} when the server is read-only, or the user lacks rights */
export const checkRights = async (run: RunStatement, name: string): Promise<void> => {
  const table = raw(`\`${name}\``);
  const needed = {
    SELECT: sql`SELECT 1 FROM ${table} WHERE FALSE`,
    INSERT: sql`INSERT INTO ${table} (name) SELECT '' FROM (SELECT 1) one WHERE FALSE`,
    UPDATE: sql`UPDATE ${table} SET until = 0 WHERE FALSE`,
    DELETE: sql`DELETE FROM ${table} WHERE FALSE`,
  };
  const missing: string[] = [];
  for (const [right, statement] of Object.entries(needed)) {
    try {
      await run({ sql: statement, read: nothing });
    } catch (failure) {
      const errno = errnoOf(failure);
      if (READ_ONLY.has(errno)) readOnly(failure);
      if (NO_RIGHT.has(errno)) missing.push(right);
      // A table that cannot be used is found by the rehearsal.
      else if (!isRefused(failure)) throw failure;
    }
  }
  if (missing.length === 0) return;
  const place = await run({
    sql: sql`SELECT DATABASE() AS db, SUBSTRING_INDEX(CURRENT_USER(), '@', 1) AS name, SUBSTRING_INDEX(CURRENT_USER(), '@', -1) AS host`,
    read: (reply) => rowsOf<{ db: string; name: string; host: string }>(reply)[0]!,
  });
  return refuse(
    `The user of MysqlStore lacks rights. Run: GRANT ${missing.join(', ')} ON \`${place.db}\`.\`${name}\` TO '${place.name}'@'${place.host}'.`,
  );
};

/**
 * Finds out whether each connection has a session of its own, as guards and bells need.
 *
 * @throws {LockConfigurationError} when connections share a session
 */
export const checkConnections = async (host: LaneHost): Promise<readonly string[]> => {
  const probe = bytes(`nlp:${host.runtime.newId().replaceAll('-', '')}`);
  const take = {
    sql: sql`SELECT GET_LOCK(${probe}, 0) AS got`,
    read: (reply: unknown) => rowsOf<{ got: number | null }>(reply)[0]?.got === 1,
  };
  const lanes = [new Lane(host), new Lane(host)];
  try {
    for (const lane of lanes) if (!(await lane.run(() => take))) return [];
  } catch (failure) {
    if (failure instanceof SqlFailure && failure.passing) throw failure;
    return [NO_NAMED_LOCKS];
  } finally {
    for (const lane of lanes) lane.destroy();
  }
  return refuse(
    'Connections of MysqlStore share a session of the server. For a proxy that shares connections, set pooled: true.',
  );
};

const NO_NAMED_LOCKS =
  'The database refuses GET_LOCK. Waiters hear of a release later, and a lock of unknown outcome stays until its lease ends.';
