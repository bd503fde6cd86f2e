import type { QueryResult } from 'pg';
import { nameOf } from '../sql/names.js';
import { raw, sql, type Sql } from '../sql/sql.js';

/**
 * Microseconds since 1970 by the clock of the server, at this moment. Each use has another value: a statement that needs
 * one value takes it from {@link ONE_NOW}. `now()` is the start of the transaction, which may be long ago.
 */
export const NOW = raw('(extract(epoch FROM clock_timestamp()) * 1000000)::bigint');
/** Table of one row with one `now`. The server never evaluates a volatile function of a subquery twice. */
export const ONE_NOW = sql`(SELECT ${NOW} AS now) n`;
/** The row of a key itself; other rows of the name are permits. */
export const HEAD = raw("member = ''");
/**
 * New end of a hold that is released. Without waiting processes it says nothing about the time: a key that was released
 * must not be taken again when the clock steps back.
 */
export const RELEASED = sql`CASE WHEN queue = '' THEN 0 ELSE ${NOW} END`;
/** Microseconds in a millisecond. */
export const US = 1_000;
/** For how long after a release only the first process in the wait queue may take a key. */
export const TURN_US = 250_000;
/** The same in statements. A number that never changes is no parameter. */
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

/** A row of a reply. Each value is text, whatever the app tells its driver about types. */
export type Row = Readonly<Record<string, string | null>>;

/** Returns the rows of a reply, or of the statement number `at` of several. */
export const rowsOf = (reply: unknown, at?: number): readonly Row[] =>
  ((at === undefined ? reply : (reply as unknown[])[at]) as QueryResult<Row>).rows;

/** Returns a text for a message with several statements, which has no parameters; no server can misread its digits. */
export const literal = (text: Buffer): Sql =>
  raw(`convert_from(decode('${text.toString('hex')}', 'hex'), 'UTF8')`);

export const bytes = (text: string): Buffer => Buffer.from(text);

/** Returns the name of a key in replies. */
export const nameTextOf = (finalKey: string): string => nameOf(finalKey).toString();

export const isTrue = (value: string | null | undefined): boolean => value === 't';

/** Returns a rest of time in ms; 0 when it is over. */
export const msOf = (us: string | number | null | undefined): number =>
  Math.max(0, Math.ceil(Number(us) / US));
