import { Client, type ClientConfig } from 'pg';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { Runtime } from '../../core/util/runtime.js';
import { checkLogin, invalidOption, reading } from '../../core/settings/option-checks.js';
import { checkNames } from '../../core/settings/option-names.js';
import { DEFAULT_TABLE, hasOpenPassword, resolveSqlOptions } from '../sql/sql-options.js';
import { SqlStore } from '../sql/sql.store.js';
import { PostgresDialect } from './postgres-dialect.js';

/** Part of the time-out after which the server gives a statement up. */
const STATEMENT_PART = 0.9;
/** Part of the time-out, and time in ms, for which a statement waits at most for a row that others have locked. */
const LOCK_PART = 0.5;
const LOCK_MS = 200;

/** Options of {@link PostgresStore}. */
export interface PostgresStoreOptions {
  /** Address of the server, such as `postgres://user:password@host:5432/app`. */
  readonly connectionString?: string | undefined;
  /** Settings of a `Client` of pg, instead of `connectionString` or beside it. */
  readonly settings?: ClientConfig | undefined;
  /**
   * Address on which notifications are heard. Default: that of the other connections; with `pooled` none, so waiters
   * poll.
   */
  readonly listenUrl?: string | undefined;
  /** Number of connections for requests; all requests about one key use the same one. Default: 4. */
  readonly lanes?: number | undefined;
  /** Whether a pooler in transaction mode stands before the server, such as PgBouncer. Default: false. */
  readonly pooled?: boolean | undefined;
  /** Schema of the table. Default: the first one of the search path that has it. */
  readonly schema?: string | undefined;
  /** Name of the table. Default: `nest_lock`. */
  readonly table?: string | undefined;
  /** Time in ms within which each request has its reply. Default: 2,000. */
  readonly commandTimeoutMs?: number | undefined;
  /** `'on start'`: the store creates its table when the app starts. Default: it never does. */
  readonly migrate?: 'on start' | undefined;
  /** @internal Clock and timers, for tests. */
  readonly runtime?: Runtime | undefined;
}

const OPTION_NAMES: Readonly<Record<Exclude<keyof PostgresStoreOptions, 'runtime'>, true>> = {
  ...{ connectionString: true, settings: true, listenUrl: true, lanes: true, pooled: true },
  ...{ schema: true, table: true, commandTimeoutMs: true, migrate: true },
};

/**
 * Keeps locks in a table of PostgreSQL.
 *
 * It supports exclusive locks and permits. See docs/stores/postgres.md for its guarantees.
 *
 * @throws {LockConfigurationError} (from the constructor) when an option cannot be used
 *
 * @example
 * LockModule.forRoot({ store: new PostgresStore({ connectionString: 'postgres://app:secret@localhost/app' }) });
 */
export class PostgresStore extends SqlStore {
  constructor(input: PostgresStoreOptions) {
    const { runtime, ...given } = reading('The options of PostgresStore', () => ({ ...input }));
    checkNames(given, 'PostgresStore', OPTION_NAMES);
    const { connectionString, settings, listenUrl, schema, table } = given;
    if (connectionString === undefined && settings === undefined) {
      throw new LockConfigurationError(
        "Neither connectionString nor settings is given: new PostgresStore({ connectionString: 'postgres://user:password@host/app' }).",
      );
    }
    const resolved = resolveSqlOptions({ ...given, runtime });
    const { pooled, commandTimeoutMs: timeoutMs } = resolved;
    const common: ClientConfig = {
      application_name: 'nest-redis-lock',
      ...checkSettings(settings),
      ...OWN,
      ...(connectionString !== undefined && { connectionString }),
      connectionTimeoutMillis: timeoutMs,
    };
    const listening = listenUrl === undefined ? common : { ...common, connectionString: listenUrl };
    const dialect = new PostgresDialect({
      connection: checkAddress('connectionString', pooled ? common : { ...common, ...limitsOf(timeoutMs) }),
      listening: pooled && listenUrl === undefined ? undefined : checkAddress('listenUrl', listening),
      table: checkName('table', table) ?? DEFAULT_TABLE,
      schema: checkName('schema', schema),
      ...{ runtime: resolved.runtime, pooled, timeoutMs },
    });
    super(dialect, { ...resolved, place: placeOf(common, [schema, table ?? DEFAULT_TABLE]) });
  }
}

/** The driver fills in what is left out, from its own defaults and the environment. */
const placeOf = (config: ClientConfig, names: readonly unknown[]): string => {
  const { host, port, database } = new Client(config);
  return [`${host.toLowerCase()}:${port}`, database, ...names].join('/');
};

/** What an app may set for its own connections. Values of replies are read as text. */
const OWN: ClientConfig = {
  keepAlive: true,
  pipeline: false,
  query_timeout: undefined,
  types: { getTypeParser: () => String },
};

/** The server ends a statement before the client gives it up, so it is certain that nothing was executed. */
const limitsOf = (timeoutMs: number): ClientConfig => ({
  statement_timeout: Math.ceil(timeoutMs * STATEMENT_PART),
  lock_timeout: Math.min(LOCK_MS, Math.ceil(timeoutMs * LOCK_PART)),
});

const checkSettings = (settings: unknown): ClientConfig => {
  if (settings !== undefined && (typeof settings !== 'object' || settings === null))
    return invalidOption('settings', 'the settings of a Client of pg', settings);
  return reading('The settings of PostgresStore', () => ({ ...settings }));
};

/** The driver reads an address when it makes a client, and may take anything for the name of a database. */
const checkAddress = (option: string, config: ClientConfig): (() => ClientConfig) => {
  const { connectionString: address } = config;
  try {
    if (address === undefined || /^(?:postgres(?:ql)?|socket):|^\//.test(address)) {
      checkLogin('settings.host', new Client(config).host);
      if (!hasOpenPassword(address ?? '')) return () => config;
    }
  } catch (error) {
    if (error instanceof LockConfigurationError) throw error;
    // Another error would show the address.
  }
  throw new LockConfigurationError(
    `${option} must be an address such as postgres://user:password@host:5432/app. Encode user and password with encodeURIComponent.`,
  );
};

const checkName = (option: string, name: unknown): string | undefined => {
  if (name === undefined || (typeof name === 'string' && /^\w{1,63}$/.test(name))) return name;
  return invalidOption(option, 'a name of at most 63 letters, digits and underscores', name);
};
