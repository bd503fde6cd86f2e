import type { ProcessNotes } from '../../core/seam/process-notes.js';
import { OWN_PREFIX } from '../key-rule.js';
import type { NoteStatements, RunStatement } from './sql-dialect.js';
import { raw } from './sql.js';

/** Prefix of the names of notes. No key begins with it. */
const NOTE_PREFIX = `${OWN_PREFIX}process:`;
/** Member of the rows of notes. So a list of the keys passes over them. */
export const MEMBER = raw("'note'");
/** The row of a note. */
export const IS_NOTE = raw("member = 'note'");

/** Returns whether a name in the table is that of a note. */
export const isNote = (row: string): boolean => row.startsWith(NOTE_PREFIX);

/** Returns the name of a note in the table. */
const rowOf = (name: string): string => `${NOTE_PREFIX}${name}`;

/** Notes as rows in the table of the locks: they need no further table, and no further right. */
export class SqlNotes implements ProcessNotes {
  readonly listen?: NonNullable<ProcessNotes['listen']>;
  readonly send?: NonNullable<ProcessNotes['send']>;

  /** @internal The store creates it. */
  constructor(
    private readonly run: RunStatement,
    private readonly statements: NoteStatements,
  ) {
    const { messages } = statements;
    if (!messages) return;
    this.listen = (name, listener) => messages.listen(rowOf(name), listener);
    this.send = async (name, text) => {
      const statement = messages.send(rowOf(name), text);
      if (!statement) return false;
      await run(statement);
      return true;
    };
  }

  write(name: string, text: string, ttlMs: number): Promise<void> {
    return this.run(this.statements.write(rowOf(name), text, ttlMs));
  }

  async read(names: readonly string[]): Promise<readonly (string | undefined)[]> {
    if (names.length === 0) return [];
    const rows = names.map(rowOf);
    const texts = await this.run(this.statements.read(rows));
    return rows.map((row) => texts.get(row));
  }

  remove(name: string): Promise<void> {
    return this.run(this.statements.remove([rowOf(name)]));
  }
}
