import { createRequire } from 'node:module';
import { Kysely, MysqlDialect, PostgresDialect, SqliteDialect, type SqliteDatabase } from 'kysely';
import { createPool } from 'mysql2';
import { createConnection, createPool as createPromisePool } from 'mysql2/promise';
import type { FencingDialect, FencingRow, FencingTransaction } from 'nest-redis-lock/fencing';
import { Client, Pool } from 'pg';
import type { BindParams, Database, SqlJsStatic } from 'sql.js';
import { DataSource, type DataSourceOptions, type EntityManager, type QueryRunner } from 'typeorm';

/** A transaction under test. */
export interface OpenTransaction {
  readonly tx: FencingTransaction;
  end(how: 'commit' | 'rollback'): Promise<unknown>;
}

/** A kind of transaction under test. */
export interface Driver {
  readonly name: string;
  /** The option, where the transaction does not tell. */
  readonly dialect?: FencingDialect;
  begin(): Promise<OpenTransaction>;
  /** Begins a transaction inside of another one. Default: a savepoint by a statement. */
  nest?(tx: FencingTransaction): Promise<OpenTransaction>;
  /** Whether a call inside of a savepoint is refused. */
  readonly knowsSavepoints: boolean;
  /** What is no transaction, by name: pools, clients before BEGIN. */
  readonly outside: Readonly<Record<string, FencingTransaction>>;
  close(): Promise<unknown>;
}

/** Begins the transaction of a library that runs a callback inside. */
const begunBy = <T extends FencingTransaction>(
  run: (body: (tx: T) => Promise<void>) => Promise<unknown>,
): Promise<OpenTransaction> =>
  new Promise((resolve, reject) => {
    const rolledBack = new Error('the test rolls back');
    const over: Promise<unknown> = run(
      (tx) =>
        new Promise((commit, rollBack) => {
          const end = (how: 'commit' | 'rollback') => {
            if (how === 'commit') commit();
            else rollBack(rolledBack);
            return over;
          };
          resolve({ tx, end });
        }),
    ).catch((error: unknown) => {
      reject(error);
      if (error !== rolledBack) throw error;
    });
  });

const pg = async (uri: string): Promise<Driver> => {
  const client = new Client(uri);
  await client.connect();
  const pool = new Pool({ connectionString: uri });
  return {
    name: 'a client of pg',
    knowsSavepoints: true,
    begin: async () => {
      await client.query('BEGIN');
      return { tx: client, end: (how) => client.query(how) };
    },
    outside: { 'a pool of pg': pool, 'a connection without an open transaction': client },
    close: () => Promise.all([client.end(), pool.end()]),
  };
};

const pooledPg = (uri: string): Driver => {
  const pool = new Pool({ connectionString: uri });
  return {
    name: 'a client of a pool of pg, with BEGIN under way',
    knowsSavepoints: true,
    begin: async () => {
      const client = await pool.connect();
      void client.query('BEGIN');
      return { tx: client, end: (how) => client.query(how).finally(() => client.release()) };
    },
    outside: {},
    close: () => pool.end(),
  };
};

const mysql2 = async (uri: string): Promise<Driver> => {
  const connection = await createConnection(uri);
  const pool = createPromisePool(uri);
  return {
    name: 'a connection of mysql2/promise',
    knowsSavepoints: false,
    begin: async () => {
      await connection.beginTransaction();
      return { tx: connection, end: (how) => connection[how]() };
    },
    outside: { 'a pool of mysql2': pool, 'a connection without an open transaction': connection },
    close: () => Promise.all([connection.end(), pool.end()]),
  };
};

const mysql2Callbacks = async (uri: string): Promise<Driver> => {
  const connection = await createConnection({
    uri,
    rowsAsArray: true,
    supportBigNumbers: true,
    bigNumberStrings: true,
  });
  const { connection: raw } = connection as unknown as { connection: FencingTransaction };
  const pool = createPool(uri);
  return {
    name: 'a connection of mysql2 with callbacks and other forms of rows',
    knowsSavepoints: false,
    begin: async () => {
      await connection.query('SET autocommit = 0');
      return { tx: raw, end: (how) => connection[how]() };
    },
    outside: { 'a pool of mysql2': pool },
    close: () => Promise.all([connection.end(), pool.promise().end()]),
  };
};

/** Begins a transaction inside of another one of TypeORM. */
const nestTypeorm = (tx: FencingTransaction): Promise<OpenTransaction> =>
  begunBy((body) => (tx as EntityManager).transaction(body));

const typeorm = async (name: string, options: DataSourceOptions): Promise<Driver> => {
  const source = await new DataSource(options).initialize();
  return {
    name: `an EntityManager of TypeORM on ${name}`,
    begin: () => begunBy((body) => source.transaction(body)),
    nest: nestTypeorm,
    knowsSavepoints: true,
    outside: { 'an object of TypeORM without an open transaction': source.manager, TypeORM: source },
    close: () => source.destroy(),
  };
};

const typeormRunner = async (uri: string): Promise<Driver> => {
  const source = await new DataSource({ type: 'postgres', url: uri }).initialize();
  const idle = source.createQueryRunner();
  return {
    name: 'a QueryRunner of TypeORM',
    begin: async () => {
      const runner = source.createQueryRunner();
      await runner.startTransaction();
      const end = async (how: 'commit' | 'rollback') => {
        await (how === 'commit' ? runner.commitTransaction() : runner.rollbackTransaction());
        await runner.release();
      };
      return { tx: runner, end };
    },
    nest: async (tx) => {
      const runner = tx as QueryRunner;
      await runner.startTransaction();
      const end = (how: 'commit' | 'rollback') =>
        how === 'commit' ? runner.commitTransaction() : runner.rollbackTransaction();
      return { tx, end };
    },
    knowsSavepoints: true,
    outside: { TypeORM: idle },
    close: async () => {
      await idle.release();
      await source.destroy();
    },
  };
};

const kysely = (name: string, dialect: PostgresDialect | MysqlDialect | SqliteDialect): Driver => {
  const db = new Kysely<unknown>({ dialect });
  return {
    name: `a Transaction of Kysely on ${name}`,
    begin: () => begunBy((body) => db.transaction().execute(body)),
    knowsSavepoints: dialect instanceof PostgresDialect,
    outside: { Kysely: db },
    close: () => db.destroy(),
  };
};

/** A double of Prisma's client on PostgreSQL: as strict as Prisma about parameters, with its methods and marks. */
const prisma = async (uri: string): Promise<Driver> => {
  const client = new Client(uri);
  await client.connect();
  const run = async (
    sql: string,
    parameters: unknown[],
  ): Promise<{ rows: FencingRow[]; rowCount: number | null }> => {
    if (parameters.some((value) => typeof value === 'number')) throw new Error('a number is a float here');
    return client.query<FencingRow & Record<string, unknown>>(sql, parameters);
  };
  const base = {
    _activeProvider: 'postgresql',
    $queryRawUnsafe: async (sql: string, ...parameters: unknown[]) => (await run(sql, parameters)).rows,
    $executeRawUnsafe: async (sql: string, ...parameters: unknown[]) => (await run(sql, parameters)).rowCount,
  };
  return {
    name: 'the transaction client of Prisma',
    knowsSavepoints: true,
    begin: async () => {
      await client.query('BEGIN');
      return { tx: base, end: (how) => client.query(how) };
    },
    outside: { 'the client of Prisma': { ...base, $transaction: () => undefined } as FencingTransaction },
    close: () => client.end(),
  };
};

const pgFunction = async (uri: string): Promise<Driver> => {
  const client = new Client(uri);
  await client.connect();
  return {
    name: 'a function on PostgreSQL',
    knowsSavepoints: true,
    dialect: 'postgres',
    begin: async () => {
      await client.query('BEGIN');
      return {
        tx: async (sql, parameters) =>
          (await client.query<Record<string, unknown>>(sql, [...parameters])).rows,
        end: (how) => client.query(how),
      };
    },
    outside: {},
    close: () => client.end(),
  };
};

const mysqlFunction = async (uri: string): Promise<Driver> => {
  const connection = await createConnection(uri);
  return {
    name: 'a function on MySQL, with prepared statements',
    knowsSavepoints: false,
    dialect: 'mysql',
    begin: async () => {
      await connection.beginTransaction();
      return {
        tx: async (sql, parameters) =>
          (await connection.execute(sql, parameters as string[]))[0] as FencingRow[],
        end: (how) => connection[how](),
      };
    },
    outside: {},
    close: () => connection.end(),
  };
};

const initSqlJs = createRequire(import.meta.url)('sql.js') as () => Promise<SqlJsStatic>;

/** Runs a statement as better-sqlite3 and node:sqlite do. */
const rowsOf = (db: Database, sql: string, parameters: readonly unknown[]): FencingRow[] => {
  const statement = db.prepare(sql);
  statement.bind(parameters as BindParams);
  const rows: FencingRow[] = [];
  while (statement.step()) rows.push(statement.getAsObject());
  statement.free();
  return rows;
};

const sqliteFunction = async (): Promise<Driver> => {
  const db = new (await initSqlJs()).Database();
  return {
    name: 'a function on SQLite',
    knowsSavepoints: false,
    dialect: 'sqlite',
    begin: () => {
      db.run('BEGIN');
      return Promise.resolve({
        tx: (sql: string, parameters: readonly unknown[]) => rowsOf(db, sql, parameters),
        end: (how: 'commit' | 'rollback') => Promise.resolve(db.run(how)),
      });
    },
    outside: {},
    close: () => Promise.resolve(db.close()),
  };
};

/** The methods of better-sqlite3 that Kysely uses. */
const asBetterSqlite = (db: Database): SqliteDatabase => ({
  close: () => db.close(),
  prepare: (sql) => ({
    reader: /^\s*SELECT|RETURNING/i.test(sql),
    all: (parameters) => rowsOf(db, sql, parameters),
    run: (parameters) => {
      rowsOf(db, sql, parameters);
      return { changes: db.getRowsModified(), lastInsertRowid: 0 };
    },
    iterate: () => [].values(),
  }),
});

/** Opens one of each kind of transaction on a database, by their number, so that a test can be named before. */
export const POSTGRES_DRIVERS: Readonly<Record<string, (uri: string) => Promise<Driver>>> = {
  pg,
  'pg.Pool': (uri) => Promise.resolve(pooledPg(uri)),
  TypeORM: (uri) => typeorm('PostgreSQL', { type: 'postgres', url: uri }),
  QueryRunner: typeormRunner,
  Kysely: (uri) =>
    Promise.resolve(kysely('PostgreSQL', new PostgresDialect({ pool: new Pool({ connectionString: uri }) }))),
  Prisma: prisma,
  function: pgFunction,
};

export const MYSQL_DRIVERS: Readonly<Record<string, (uri: string) => Promise<Driver>>> = {
  'mysql2/promise': mysql2,
  mysql2: mysql2Callbacks,
  TypeORM: (uri) => typeorm('MySQL', { type: 'mysql', url: uri }),
  Kysely: (uri) => Promise.resolve(kysely('MySQL', new MysqlDialect({ pool: createPool(uri) }))),
  function: mysqlFunction,
};

export const SQLITE_DRIVERS: Readonly<Record<string, () => Promise<Driver>>> = {
  TypeORM: () => typeorm('SQLite', { type: 'sqljs' }),
  Kysely: async () => {
    const db = new (await initSqlJs()).Database();
    return kysely('SQLite', new SqliteDialect({ database: asBetterSqlite(db) }));
  },
  function: sqliteFunction,
};
