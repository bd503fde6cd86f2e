import type { ResultSetHeader } from 'mysql2';
import type { Claim } from '../../core/seam/claim.js';
import type { ExtendReply } from '../../core/seam/reply.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import {
  bytes,
  extendedRow,
  ID_LENGTH,
  MAX_QUEUED,
  nameOf,
  repliesOf,
  US,
  type Row,
} from '../sql/sql-terms.js';
import { joined, raw, sql, type Sql } from '../sql/sql.js';

export type { ResultSetHeader } from 'mysql2';

/** Microseconds since 1970 by the clock of the server, at the start of the statement; in no time zone. */
export const NOW = raw("TIMESTAMPDIFF(MICROSECOND, '1970-01-01', UTC_TIMESTAMP(6))");
/**
 * New end of a hold that is released: no time, or while processes wait the time below 0, where the turn of the first one
 * begins. So its key is free, whatever the clock says later.
 */
export const RELEASED = sql`IF(queue = '', 0, -${NOW})`;
/** End of a transaction, whatever `completion_type` is: neither another one begins, nor does the connection end. */
export const COMMIT = raw('COMMIT AND NO CHAIN NO RELEASE');

/** What the statements of one store have in common. */
export interface MysqlNames {
  readonly table: Sql;
  /** This process in wait queues; all have the same length. */
  readonly me: Buffer;
  /** Name of the lock by which this process wakes others. */
  readonly bell: Buffer;
}

/** Length of a wait queue from which on nothing is appended. */
export const MAX_QUEUE = raw(String(MAX_QUEUED * ID_LENGTH));
/** Start of the names of bells, before the id of a process in wait queues. */
export const BELL = 'nlb:';

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

/** Returns the value of LAST_INSERT_ID(…) in a reply; 0 when it was not called. */
export const idOf = (reply: unknown): bigint => BigInt((reply as ResultSetHeader).insertId);

/** Returns the rows of a reply, or of the statement number `at` of several. */
export const rowsOf = <T>(reply: unknown, at?: number): readonly T[] =>
  (at === undefined ? reply : (reply as unknown[])[at]) as T[];

/** Like {@link rowsOf}, with each value as text. */
export const textRowsOf = (reply: unknown, at?: number): readonly Row[] =>
  rowsOf<object>(reply, at).map((row) =>
    Object.fromEntries(
      Object.entries(row).map(([name, value]) => [name, value === null ? null : String(value)]),
    ),
  );

/** Returns a table of claims: name, owner, lease in µs, number of tokens. */
export const rowsOfClaims = (claims: readonly Claim[]): Sql => {
  const rows = claims.map(({ finalKey, owner, leaseMs, tokens }, i) =>
    i === 0
      ? sql`SELECT ${nameOf(finalKey)} AS n, ${bytes(owner)} AS o, ${leaseMs * US} AS l, ${tokens} AS k`
      : sql`SELECT ${nameOf(finalKey)}, ${bytes(owner)}, ${leaseMs * US}, ${tokens}`,
  );
  return joined(rows, ' UNION ALL ');
};

/** Returns the replies to a renewal, from the statement number `at`. A row with less than its lease was skipped. */
export const extended = (claims: readonly Claim[], reply: unknown, at: number): readonly ExtendReply[] =>
  repliesOf(claims, textRowsOf(reply, at), (row, { leaseMs }) =>
    extendedRow(row, Number(row?.['left_us']) < leaseMs * US),
  );
