import type { ResultSetHeader } from 'mysql2';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { raw, sql, type Sql } from '../sql/sql.js';

export type { ResultSetHeader } from 'mysql2';

/** Microseconds since 1970 by the clock of the server, at the start of the statement; in no time zone. */
export const NOW = raw("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))");
/** The row of a key itself; other rows of the name are permits. */
export const HEAD = raw("member = ''");
/**
 * New end of a hold that is released. Without waiting processes it says nothing about the time: a key that was released
 * must not be taken again when the clock steps back.
 */
export const RELEASED = sql`IF(queue = '', 0, ${NOW})`;
/** End of a transaction, whatever `completion_type` is: neither another one begins, nor does the connection end. */
export const COMMIT = raw('COMMIT AND NO CHAIN NO RELEASE');
/** Microseconds in a millisecond. */
export const US = 1_000;
/** For how long after a release only the first process in the wait queue may take a key. */
export const TURN_US = 250_000;

/** What the statements of one store have in common. */
export interface MysqlNames {
  readonly table: Sql;
  /** This process in wait queues; all have the same length. */
  readonly me: Buffer;
  /** Name of the lock by which this process wakes others. */
  readonly bell: Buffer;
  /** Length of a wait queue from which on nothing is appended. */
  readonly maxQueue: number;
}

/**
 * Joins rows of the table by their names. In a small table the server would rather read all of it, and wait for rows that
 * others have locked.
 */
export const joinedByName = (table: Sql, as = raw('t')): Sql =>
  sql`STRAIGHT_JOIN ${table} ${as} FORCE INDEX (PRIMARY)`;

/** Column of a poll that says whether the server is read-only; see {@link peeked}. */
export const READ_ONLY = raw('@@global.read_only AS readOnly');

/**
 * Returns the rows of a poll. A read-only server may not be the primary any more, and its rows out of date. The poll then
 * fails, so waiters request their keys, which finds that out.
 */
export const peeked = <T>(reply: unknown): readonly T[] => {
  const rows = rowsOf<T & { readOnly: number }>(reply);
  if (rows.every(({ readOnly }) => readOnly === 0)) return rows;
  throw new StoreFailure('the server is read-only', 'not-executed', { passing: true });
};

export const bytes = (text: string): Buffer => Buffer.from(text);

/** Returns the value of LAST_INSERT_ID(…) in a reply; 0 when it was not called. */
export const idOf = (reply: unknown): bigint => BigInt((reply as ResultSetHeader).insertId);

/** Returns the rows of a reply, or of the statement number `at` of several. */
export const rowsOf = <T>(reply: unknown, at?: number): readonly T[] =>
  (at === undefined ? reply : (reply as unknown[])[at]) as T[];

export const msOf = (us: bigint): number => Math.ceil(Number(us) / US);
