import { LockConfigurationError, LockLostError, type Lease } from 'nest-redis-lock';
import {
  fenceTransaction,
  migrateFencing,
  sweepFences,
  type FencingTransaction,
  type RunStatement,
} from 'nest-redis-lock/fencing';
import { Client } from 'pg';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { MysqlServer } from '../support/servers/mysql-server.js';
import { PostgresServer } from '../support/servers/postgres-server.js';
import { statementsOf } from '../../lib/fencing/transactions.js';
import { until } from '../support/async.js';
import { mysqlSession, postgresSession, type Session } from './believers.js';
import {
  MYSQL_DRIVERS,
  POSTGRES_DRIVERS,
  SQLITE_DRIVERS,
  type Driver,
  type OpenTransaction,
} from './drivers.js';
import { newKey, newLocks, twoHolders } from './leases.js';

const failureOf = (call: Promise<unknown>): Promise<unknown> =>
  call.then(
    () => undefined,
    (error: unknown) => error,
  );

/** The promises of every kind of transaction. */
const testDriver = (open: () => Promise<Driver>): void => {
  let driver: Driver;

  beforeAll(async () => {
    driver = await open();
    const { tx, end } = await driver.begin();
    await migrateFencing(tx, optionsOf(driver));
    await migrateFencing(tx, optionsOf(driver));
    await end('commit');
  });
  afterAll(() => driver?.close());

  /** Fences with a lease in a transaction, and commits or rolls back. Resolves with the failure. */
  const inTransaction = async (
    lease: Lease,
    { times = 1, how = 'commit' }: { times?: number; how?: 'commit' | 'rollback' } = {},
  ): Promise<unknown> => {
    const { tx, end } = await driver.begin();
    let failure: unknown;
    for (let i = 0; i < times; i++)
      failure ??= await failureOf(fenceTransaction(tx, lease, optionsOf(driver)));
    await end(failure ? 'rollback' : how);
    return failure;
  };
  const optionsOf = ({ dialect }: Driver) => ({ dialect });

  it('lets the later holder in after the earlier one, and each of them several times', async () => {
    const [earlier, later] = await twoHolders();
    expect(await inTransaction(earlier, { times: 2 })).toBeUndefined();
    expect(await inTransaction(earlier)).toBeUndefined();
    expect(await inTransaction(later, { times: 2 })).toBeUndefined();
  });

  it('refuses the earlier holder after the later one, with both tokens', async () => {
    const [earlier, later] = await twoHolders();
    expect(await inTransaction(later)).toBeUndefined();
    const failure = await inTransaction(earlier);
    expect(failure).toBeInstanceOf(LockLostError);
    expect(failure).toMatchObject({
      code: 'LOCK_LOST',
      reason: 'fenced',
      key: earlier.key,
      retryable: false,
    });
    expect((failure as Error).message).toMatch(
      new RegExp(`"${earlier.key}".*\\(${later.fencingToken}\\).*\\(${earlier.fencingToken}\\)`),
    );
    expect(await inTransaction(later)).toBeUndefined();
  });

  it('forgets a fence whose transaction was rolled back', async () => {
    const [earlier, later] = await twoHolders();
    expect(await inTransaction(later, { how: 'rollback' })).toBeUndefined();
    expect(await inTransaction(earlier)).toBeUndefined();
  });

  it('refuses a lease on several keys if a later holder has one of them', async () => {
    const [a, b] = [newKey(), newKey()];
    const locks = newLocks();
    const both = await locks.acquire([b, a]);
    await locks.forceUnlock(b);
    const later = await locks.acquire(b);
    expect(await inTransaction(both)).toBeUndefined();
    expect(await inTransaction(later)).toBeUndefined();
    expect(await inTransaction(both)).toMatchObject({ reason: 'fenced', key: b });
    for (const key of [a, b]) await locks.forceUnlock(key);
    expect(await inTransaction(await locks.acquire([a, b]))).toBeUndefined();
    expect(await inTransaction(later)).toMatchObject({ reason: 'fenced', key: b });
    expect(await inTransaction(both)).toMatchObject({ reason: 'fenced', key: a });
  });

  it('tells keys apart that text with other rules takes for one', async () => {
    const same = ['key', 'KEY', 'key ', 'kéy', 'ke\u0301y', 'key\0', '😀', '🙃', `sha256:${'0'.repeat(64)}`];
    const long = ['a', 'b'].map((end) => 'x'.repeat(600) + end);
    const prefix = newKey();
    const names = [...same, ...long].map((name) => `${prefix}${name}`);
    const pairs = [];
    for (const name of names) pairs.push([name, await twoHolders(name)] as const);
    // The newest tokens first: a name that met another one's row would be refused.
    for (const [name, [, later]] of [...pairs].reverse())
      expect(await inTransaction(later), JSON.stringify(name)).toBeUndefined();
    for (const [name, [earlier]] of pairs)
      expect(await inTransaction(earlier), JSON.stringify(name)).toMatchObject({
        reason: 'fenced',
        key: name,
      });
  });

  it('has rows of another table apart, and sweeps only old ones', async () => {
    const [earlier, later] = await twoHolders();
    expect(await inTransaction(later)).toBeUndefined();
    const options = { ...optionsOf(driver), table: 'other_Fence' };
    const { tx, end } = await driver.begin();
    await migrateFencing(tx, options);
    await end('commit');
    const second = await driver.begin();
    await fenceTransaction(second.tx, earlier, options);
    await sweepFences(second.tx, { ...options, olderThanDays: 1 });
    await sweepFences(second.tx, { ...optionsOf(driver), olderThanDays: 1 });
    await second.end('commit');
    expect(await inTransaction(earlier)).toMatchObject({ reason: 'fenced' });
  });

  /** Begins a transaction inside of another one. */
  const nested = async (tx: FencingTransaction): Promise<Pick<OpenTransaction, 'tx' | 'end'>> => {
    if (driver.nest) return driver.nest(tx);
    const { query, execute = query } = statementsOf('the test', tx);
    await execute('SAVEPOINT inside', []);
    const end = (how: string) =>
      execute(`${how === 'commit' ? 'RELEASE' : 'ROLLBACK TO'} SAVEPOINT inside`, []);
    return { tx, end };
  };

  it('keeps the fence of a transaction whose savepoint is rolled back', async () => {
    const [earlier, later] = await twoHolders();
    const outer = await driver.begin();
    await fenceTransaction(outer.tx, later, optionsOf(driver));
    await failureOf(nested(outer.tx).then(({ end }) => end('rollback')));
    await outer.end('commit');
    expect(await inTransaction(earlier)).toMatchObject({ reason: 'fenced' });
  });

  it('is refused in a savepoint, where that is known', async () => {
    const [, later] = await twoHolders();
    const outer = await driver.begin();
    const inner = await nested(outer.tx);
    const failure = await failureOf(fenceTransaction(inner.tx, later, optionsOf(driver)));
    await failureOf(Promise.resolve(inner.end('rollback')));
    await outer.end('commit');
    if (!driver.knowsSavepoints) return expect(failure).toBeUndefined();
    expect(failure).toBeInstanceOf(LockConfigurationError);
    expect((failure as Error).message).toMatch(/savepoint.*outermost transaction/);
  });

  it('names migrateFencing when there is no table', async () => {
    const [, later] = await twoHolders();
    const { tx, end } = await driver.begin();
    const failure = await failureOf(
      fenceTransaction(tx, later, { ...optionsOf(driver), table: 'not_there' }),
    );
    await failureOf(Promise.resolve(end('rollback')));
    expect(failure).toBeInstanceOf(LockConfigurationError);
    expect((failure as Error).message).toMatch(/no table not_there.*migrateFencing/);
    expect((failure as Error).cause).toBeInstanceOf(Error);
  });

  it('refuses what is no transaction, by name', async () => {
    const [, later] = await twoHolders();
    for (const [name, tx] of Object.entries(driver.outside)) {
      const failure = await failureOf(fenceTransaction(tx, later, optionsOf(driver)));
      expect(failure, name).toBeInstanceOf(LockConfigurationError);
      expect((failure as Error).message).toContain(name);
      expect((failure as Error).message).toContain('Begin a transaction');
    }
  });
};

/** @param hoursAgo returns the SQL of a time in the past */
const sweepsOldRows = async (session: Pick<Session, 'tx' | 'rows'>, hoursAgo: (hours: number) => string) => {
  const options = {
    table: 'swept',
    dialect: session.tx instanceof Function ? ('sqlite' as const) : undefined,
  };
  await migrateFencing(session.tx, options);
  await session.rows('BEGIN');
  const [old, young] = [await newLocks().acquire(newKey()), await newLocks().acquire(newKey())];
  for (const [lease, hours] of [[old, 49] as const, [young, 47] as const]) {
    await fenceTransaction(session.tx, lease, options);
    await session.rows(`UPDATE swept SET seen = ${hoursAgo(hours)} WHERE name LIKE '%${lease.key}'`);
  }
  await sweepFences(session.tx, { ...options, olderThanDays: 2 });
  const left = await session.rows('SELECT name FROM swept');
  await session.rows('COMMIT');
  expect(left.map(({ name }) => String(name))).toEqual([expect.stringContaining(young.key)]);
};

describe('on PostgreSQL', () => {
  let server: PostgresServer;
  beforeAll(async () => {
    server = await PostgresServer.start();
  });
  afterAll(() => server?.stop());

  describe.each(Object.entries(POSTGRES_DRIVERS))('fenceTransaction with %s', (_, open) => {
    testDriver(() => open(server.uri));
  });

  it('creates the table for several apps at once', async () => {
    const [one, other] = [new Client(server.uri), new Client(server.uri)];
    await Promise.all([one.connect(), other.connect()]);
    const options = { table: 'at_once' };
    await one.query('BEGIN');
    await migrateFencing(one, options);
    const migrated = migrateFencing(other, options);
    const waits = "SELECT 1 FROM pg_stat_activity WHERE wait_event_type = 'Lock'";
    await until(async () => (await one.query(waits)).rowCount === 1, { what: 'the other one waits' });
    await one.query('COMMIT');
    await migrated;
    await Promise.all([one.end(), other.end()]);
  });

  it('takes a table of another schema', async () => {
    const driver = await POSTGRES_DRIVERS['pg']!(server.uri);
    const [earlier, later] = await twoHolders();
    const { tx, end } = await driver.begin();
    await (tx as { query(sql: string): Promise<unknown> }).query('CREATE SCHEMA "Own"');
    const options = { table: 'Own.Fences' };
    await migrateFencing(tx, options);
    await fenceTransaction(tx, later, options);
    await expect(fenceTransaction(tx, earlier, options)).rejects.toMatchObject({ reason: 'fenced' });
    await end('commit');
    await driver.close();
  });

  it('sweeps rows of the age that was asked for', async () => {
    const session = await postgresSession(server.uri);
    await sweepsOldRows(session, (hours) => `CURRENT_TIMESTAMP - INTERVAL '${hours} hours'`);
    await session.close();
  });
});

describe('on MariaDB or MySQL', () => {
  let server: MysqlServer;
  beforeAll(async () => {
    server = await MysqlServer.start();
  });
  afterAll(() => server?.stop());

  describe.each(Object.entries(MYSQL_DRIVERS))('fenceTransaction with %s', (_, open) => {
    testDriver(() => open(server.uri));
  });

  it('sees a later holder, although an earlier statement has fixed what the transaction reads', async () => {
    const [a, b] = [await mysqlSession(server.uri), await mysqlSession(server.uri)];
    const [earlier, later] = await twoHolders();
    const fenced = async (session: Session, lease: Lease) => {
      await session.begin('REPEATABLE READ');
      await fenceTransaction(session.tx, lease);
      await session.rows('COMMIT');
    };
    await fenced(a, earlier);
    await a.begin('REPEATABLE READ');
    await a.rows('SELECT * FROM lock_fence');
    await fenced(b, later);
    await expect(fenceTransaction(a.tx, earlier)).rejects.toMatchObject({ reason: 'fenced' });
    await Promise.all([a.close(), b.close()]);
  });

  it('sweeps rows of the age that was asked for', async () => {
    const session = await mysqlSession(server.uri);
    await sweepsOldRows(session, (hours) => `UTC_TIMESTAMP() - INTERVAL ${hours} HOUR`);
    await session.close();
  });
});

describe('on SQLite', () => {
  describe.each(Object.entries(SQLITE_DRIVERS))('fenceTransaction with %s', (_, open) => testDriver(open));

  it('sweeps rows of the age that was asked for', async () => {
    const driver = await SQLITE_DRIVERS['function']!();
    const { tx, end } = await driver.begin();
    const run = tx as RunStatement;
    await end('commit');
    await sweepsOldRows(
      { tx, rows: async (sql) => run(sql, []) },
      (hours) => `datetime('now', '-${hours} hours')`,
    );
    await driver.close();
  });
});
