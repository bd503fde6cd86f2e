import { createPool, type PoolConnection, type ResultSetHeader, type RowDataPacket } from 'mysql2/promise';
import { randomUUID } from 'node:crypto';
import type { Subject } from './subject.js';

const LEASE_MS = 30_000;
const WAIT_S = 60;

/**
 * Locks that apps write in MySQL without a library. None of them has tokens, renewal or a notification of a loss.
 * `GET_LOCK` and `FOR UPDATE` need a connection for each holder and for each waiter.
 */
export const mysqlByHand: Subject = {
  name: 'mysql-by-hand',
  insideScripts: [],
  async open({ url, connections = 10 }) {
    const pool = createPool({ uri: url, connectionLimit: connections, flags: ['-FOUND_ROWS'] });
    await pool.query('CREATE TABLE IF NOT EXISTS row_lock (name VARBINARY(200) PRIMARY KEY) ENGINE=InnoDB');
    await pool.query(`CREATE TABLE IF NOT EXISTS shedlock (name VARCHAR(64) PRIMARY KEY, lock_until TIMESTAMP(3) NOT NULL,
locked_at TIMESTAMP(3) NOT NULL, locked_by VARCHAR(255) NOT NULL) ENGINE=InnoDB`);
    const me = randomUUID();
    const rows = new Set<string>();
    const shedlocks = new Set<string>();

    const withConnection = async (use: (connection: PoolConnection) => Promise<void>): Promise<void> => {
      const connection = await pool.getConnection();
      try {
        await use(connection);
      } finally {
        connection.release();
      }
    };
    const changed = async (text: string, values: readonly unknown[]): Promise<boolean> => {
      const [{ affectedRows }] = await pool.query<ResultSetHeader>(text, [...values]);
      return affectedRows === 1;
    };

    return {
      styles: {
        GET_LOCK: (key, section) =>
          withConnection(async (connection) => {
            const [[row]] = await connection.query<RowDataPacket[]>('SELECT GET_LOCK(?, ?) AS got', [
              ...[key, WAIT_S],
            ]);
            if (row?.['got'] !== 1) throw new Error(`"${key}" is taken`);
            try {
              await section();
            } finally {
              await connection.query('SELECT RELEASE_LOCK(?)', [key]);
            }
          }),
        'FOR UPDATE': (key, section) =>
          withConnection(async (connection) => {
            if (!rows.has(key)) await connection.query('INSERT IGNORE INTO row_lock VALUES (?)', [key]);
            rows.add(key);
            await connection.query('START TRANSACTION');
            try {
              await connection.query('SELECT name FROM row_lock WHERE name = ? FOR UPDATE', [key]);
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
              'INSERT IGNORE INTO shedlock VALUES (?, TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3)), UTC_TIMESTAMP(3), ?)',
              [key, LEASE_MS * 1_000, me],
            ));
          shedlocks.add(key);
          const got =
            isNew ||
            (await changed(
              'UPDATE shedlock SET lock_until = TIMESTAMPADD(MICROSECOND, ?, UTC_TIMESTAMP(3)), locked_at = UTC_TIMESTAMP(3), locked_by = ? WHERE name = ? AND lock_until <= UTC_TIMESTAMP(3)',
              [LEASE_MS * 1_000, me, key],
            ));
          if (!got) throw new Error(`"${key}" is taken, and ShedLock does not wait`);
          try {
            await section();
          } finally {
            await changed(
              'UPDATE shedlock SET lock_until = UTC_TIMESTAMP(3) WHERE name = ? AND locked_by = ? AND lock_until > UTC_TIMESTAMP(3)',
              [key, me],
            );
          }
        },
      },
      close: () => pool.end(),
    };
  },
};
