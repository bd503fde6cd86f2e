import type { ConnectionOptions } from 'mysql2';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { Runtime } from '../../core/util/runtime.js';
import { checkLogin, invalidOption, reading } from '../../core/settings/option-checks.js';
import { checkNames } from '../../core/settings/option-names.js';
import { DEFAULT_TABLE, hasOpenPassword, resolveSqlOptions } from '../sql/sql-options.js';
import { SqlStore } from '../sql/sql.store.js';
import { MysqlDialect } from './mysql-dialect.js';

/**
 * Options of mysql2 for a connection. `password` may be a function, for one that changes: it is called for each
 * connection.
 */
export type MysqlConnectionOptions = Omit<ConnectionOptions, 'password'> & {
  readonly password?: string | (() => string | Promise<string>) | undefined;
};

/** Options of {@link MysqlStore}. */
export interface MysqlStoreOptions {
  /** Address of the server, such as `mysql://user:password@host:3306/app`. */
  readonly uri?: string | undefined;
  /** Options of mysql2, instead of `uri` or beside it. They are read for each connection. */
  readonly options?: MysqlConnectionOptions | undefined;
  /** Number of connections for requests; all requests about one key use the same one. Default: 4. */
  readonly lanes?: number | undefined;
  /** Whether a proxy stands before the server that shares connections. Default: false. */
  readonly pooled?: boolean | undefined;
  /** Name of the table. Default: `nest_lock`. */
  readonly table?: string | undefined;
  /** Time in ms within which each request has its reply. Default: 2,000. */
  readonly commandTimeoutMs?: number | undefined;
  /** `'on start'`: the store creates its table when the app starts. Default: it never does. */
  readonly migrate?: 'on start' | undefined;
  /** @internal Clock and timers, for tests. */
  readonly runtime?: Runtime | undefined;
}

const OPTION_NAMES: Readonly<Record<Exclude<keyof MysqlStoreOptions, 'runtime'>, true>> = {
  ...{ uri: true, options: true, lanes: true, pooled: true, table: true },
  ...{ commandTimeoutMs: true, migrate: true },
};

/**
 * Keeps locks in a table of MySQL or MariaDB.
 *
 * It supports exclusive locks and permits. See docs/stores/mysql.md for its guarantees.
 *
 * @throws {LockConfigurationError} (from the constructor) when an option cannot be used
 *
 * @example
 * LockModule.forRoot({ store: new MysqlStore({ uri: 'mysql://app:secret@localhost/app' }) });
 */
export class MysqlStore extends SqlStore {
  constructor(input: MysqlStoreOptions) {
    const { runtime, ...given } = reading('The options of MysqlStore', () => ({ ...input }));
    checkNames(given, 'MysqlStore', OPTION_NAMES);
    const { uri, options, table } = given;
    if (uri === undefined && options === undefined) {
      throw new LockConfigurationError(
        "Neither uri nor options is given: new MysqlStore({ uri: 'mysql://user:password@host/app' }).",
      );
    }
    const common = resolveSqlOptions({ ...given, runtime });
    checkLogin('options.host', options?.host);
    const address = uri === undefined ? {} : { uri: checkUri(uri) };
    const connection = async (): Promise<ConnectionOptions> => {
      const { password, ...others } = { ...options };
      const secret = typeof password === 'function' ? await password() : password;
      return { ...others, ...address, ...(secret !== undefined && { password: secret }) };
    };
    const dialect = new MysqlDialect({
      connection,
      table: checkTable(table) ?? DEFAULT_TABLE,
      ...{ runtime: common.runtime, pooled: common.pooled, timeoutMs: common.commandTimeoutMs },
    });
    super(dialect, { ...common, place: placeOf({ ...options, ...address }, table ?? DEFAULT_TABLE) });
  }
}

const placeOf = (address: Omit<ConnectionOptions, 'password'>, table: string): string => {
  const { uri, host, port, socketPath, database } = address;
  if (uri === undefined)
    return `${socketPath ?? `${host ?? 'localhost'}:${port ?? 3306}`}/${database}/${table}`;
  const at = new URL(uri);
  return `${at.hostname}:${at.port || 3306}${at.pathname}/${table}`;
};

/** Never shows the address: it may have a password. */
const checkUri = (uri: unknown): string => {
  try {
    const { protocol, username, password, pathname } = new URL(uri as string);
    for (const part of [username, password, pathname]) decodeURIComponent(part);
    if (/^(mysql|mariadb):$/.test(protocol) && !hasOpenPassword(uri as string)) return uri as string;
  } catch {
    // The error would show the address.
  }
  throw new LockConfigurationError(
    'uri must be an address such as mysql://user:password@host:3306/app. Encode user and password with encodeURIComponent.',
  );
};

const checkTable = (table: unknown): string | undefined => {
  if (table === undefined || (typeof table === 'string' && /^\w{1,64}$/.test(table))) return table;
  return invalidOption('table', 'a name of letters, digits and underscores', table);
};
