import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { formatValue } from '../core/util/describe.js';
import type { FencingDialect } from './fence-dialects.js';

/** Row of a result: columns by name. */
export type FencingRow = Readonly<Record<string, unknown>>;

/**
 * Function that runs a statement in the transaction, and returns its rows. Placeholders are `$1, $2, …` for PostgreSQL,
 * and `?` for the others.
 */
export type RunStatement = (
  sql: string,
  parameters: readonly unknown[],
) => PromiseLike<readonly FencingRow[]> | readonly FencingRow[];

/**
 * Transaction of a driver, or a function that runs a statement in it. The drivers are `pg` (a client), `mysql2` (a
 * connection), TypeORM (`EntityManager` or `QueryRunner`), Prisma and Kysely.
 */
export type FencingTransaction =
  | RunStatement
  | { readonly query: (sql: string, ...more: never[]) => unknown }
  | { readonly $queryRawUnsafe: (sql: string, ...parameters: never[]) => unknown }
  | { readonly executeQuery: (query: never, ...more: never[]) => unknown };

/** How a transaction runs statements. */
export interface Statements {
  readonly dialect?: FencingDialect | undefined;
  /** What the object is, if it is known to be no transaction. */
  readonly outside?: string | undefined;
  /** Whether it is known that a savepoint is open. */
  readonly inSavepoint?: boolean;
  /** Returns false if it is known that the last statement ran outside of a transaction. */
  readonly inTransaction?: () => boolean;
  readonly query: (sql: string, parameters: readonly unknown[]) => Promise<unknown>;
  /** Runs a statement that returns no rows, where that is another method. */
  readonly execute?: (sql: string, parameters: readonly unknown[]) => Promise<unknown>;
}

type Members = Readonly<Record<PropertyKey, unknown>>;
type Method = (...parameters: readonly unknown[]) => unknown;
type Recognizer = (tx: Members) => Statements | undefined;

const has = (tx: Members, ...methods: readonly string[]): boolean =>
  methods.every((name) => typeof tx[name] === 'function');

/** Calls a method of an object that `has` it. */
const call = async (tx: Members, method: string, ...parameters: readonly unknown[]): Promise<Members> =>
  (await (tx[method] as Method).call(tx, ...parameters)) as Members;

const pg: Recognizer = (tx) => {
  const isPool = has(tx, 'query', 'connect') && 'totalCount' in tx && 'waitingCount' in tx;
  if (!isPool && !has(tx, 'query', 'escapeIdentifier')) return undefined;
  return {
    dialect: 'postgres',
    outside: isPool ? 'a pool of pg' : undefined,
    inTransaction: () => !has(tx, 'getTransactionStatus') || (tx['getTransactionStatus'] as Method)() !== 'I',
    query: async (sql, parameters) => (await call(tx, 'query', sql, parameters))['rows'],
  };
};

/** Flag of the server's reply: a transaction is open. */
const SERVER_STATUS_IN_TRANS = 1;

const mysql2: Recognizer = (tx) => {
  const isPool = has(tx, 'query', 'getConnection');
  if (!isPool && !has(tx, 'query', 'unprepare')) return undefined;
  const connection = has(tx, 'promise') ? ((tx['promise'] as Method).call(tx) as Members) : tx;
  let open = true;
  return {
    dialect: 'mysql',
    outside: isPool ? 'a pool of mysql2' : undefined,
    inTransaction: () => open,
    query: async (sql, values) => {
      const reply = await call(connection, 'query', { sql, values, rowsAsArray: false });
      const { serverStatus } = reply[0] as { serverStatus?: number };
      if (serverStatus !== undefined) open = (serverStatus & SERVER_STATUS_IN_TRANS) !== 0;
      return reply[0];
    },
  };
};

const TYPEORM: Readonly<Record<string, FencingDialect>> = {
  ...{ postgres: 'postgres', 'aurora-postgres': 'postgres' },
  ...{ mysql: 'mysql', mariadb: 'mysql', 'aurora-mysql': 'mysql' },
  ...{ sqlite: 'sqlite', 'better-sqlite3': 'sqlite', sqljs: 'sqlite', capacitor: 'sqlite' },
  ...{ cordova: 'sqlite', expo: 'sqlite', nativescript: 'sqlite', 'react-native': 'sqlite' },
};

/** A manager, a query runner or the data source. Before TypeORM 1 they have `connection` instead of `dataSource`. */
const typeorm: Recognizer = (tx) => {
  const isRunner = 'isTransactionActive' in tx;
  if (!has(tx, 'query') || !(isRunner || has(tx, 'getRepository'))) return undefined;
  const source = (tx['dataSource'] ?? tx['connection'] ?? tx) as { options?: { type?: string } };
  const type = source.options?.type;
  if (type === undefined) return undefined;
  const runner = (isRunner ? tx : tx['queryRunner']) as
    { isTransactionActive?: boolean; transactionDepth?: number } | undefined;
  return {
    dialect: TYPEORM[type],
    outside: runner?.isTransactionActive ? undefined : 'an object of TypeORM without an open transaction',
    inSavepoint: (runner?.transactionDepth ?? 0) > 1,
    query: (sql, parameters) => call(tx, 'query', sql, [...parameters]),
  };
};

const PRISMA: Readonly<Record<string, FencingDialect>> = {
  ...{ postgresql: 'postgres', postgres: 'postgres', mysql: 'mysql', sqlite: 'sqlite' },
};
const PRISMA_TRANSACTION = Symbol.for('prisma.client.transaction.id');

const prisma: Recognizer = (tx) => {
  if (!has(tx, '$queryRawUnsafe', '$executeRawUnsafe')) return undefined;
  // A number without fraction is a 64-bit integer for Prisma only as a bigint.
  const sent = (parameters: readonly unknown[]): unknown[] =>
    parameters.map((value) => (typeof value === 'number' ? BigInt(value) : value));
  return {
    dialect: PRISMA[String(tx['_activeProvider'])],
    outside:
      has(tx, '$transaction') && tx[PRISMA_TRANSACTION] === undefined ? 'the client of Prisma' : undefined,
    query: (sql, parameters) => call(tx, '$queryRawUnsafe', sql, ...sent(parameters)),
    execute: (sql, parameters) => call(tx, '$executeRawUnsafe', sql, ...sent(parameters)),
  };
};

const KYSELY: Readonly<Record<string, FencingDialect>> = {
  ...{ PostgresAdapter: 'postgres', MysqlAdapter: 'mysql', SqliteAdapter: 'sqlite' },
};

/** Returns the dialect of an adapter, or of the class that it extends. */
const kyselyDialect = (adapter: object | null): FencingDialect | undefined => {
  if (!adapter) return undefined;
  return KYSELY[adapter.constructor.name] ?? kyselyDialect(Object.getPrototypeOf(adapter) as object | null);
};

const kysely: Recognizer = (tx) => {
  if (!has(tx, 'executeQuery', 'getExecutor')) return undefined;
  const { adapter } = (tx['getExecutor'] as Method).call(tx) as { adapter: object };
  return {
    dialect: kyselyDialect(adapter),
    outside: tx['isTransaction'] === true ? undefined : 'a Kysely instance without a transaction',
    query: async (sql, parameters) => {
      const node = { kind: 'RawNode', sqlFragments: [sql], parameters: [] };
      const query = { sql, parameters, query: node, queryId: { queryId: 'nest-redis-lock' } };
      return (await call(tx, 'executeQuery', query))['rows'];
    },
  };
};

const RECOGNIZERS = [prisma, kysely, typeorm, pg, mysql2];

/**
 * Returns how a transaction runs statements.
 *
 * @throws LockConfigurationError for a value that no driver is known for
 */
export const statementsOf = (caller: string, tx: unknown): Statements => {
  if (typeof tx === 'object' && tx !== null) {
    for (const recognize of RECOGNIZERS) {
      const statements = recognize(tx as Members);
      if (statements) return statements;
    }
  }
  if (typeof tx === 'function') {
    const run = tx as RunStatement;
    return { query: async (sql, parameters) => run(sql, parameters) };
  }
  throw new LockConfigurationError(
    `${caller} does not know how to run a statement on ${formatValue(tx)}. Pass the transaction of pg, mysql2, ` +
      'TypeORM, Prisma or Kysely, or a function (sql, parameters) => rows together with the option dialect.',
  );
};
