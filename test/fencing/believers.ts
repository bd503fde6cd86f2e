import { createConnection, type Connection, type RowDataPacket } from 'mysql2/promise';
import { fenceTransaction, migrateFencing, type FencingTransaction } from 'nest-redis-lock/fencing';
import { Client } from 'pg';
import { LockLostError, type Lease } from 'nest-redis-lock';

export type Isolation = 'READ UNCOMMITTED' | 'READ COMMITTED' | 'REPEATABLE READ' | 'SERIALIZABLE';

/** A connection of one believer. */
export interface Session {
  readonly tx: FencingTransaction;
  rows(sql: string): Promise<readonly Record<string, unknown>[]>;
  begin(isolation: Isolation): Promise<unknown>;
  close(): Promise<unknown>;
}

export const postgresSession = async (uri: string): Promise<Session> => {
  const client = new Client(uri);
  await client.connect();
  return {
    tx: client,
    rows: async (sql) => (await client.query<Record<string, unknown>>(sql)).rows,
    begin: (isolation) => client.query(`BEGIN ISOLATION LEVEL ${isolation}`),
    close: () => client.end(),
  };
};

export const mysqlSession = async (uri: string): Promise<Session> => {
  const connection: Connection = await createConnection(uri);
  return {
    tx: connection,
    rows: async (sql) => (await connection.query<RowDataPacket[]>(sql))[0],
    begin: async (isolation) => {
      await connection.query(`SET TRANSACTION ISOLATION LEVEL ${isolation}`);
      await connection.query('START TRANSACTION');
    },
    close: () => connection.end(),
  };
};

export const COUNTER = ['lost', 'inWrongOrder', 'committed', 'fenced', 'conflicts'] as const;
export type Outcome = Record<(typeof COUNTER)[number], number>;

/** Codes of a transaction that the database ends for another one: it is to be repeated. */
const CONFLICTS = ['40001', '40P01', 'ER_LOCK_DEADLOCK', 'ER_CHECKREAD'];

const makeTables = async ({ rows, tx }: Session): Promise<void> => {
  for (const table of ['counter', 'commits', 'lock_fence']) await rows(`DROP TABLE IF EXISTS ${table}`);
  await migrateFencing(tx);
  await rows('CREATE TABLE counter (id INT PRIMARY KEY, n INT NOT NULL, version INT NOT NULL)');
  await rows('CREATE TABLE commits (version INT PRIMARY KEY, token BIGINT NOT NULL)');
  await rows('INSERT INTO counter VALUES (1, 0, 0)');
};

/** Reads a number and writes the next one, as a holder that is alone may do. */
const attempt = async (
  session: Session,
  lease: Lease,
  isolation: Isolation,
  fenced: boolean,
): Promise<'committed' | 'fenced' | 'conflicts'> => {
  const { rows, tx } = session;
  const dawdle = async (most: number): Promise<void> => {
    for (let i = Math.floor(Math.random() * most); i > 0; i--) await rows('SELECT 1');
  };
  // Some holders pause between the lock and the transaction, and others go past them.
  await dawdle(Math.random() < 0.2 ? 60 : 6);
  await session.begin(isolation);
  try {
    if (fenced) await fenceTransaction(tx, lease);
    const [counter] = await rows('SELECT n FROM counter WHERE id = 1');
    await dawdle(6);
    await rows(`UPDATE counter SET n = ${Number(counter!['n']) + 1}, version = version + 1 WHERE id = 1`);
    const [written] = await rows('SELECT version FROM counter WHERE id = 1');
    await rows(`INSERT INTO commits VALUES (${Number(written!['version'])}, ${lease.fencingToken})`);
    await rows('COMMIT');
    return 'committed';
  } catch (error) {
    await rows('ROLLBACK');
    if (error instanceof LockLostError && error.reason === 'fenced') return 'fenced';
    if (CONFLICTS.includes((error as { code: string }).code)) return 'conflicts';
    throw error;
  }
};

/**
 * Lets believers work at once: each has a lease of the same key, and no earlier one knows that it is lost. Each lease
 * is taken while the others work.
 */
export const letBelieversWork = async (
  sessions: readonly Session[],
  takeLease: (believer: number) => Promise<Lease>,
  { attempts, isolation, fenced }: { attempts: number; isolation: Isolation; fenced: boolean },
): Promise<Outcome> => {
  const [first] = sessions;
  await makeTables(first!);
  const outcome: Outcome = { lost: 0, inWrongOrder: 0, committed: 0, fenced: 0, conflicts: 0 };
  let left = attempts;
  await Promise.all(
    sessions.map(async (session, believer) => {
      while (left-- > 0) outcome[await attempt(session, await takeLease(believer), isolation, fenced)]++;
    }),
  );
  const [counter] = await first!.rows('SELECT n FROM counter');
  const commits = await first!.rows('SELECT token FROM commits ORDER BY version');
  outcome.lost = outcome.committed - Number(counter!['n']);
  let newest = 0;
  for (const token of commits.map((row) => Number(row['token']))) {
    if (token < newest) outcome.inWrongOrder++;
    newest = Math.max(newest, token);
  }
  return outcome;
};
