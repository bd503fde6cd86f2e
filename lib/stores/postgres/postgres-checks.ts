import type { RunStatement } from '../sql/sql-dialect.js';
import { checkSettingValues, refuse } from '../sql/sql-settings.js';
import { bytes, isTrue, type Row } from '../sql/sql-terms.js';
import { raw, sql } from '../sql/sql.js';
import { migrationOf, quoted, recreationOf, VERSION } from './postgres-migration.js';
import type { PostgresSession } from './postgres-session.js';
import { stateOf } from './postgres-session.js';
import { READ_SETTINGS, REFUSED_SETTINGS } from './postgres-settings.js';
import { rowsOf } from './postgres-terms.js';

const RIGHTS = ['SELECT', 'INSERT', 'UPDATE', 'DELETE'];
/** State of a reply to start-up parameters that a pooler does not know. */
const PROTOCOL_VIOLATION = '08P01';
const NO_RIGHT = '42501';
const NO_SCHEMA = '3F000';
const READ_ONLY = '25006';
/** States of a refused login: role, password, database. */
const NO_LOGIN = new Set(['28000', '28P01', '3D000']);

/** Lock of the database under which a table is created. */
const MIGRATION_LOCK = 7_236_459_871_204;

/** Where the table of the locks is. */
export interface TablePlace {
  readonly table: string;
  readonly schema: string | undefined;
}

/** Returns a table of one row about the server and the table. */
const factsOf = async (run: RunStatement, { table, schema }: TablePlace): Promise<Row> =>
  run({
    sql: sql`SELECT current_database() AS db, current_user AS role, pg_is_in_recovery() AS replica, current_setting('transaction_read_only') AS read_only,
current_setting('server_encoding') AS encoding, found.id,
(SELECT relkind = 'r' AND relpersistence = 'p' AND NOT EXISTS (SELECT 1 FROM pg_inherits WHERE inhparent = found.id) FROM pg_class WHERE oid = found.id) AS lasting, obj_description(found.id, 'pg_class') AS comment,
has_table_privilege(found.id, 'SELECT') AS "SELECT", has_table_privilege(found.id, 'INSERT') AS "INSERT",
(SELECT string_agg(nspname, '", "') FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace WHERE relname = ${bytes(table)}::text AND relkind IN ('r', 'p')) AS elsewhere,
row_security_active(found.id) AND (EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = found.id AND NOT polpermissive)
OR NOT EXISTS (SELECT 1 FROM pg_policy WHERE polrelid = found.id AND polcmd = '*' AND pg_get_expr(polqual, polrelid) = 'true'
AND coalesce(pg_get_expr(polwithcheck, polrelid), 'true') = 'true' AND EXISTS (SELECT 1 FROM unnest(polroles) r WHERE r = 0 OR pg_has_role(r, 'USAGE')))) AS guarded,
has_table_privilege(found.id, 'UPDATE') AS "UPDATE", has_table_privilege(found.id, 'DELETE') AS "DELETE",
(SELECT string_agg(nspname, ', ') FROM pg_class JOIN pg_namespace n ON n.oid = relnamespace
WHERE relname = ${bytes(table)}::text AND nspname = ANY (current_schemas(false))) AS schemas
FROM (SELECT to_regclass(${bytes(quoted(table, schema))}::text)::oid AS id) found`,
    read: (reply) => rowsOf(reply)[0]!,
  });

/** Throws the error again, as a LockConfigurationError if only another login mends it. */
const loginFailed = (failure: unknown): never => {
  if (!NO_LOGIN.has(stateOf(failure) ?? '')) throw failure;
  const { message } = (failure as Error).cause as Error;
  return refuse(
    `The server refuses the login of PostgresStore: ${message}. Check the role, its password and the database.`,
    failure,
  );
};

const readOnly = (cause?: unknown): never =>
  refuse(
    'The database of PostgresStore is read-only. On a replica, give it the address of the primary. ' +
      'Otherwise look at default_transaction_read_only of the server, the database and the role.',
    cause,
  );

/**
 * Creates the table unless it is there, under a lock of the database: several apps may start at the same time.
 *
 * @throws {LockConfigurationError} when the role may not create it, or the server is no primary
 */
export const migrateTable = async (run: RunStatement, { table, schema }: TablePlace): Promise<void> => {
  const isThere = await run({
    sql: sql`SELECT to_regclass(${bytes(quoted(table, schema))}::text) IS NOT NULL AS found`,
    read: (reply) => isTrue(rowsOf(reply)[0]!['found']),
  });
  if (isThere) return;
  const migration = migrationOf(table, schema);
  try {
    await run({
      sql: sql`SELECT set_config('lock_timeout', '0', true); SELECT pg_advisory_xact_lock(${MIGRATION_LOCK}); ${raw(migration)}`,
      read: () => undefined,
    });
  } catch (failure) {
    const state = stateOf(failure);
    if (state === READ_ONLY) readOnly(failure);
    if (state === NO_SCHEMA)
      refuse(
        `There is no schema for the table of PostgresStore. As a role that may create it, run: ` +
          `CREATE SCHEMA "${schema ?? 'locks'}". ${schema === undefined ? 'Then set the option schema.' : ''}`,
        failure,
      );
    if (state !== NO_RIGHT) throw failure;
    refuse(
      `The role of PostgresStore may not create the table ${quoted(table, schema)}. As another role, run: ${migration}`,
      failure,
    );
  }
};

/** @throws {LockConfigurationError} when a setting of the session has a value under which locks cannot work */
export const checkSettings = async (run: RunStatement): Promise<void> => {
  const columns = READ_SETTINGS.map((name) => `current_setting('${name}') AS ${name}`);
  const values = await run({
    sql: raw(`SELECT current_user AS role, ${columns.join(', ')}`),
    read: (reply) => rowsOf(reply)[0]!,
  }).catch(loginFailed);
  checkSettingValues(
    'PostgresStore',
    REFUSED_SETTINGS,
    values,
    ({ name, instead }) => `Run: ALTER ROLE "${values['role']}" SET ${name} = '${instead}'`,
  );
};

/** @throws {LockConfigurationError} when the server is no primary, or the table or a right to it is missing */
export const checkTable = async (run: RunStatement, place: TablePlace): Promise<void> => {
  const facts = await factsOf(run, place).catch(async (failure: unknown) => {
    if (stateOf(failure) !== NO_RIGHT) throw failure;
    const user = await run({
      sql: raw('SELECT current_user AS role'),
      read: (reply) => rowsOf(reply)[0]!['role'],
    });
    return refuse(
      `The role of PostgresStore lacks rights. Run: GRANT USAGE ON SCHEMA "${place.schema}" TO "${user}".`,
      failure,
    );
  });
  const name = quoted(place.table, place.schema);
  const { db, role, comment } = facts;
  if (isTrue(facts['replica']) || facts['read_only'] === 'on') readOnly();
  if (facts['encoding'] !== 'UTF8')
    refuse(`The database ${db} has the encoding ${facts['encoding']}. PostgresStore needs one with UTF8.`);
  const migration = migrationOf(place.table, place.schema);
  const { id, elsewhere } = facts;
  const hint = elsewhere
    ? ` that the role finds. The schema "${elsewhere}" has one: set the option schema, or run: GRANT USAGE ON SCHEMA "${elsewhere}" TO "${role}"`
    : '';
  if (id === null)
    refuse(
      `The database ${db} has no table ${name}${hint}. As a role that may create tables, call store.migrate() or run: ${migration}`,
    );
  // Connections that are open keep the table that was the first when they prepared their statements.
  if (place.schema === undefined && facts['schemas']?.includes(', '))
    refuse(
      `Several schemas of the search path have a table ${name}: ${facts['schemas']}. Set the option schema, to the same one in all apps.`,
    );
  if (comment !== VERSION)
    refuse(
      `The database ${db} has another version of the table ${name} ("${comment ?? ''}"). ` +
        `Name another table, or while no process uses this one, run: ${recreationOf(place.table, place.schema)}`,
    );
  if (!isTrue(facts['lasting']))
    refuse(
      `${name} of PostgresStore is unlogged, temporary, partitioned or no table: a crash would empty it, or two rows have one place. Create it again: ${migration}`,
    );
  const missing = RIGHTS.filter((right) => !isTrue(facts[right]));
  if (missing.length > 0)
    refuse(
      `The role of PostgresStore lacks rights. Run: GRANT ${missing.join(', ')} ON ${name} TO "${role}".`,
    );
  if (isTrue(facts['guarded']))
    refuse(
      `Row level security of ${name} keeps rows from the role of PostgresStore. ` +
        `Run: ALTER TABLE ${name} DISABLE ROW LEVEL SECURITY; or without a restrictive policy: CREATE POLICY locks ON ${name} TO "${role}" USING (true).`,
    );
};

/**
 * Finds out whether each connection has a process of its own in the server, as an undo needs.
 *
 * @throws {LockConfigurationError} behind a pooler
 */
export const checkConnection = async (connect: () => Promise<PostgresSession>): Promise<void> => {
  const session = await connect().catch((failure: unknown) => {
    if (stateOf(failure) !== PROTOCOL_VIOLATION) return loginFailed(failure);
    return refuse(POOLED, failure);
  });
  session.destroy();
  if (session.saidPid !== session.backend?.pid) refuse(POOLED);
};

const POOLED =
  'A pooler stands before the database of PostgresStore. Set pooled: true, and listenUrl to an address of the server itself.';
