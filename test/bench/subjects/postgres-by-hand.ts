import { randomUUID } from 'node:crypto';
import { Pool, type PoolClient } from 'pg';
import type { Subject } from './subject.js';

const LEASE_MS = 30_000;
const NOW = "timezone('utc', clock_timestamp())";

/**
 * Locks that apps write in PostgreSQL without a library. None of them has tokens, renewal or a notification of a loss.
 * `pg_advisory_lock` and `FOR UPDATE` need a connection for each holder and for each waiter.
 */
export const postgresByHand: Subject = {
  name: 'postgres-by-hand',
  insideScripts: [],
  async open({ url, connections = 10 }) {
    const pool = new Pool({ connectionString: url, max: connections });
    // Processes start at the same time.
    const created = `SELECT pg_advisory_xact_lock(1); CREATE TABLE IF NOT EXISTS row_lock (name text PRIMARY KEY);
CREATE TABLE IF NOT EXISTS shedlock (name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP(3) NOT NULL,
locked_at TIMESTAMP(3) NOT NULL, locked_by VARCHAR(255) NOT NULL)`;
    await pool.query(created);
    const me = randomUUID();
    const rows = new Set<string>();
    const shedlocks = new Set<string>();

    const withConnection = async (use: (connection: PoolClient) => Promise<void>): Promise<void> => {
      const connection = await pool.connect();
      try {
        await use(connection);
      } finally {
        connection.release();
      }
    };
    /** The server prepares the statement, as it does for Java. */
    const changed = async (name: string, text: string, values: readonly unknown[]): Promise<boolean> =>
      (await pool.query({ name, text, values: [...values] })).rowCount === 1;

    return {
      styles: {
        pg_advisory_lock: (key, section) =>
          withConnection(async (connection) => {
            await connection.query('SELECT pg_advisory_lock(hashtextextended($1, 0))', [key]);
            try {
              await section();
            } finally {
              await connection.query('SELECT pg_advisory_unlock(hashtextextended($1, 0))', [key]);
            }
          }),
        'FOR UPDATE': (key, section) =>
          withConnection(async (connection) => {
            if (!rows.has(key))
              await connection.query('INSERT INTO row_lock VALUES ($1) ON CONFLICT DO NOTHING', [key]);
            rows.add(key);
            await connection.query('BEGIN');
            try {
              await connection.query('SELECT name FROM row_lock WHERE name = $1 FOR UPDATE', [key]);
              await section();
            } finally {
              await connection.query('COMMIT');
            }
          }),
        // The statements of ShedLock with the time of the database. It does not wait.
        ShedLock: async (key, section) => {
          const isNew =
            !shedlocks.has(key) &&
            (await changed(
              'insert',
              `INSERT INTO shedlock VALUES ($1, ${NOW} + $2 * interval '1 ms', ${NOW}, $3) ON CONFLICT DO NOTHING`,
              [key, LEASE_MS, me],
            ));
          shedlocks.add(key);
          const got =
            isNew ||
            (await changed(
              'update',
              `UPDATE shedlock SET lock_until = ${NOW} + $1 * interval '1 ms', locked_at = ${NOW}, locked_by = $2 WHERE name = $3 AND lock_until <= ${NOW}`,
              [LEASE_MS, me, key],
            ));
          if (!got) throw new Error(`"${key}" is taken, and ShedLock does not wait`);
          try {
            await section();
          } finally {
            await changed(
              'unlock',
              `UPDATE shedlock SET lock_until = ${NOW} WHERE name = $1 AND locked_by = $2 AND lock_until > ${NOW}`,
              [key, me],
            );
          }
        },
      },
      close: () => pool.end(),
    };
  },
};
