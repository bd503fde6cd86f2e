import type { Row } from '../database.js';

/** A connection of the administrator. */
export interface AdminConnection {
  query(statements: string): Promise<readonly Row[]>;
  close(): void;
}

const answers = (connection: AdminConnection): Promise<boolean> =>
  connection.query('SELECT 1').then(
    () => true,
    () => false,
  );

/**
 * The administrator's way into a database: one connection that is kept, since a full server accepts no further one. After
 * its end it is opened again.
 */
export class AdminLine {
  private connection: AdminConnection | undefined;

  constructor(private readonly open: () => Promise<AdminConnection>) {}

  async query(statements: string): Promise<readonly Row[]> {
    const kept = this.connection;
    if (kept) {
      try {
        return await kept.query(statements);
      } catch (error) {
        // The server refused the statement: a new connection changes nothing, and a full server has none.
        if (await answers(kept)) throw error;
        this.close();
      }
    }
    const opened = await this.open();
    this.close();
    this.connection = opened;
    return opened.query(statements);
  }

  close(): void {
    this.connection?.close();
    this.connection = undefined;
  }
}
