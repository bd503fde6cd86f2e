import type { NoteMessages, NoteStatements } from '../sql/sql-dialect.js';
import type { Statement } from '../sql/sql-session.js';
import { IS_NOTE, MEMBER } from '../sql/sql-notes.js';
import { joined, sql, type Sql } from '../sql/sql.js';
import { noteMessage, type PostgresListener } from './postgres-listener.js';
import { bytes, NOW, rowsOf, US, type PostgresNames } from './postgres-terms.js';

/** Longest payload of a notification, in bytes. */
const MAX_PAYLOAD = 7_999;

const nothing = (): void => undefined;

/** Notes as rows, and messages as notifications on the channel of releases. */
export class PostgresNotes implements NoteStatements {
  readonly messages: NoteMessages | undefined;
  private readonly table: Sql;

  constructor({ table, notify }: PostgresNames, listener: PostgresListener | undefined) {
    this.table = table;
    this.messages = listener && {
      listen: (row, message) => {
        const watch = listener.watch(row, { notified: nothing, failed: nothing, message });
        return () => watch.close();
      },
      send: (row, text) => {
        const payload = bytes(noteMessage(row, text));
        if (payload.length > MAX_PAYLOAD) return undefined;
        return { sql: sql`SELECT ${notify(sql`${payload}::text`)}`, read: nothing };
      },
    };
  }

  write(row: string, text: string, ttlMs: number): Statement<void> {
    return {
      sql: sql`INSERT INTO ${this.table} (name, member, until, queue) VALUES (${bytes(row)}, ${MEMBER}, ${NOW} + ${ttlMs * US}::bigint, ${bytes(text)})
ON CONFLICT (name, member) DO UPDATE SET until = excluded.until, queue = excluded.queue`,
      read: nothing,
    };
  }

  read(rows: readonly string[]): Statement<ReadonlyMap<string, string>> {
    const names = joined(
      rows.map((row) => sql`${bytes(row)}`),
      ', ',
    );
    return {
      sql: sql`SELECT name, queue FROM ${this.table} WHERE name IN (${names}) AND ${IS_NOTE} AND until > ${NOW}`,
      read: (reply) => new Map(rowsOf(reply).map(({ name, queue }) => [name!, queue!])),
    };
  }

  remove(row: string): Statement<void> {
    return {
      sql: sql`DELETE FROM ${this.table} WHERE name = ${bytes(row)} AND ${IS_NOTE}`,
      read: nothing,
    };
  }
}
