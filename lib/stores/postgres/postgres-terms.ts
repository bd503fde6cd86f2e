import type { QueryResult } from 'pg';
import type { Claim } from '../../core/seam/claim.js';
import type { ExtendReply, ReleaseReply } from '../../core/seam/reply.js';
import type { Sight } from '../sql/places.js';
import {
  extendedRow,
  releasedRow,
  ID_LENGTH,
  ID_START,
  MAX_QUEUED,
  msOf,
  nameTextOf,
  OLD_ID_START,
  repliesOf,
  TURN_US,
  US,
  type Row,
} from '../sql/sql-terms.js';
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
  /** Number of processes in a wait queue before this one, which stands at the end if it is not there. */
  readonly rank: Sql;
  /** Notifies all processes that wait for a key. At the commit it takes a lock over the whole server. */
  readonly notify: (name: Sql) => Sql;
  /** Columns of a statement that tell the first process in a wait queue that the key is free, and the second one, its heir. */
  readonly pass: (name: Sql, when?: Sql) => Sql;
}

/** Channel of a process, by its id in wait queues. */
export const CHANNEL = 'nest_lock_';
/** Messages on the channel of a process, before the name of a key: it is free, or free for the process before this one. */
export const [FREE, NEXT] = ['free ', 'next '];

/** Returns what the statements of a process with this id have in common. */
export const postgresNames = (table: Sql, channel: string, id: string): PostgresNames => {
  const me = raw(`'${ID_START}${id}'`);
  const notify = (name: Sql): Sql => sql`pg_notify('${raw(channel)}', ${name})`;
  const isOld = (at: number): string => `substr(queue, ${at}, 1) = '${OLD_ID_START}'`;
  const second = ID_LENGTH + 1;
  const tell = (at: number, message: string, name: Sql): Sql =>
    sql`pg_notify('${raw(CHANNEL)}' || substr(queue, ${raw(String(at + 1))}, ${raw(String(ID_LENGTH - 1))}), '${raw(message)}' || ${name})`;
  return {
    ...{ table, me, notify },
    meLength: raw(String(ID_LENGTH)),
    maxQueue: raw(String(MAX_QUEUED * ID_LENGTH)),
    rank: sql`(strpos(l.queue || ${me}, ${me}) - 1) / ${raw(String(ID_LENGTH))}`,
    pass: (name, when = raw('true')) => sql`CASE WHEN queue <> '' AND ${when} THEN ${tell(1, FREE, name)} END,
CASE WHEN length(queue) > ${raw(String(ID_LENGTH))} AND ${when} THEN ${tell(second, NEXT, name)} END,
CASE WHEN (${raw(isOld(1))} OR ${raw(isOld(second))}) AND ${when} THEN ${notify(name)} END`,
  };
};

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

/**
 * Returns a part of FROM that locks the row of a wanted name, if the condition holds and no other transaction has locked it, and has its
 * place. It is one look-up by the primary key for each name. A join by name may read the whole table each time: the server
 * plans it so before the table is analyzed, and keeps such a plan. So statements change the row by its place. They do not find
 * one that was changed after they began.
 */
export const lockedRow = (table: Sql, condition: Sql, columns = raw('')): Sql =>
  sql`LATERAL (SELECT r.ctid AS place${columns} FROM ${table} r WHERE r.name = w.name AND ${condition} LIMIT 1 FOR UPDATE SKIP LOCKED)`;

/**
 * Returns the end of a statement: a row for each claim of which `done d` has one. A claim that was skipped has one, too, without
 * a value. A claim for which the condition does not hold has none.
 */
export const ofWanted = (table: Sql, value: Sql, condition: Sql): Sql =>
  sql`SELECT w.name, w.owner, ${value} FROM wanted w LEFT JOIN done d ON d.name = w.name AND d.owner = w.owner
WHERE d.name IS NOT NULL OR (SELECT true FROM ${table} r WHERE r.name = w.name AND ${condition} LIMIT 1)`;

/** Returns the replies to a renewal. A claim whose row has no rest in µs was skipped. */
export const extended = (claims: readonly Claim[], reply: unknown): readonly ExtendReply[] =>
  repliesOf(claims, rowsOf(reply), (row) => extendedRow(row, row?.['left_us'] === null));

/** Returns the reply to a release: its row, if it was held. */
export const released = (reply: unknown): ReleaseReply => releasedRow(rowsOf(reply)[0])!;

/** Returns the replies to a poll. A key without a time until it is free has none; one without a row is free. */
export const sightsOf = (claims: readonly Claim[], reply: unknown): readonly Sight[] => {
  const found = new Map(rowsOf(reply).map((row) => [row['name'], row]));
  return claims.map(({ finalKey }) => {
    const { free_us = '0', rank } = found.get(nameTextOf(finalKey)) ?? {};
    const freeInMs = free_us === null ? Infinity : msOf(free_us);
    return { freeInMs, rank: rank === undefined ? undefined : Number(rank) };
  });
};
