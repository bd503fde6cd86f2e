import type { NoteStatements } from '../sql/sql-dialect.js';
import type { Statement } from '../sql/sql-session.js';
import { IS_NOTE, MEMBER } from '../sql/sql-notes.js';
import { joined, sql } from '../sql/sql.js';
import { bytes, NOW, rowsOf, US, type MysqlNames } from './mysql-terms.js';

const nothing = (): void => undefined;

/** Notes as rows. There are no messages: a bell has no text. */
export class MysqlNotes implements NoteStatements {
  constructor(private readonly names: MysqlNames) {}

  write(row: string, text: string, ttlMs: number): Statement<void> {
    return {
      sql: sql`INSERT INTO ${this.names.table} (name, member, until, queue) VALUES (${bytes(row)}, ${MEMBER}, ${NOW} + ${ttlMs * US}, ${bytes(text)})
ON DUPLICATE KEY UPDATE until = VALUES(until), queue = VALUES(queue)`,
      read: nothing,
    };
  }

  read(rows: readonly string[]): Statement<ReadonlyMap<string, string>> {
    const names = joined(
      rows.map((row) => sql`${bytes(row)}`),
      ', ',
    );
    return {
      sql: sql`SELECT name, queue FROM ${this.names.table} WHERE name IN (${names}) AND ${IS_NOTE} AND until > ${NOW}`,
      read: (reply) =>
        new Map(
          rowsOf<{ name: Buffer; queue: Buffer }>(reply).map(({ name, queue }) => [
            name.toString(),
            queue.toString(),
          ]),
        ),
    };
  }

  remove(row: string): Statement<void> {
    return {
      sql: sql`DELETE FROM ${this.names.table} WHERE name = ${bytes(row)} AND ${IS_NOTE}`,
      read: nothing,
    };
  }
}
