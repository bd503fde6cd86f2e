import type { QueryResult } from 'pg';
import type { Claim } from '../../core/seam/claim.js';
import type { ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import { extendedRow, isTrue, msOf, nameTextOf, repliesOf, TURN_US, US, type Row } from '../sql/sql-terms.js';
import { raw, sql, type Sql } from '../sql/sql.js';

/**
 * Microseconds since 1970 by the clock of the server, at this moment. Each use has another value: a statement that needs
 * one value takes it from {@link ONE_NOW}. `now()` is the start of the transaction, which may be long ago.
 */
export const NOW = raw('(extract(epoch FROM clock_timestamp()) * 1000000)::bigint');
/** Table of one row with one `now`. The server never evaluates a volatile function of a subquery twice. */
export const ONE_NOW = sql`(SELECT ${NOW} AS now) n`;
/**
 * New end of a hold that is released: no time, or while processes wait the time below 0, where the turn of the first one
 * begins. So its key is free, whatever the clock says later.
 */
export const RELEASED = sql`CASE WHEN queue = '' THEN 0 ELSE -${NOW} END`;
/** Column of a transaction that does not wait for the disk. It only releases: a crash would lose whatever else it does. */
export const NO_FLUSH = raw(", set_config('synchronous_commit', 'off', true)");
/** `TURN_US` in statements. A number that never changes is no parameter. */
export const TURN = raw(String(TURN_US));

/** What the statements of one store have in common. */
export interface PostgresNames {
  readonly table: Sql;
  /** This process in wait queues; all have the same length. */
  readonly me: Sql;
  readonly meLength: Sql;
  /** Length of a wait queue from which on nothing is appended. */
  readonly maxQueue: Sql;
  /** Notifies the processes that wait for a key. At the commit it takes a lock over the whole server. */
  readonly notify: (name: Sql) => Sql;
}

/**
 * Returns the rows of a reply, or of the statement number `at` of several. Values are text, whatever the app tells its
 * driver about types.
 */
export const rowsOf = (reply: unknown, at?: number): readonly Row[] =>
  ((at === undefined ? reply : (reply as unknown[])[at]) as QueryResult<Row>).rows;

/** Returns a text for a message with several statements, which has no parameters; no server can misread its digits. */
export const literal = (text: Buffer): Sql =>
  raw(`convert_from(decode('${text.toString('hex')}', 'hex'), 'UTF8')`);

/** Returns the start of a statement with a table of claims: `wanted (name, owner, lease)`, the lease in µs. */
export const withWanted = (claims: readonly Claim[]): Sql => {
  const names = claims.map(({ finalKey }) => nameTextOf(finalKey));
  const owners = claims.map(({ owner }) => owner);
  const leases = claims.map(({ leaseMs }) => leaseMs * US);
  const tokens = claims.map(({ tokens: of }) => of);
  return sql`WITH wanted AS MATERIALIZED (SELECT * FROM unnest(${names}::text[], ${owners}::text[], ${leases}::bigint[], ${tokens}::bigint[])
AS w(name, owner, lease, tokens))`;
};

/** Returns the replies to a renewal. A claim whose row has no rest in µs was skipped. */
export const extended = (claims: readonly Claim[], reply: unknown): readonly ExtendReply[] =>
  repliesOf(claims, rowsOf(reply), (row) => extendedRow(row, row?.['left_us'] === null));

/** Returns the reply to a release: its row, if it was held. */
export const released = (reply: unknown): ReleaseReply => {
  const [row] = rowsOf(reply);
  return { wasHeld: row !== undefined, othersWaiting: isTrue(row?.['waiting']) };
};

/** Returns the replies to a poll: the time in ms until each key may be free. */
export const freeInMs = (claims: readonly Claim[], reply: unknown): readonly number[] => {
  const found = new Map(rowsOf(reply).map(({ name, free_us }) => [name, msOf(free_us)]));
  return claims.map(({ finalKey }) => found.get(nameTextOf(finalKey)) ?? 0);
};
