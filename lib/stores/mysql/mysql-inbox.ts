import type { Runtime } from '../../core/runtime.js';
import { Lane } from '../sql/lane.js';
import { sql, type Sql, type SqlSession, type Statement } from '../sql/sql.js';
import type { NoteMessages, NoteStatements, RunStatement } from '../sql/sql-dialect.js';
import { IS_NOTE } from '../sql/sql-notes.js';
import { bytes, nothing } from '../sql/sql-terms.js';
import { rowsOf, textRowsOf } from './mysql-terms.js';

/** How long a process sleeps in the server at most, in s. The server notices only then that the process has gone. */
const SLEEP_S = 5;
/** Time in ms within which such a statement has its reply. */
const TIMEOUT_MS = 8_000;
/** For how long a message stays, in ms, if its reader has gone. */
const MESSAGE_MS = 2_000;
/** Pause in ms after a failure. */
const PAUSE_MS = 5_000;

export interface InboxHost {
  readonly runtime: Runtime;
  readonly table: Sql;
  connect(): Promise<SqlSession>;
  readonly notes: NoteStatements;
}

/**
 * Messages between processes, in a database without notifications. A process that listens sleeps in the server, on a
 * connection of its own, which has a named lock. A message is a note. Its sender then ends the sleep: an account may end
 * the statements of its own connections.
 */
export class MysqlInboxes implements NoteMessages {
  /** The table has room for 850 bytes. */
  readonly maxHolds = 4;
  private readonly lanes = new Set<Lane>();

  constructor(private readonly host: InboxHost) {}

  listen(row: string, listener: (text: string) => void): () => void {
    const lane = new Lane({ ...this.host, name: 'MySQL', timeoutMs: TIMEOUT_MS });
    this.lanes.add(lane);
    void this.hear(row, lane, listener);
    return () => this.end(lane);
  }

  async send(row: string, text: string, run: RunStatement): Promise<boolean> {
    const { host } = this;
    const id = await run({
      sql: sql`SELECT IS_USED_LOCK(${bytes(row)}) AS id`,
      read: (reply) => rowsOf<{ id: number | null }>(reply)[0]!.id,
    });
    if (id === null) return false;
    await run(host.notes.write(`${row}.${host.runtime.newId()}`, text, MESSAGE_MS));
    // The process reads its messages in any case before it sleeps.
    await run({ sql: sql`KILL QUERY ${id}`, read: nothing }).catch(nothing);
    return true;
  }

  close(): void {
    for (const lane of this.lanes) this.end(lane);
  }

  private end(lane: Lane): void {
    if (this.lanes.delete(lane)) lane.destroy();
  }

  private async hear(row: string, lane: Lane, listener: (text: string) => void): Promise<void> {
    const { runtime } = this.host;
    while (this.lanes.has(lane)) {
      // The end of its sleep may be an error, and may end further statements of its request.
      await lane.run(() => this.sleep(row)).catch(nothing);
      try {
        const messages = await lane.run(() => this.messages(row));
        if (messages.size > 0) await lane.run(() => this.host.notes.remove([...messages.keys()]));
        for (const text of messages.values()) if (this.lanes.has(lane)) listener(text);
      } catch {
        await new Promise<void>((resolve) => runtime.setTimer(resolve, PAUSE_MS, true));
      }
    }
  }

  private sleep(row: string): Statement<void> {
    const name = bytes(row);
    return {
      sql: sql`DO IF(IS_USED_LOCK(${name}) <=> CONNECTION_ID(), 1, GET_LOCK(${name}, 0));
SELECT SLEEP(IF(EXISTS(SELECT 1 FROM ${this.host.table} WHERE ${isMessageTo(row)}), 0, ${SLEEP_S})) AS slept`,
      read: nothing,
    };
  }

  private messages(row: string): Statement<ReadonlyMap<string, string>> {
    return {
      sql: sql`SELECT name, queue FROM ${this.host.table} WHERE ${isMessageTo(row)}`,
      read: (reply) => new Map(textRowsOf(reply).map(({ name, queue }) => [name!, queue!])),
    };
  }
}

/** Condition: the row is a message to this process. */
const isMessageTo = (row: string): Sql =>
  sql`name > ${bytes(`${row}.`)} AND name < ${bytes(`${row}/`)} AND ${IS_NOTE}`;
