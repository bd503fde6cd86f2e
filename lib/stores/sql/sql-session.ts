import { StoreFailure, type StoreOutcome } from '../../core/seam/store-failure.js';
import type { Sql } from './sql.js';

/** A statement, or several in one message, and how its reply is read. */
export interface Statement<T> {
  readonly sql: Sql;
  /** Reads the reply of the driver. */
  readonly read: (reply: unknown) => T;
  /**
   * Whether a connection prepares the statement when it is first sent. Then the server only executes it: that costs much
   * less. Its text must be one of few, so what differs between requests is a parameter. Without effect behind a pooler.
   */
  readonly prepared?: boolean;
}

/** A statement that may have no result. Then another one is sent, before all later ones. */
export interface Attempt<T> extends Statement<T | undefined> {
  readonly otherwise: () => Statement<T>;
}

/** One connection to a database, with one statement under way at most. */
export interface SqlSession {
  /** Whether the connection has ended. */
  readonly isOver: boolean;
  /** Sends a statement. Rejects with a {@link SqlFailure}. */
  send<T>(statement: Statement<T>): Promise<T>;
  /** Ends the connection at once, whatever is under way. */
  destroy(): void;
}

/** A failed statement, with the connection on which it was sent: an undo needs it. */
export class SqlFailure extends StoreFailure {
  /** Private, since a log that shows all of an error would show the password of the connection. */
  readonly #session: SqlSession | undefined;

  /** @param session undefined when nothing was sent */
  constructor(
    message: string,
    outcome: StoreOutcome,
    options: ConstructorParameters<typeof StoreFailure>[2],
    session?: SqlSession,
  ) {
    super(message, outcome, options);
    this.#session = session;
  }

  get session(): SqlSession | undefined {
    return this.#session;
  }
}
