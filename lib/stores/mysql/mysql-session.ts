import type { Socket } from 'node:net';
import { createConnection, type Connection, type ConnectionOptions, type QueryError } from 'mysql2';
import { SqlFailure, type SqlSession, type Statement } from '../sql/sql.js';

/** Errors that say that a row or a table was locked by others, or that the server chose another transaction. */
const TRANSIENT = new Set([1020, 1205, 1213, 3572]);
/** Errors of a server that may answer otherwise later, or of one that is not the primary any more. */
const PASSING = new Set([1040, 1047, 1203, 1226, 1290, 1836, 3032, 3100]);
/** Errors of a server that is not the primary: its name may lead to another one now. */
const NOT_PRIMARY = new Set([1047, 1290, 1792, 1836]);
/** Errors of a server that has no room for a prepared statement, or has it no more. It has executed nothing. */
const UNPREPARED = new Set([1243, 1461, 1615]);
/** Errors of a statement that was ended from outside: it may stand. */
const ENDED = new Set([1053, 1180, 1317, 1927]);

const NAME = 'The database';

const errnoOf = (failure: unknown): number =>
  ((failure as SqlFailure).cause as Partial<QueryError> | undefined)?.errno ?? 0;

/** Returns the failure of a statement that was sent, or of a connection. */
const failureOf = (error: QueryError, wasSent: boolean, session?: SqlSession): SqlFailure => {
  const { errno = 0, message } = error;
  // The statement, and the keys in it.
  Reflect.deleteProperty(error, 'sql');
  // A driver's own error has no state of SQL, or is about the connection.
  const isReply = /^\w{5}$/.test(error.sqlState ?? '') && !error.fatal;
  const isRefused = isReply && !ENDED.has(errno);
  const outcome = wasSent && !isRefused ? 'unknown' : 'not-executed';
  const options = {
    cause: error,
    ...{ transient: isReply && TRANSIENT.has(errno), keyOnly: isReply && TRANSIENT.has(errno) },
    passing: !isReply || PASSING.has(errno) || ENDED.has(errno),
  };
  return new SqlFailure(`${NAME} failed: ${message}`, outcome, options, wasSent ? session : undefined);
};

/** Counts how often a server turned out not to be the primary any more. Connections from before are given up. */
export interface Primary {
  epoch: number;
}

export interface MysqlSessionSettings {
  /** Name of the lock that the connection has while it lives in the server. */
  readonly guard: string;
  readonly primary: Primary;
  /** Whether a proxy shares connections. */
  readonly pooled: boolean;
  readonly timeoutMs: number;
}

/** A connection to MySQL or MariaDB. */
export class MysqlSession implements SqlSession {
  private hasEnded = false;
  /** Whether the connection has its guard. */
  isGuarded = false;
  /** Statements about several rows are only sent in READ COMMITTED. In another isolation they lock the gaps between rows. */
  sendsAlone = true;
  private abandon: (() => void) | undefined;
  private readonly epoch: number;

  /** ECMAScript-private: the driver's connection knows the password. */
  readonly #connection: Connection;

  private constructor(
    connection: Connection,
    private readonly settings: MysqlSessionSettings,
  ) {
    this.#connection = connection;
    this.epoch = settings.primary.epoch;
    const over = (): void => void (this.hasEnded = true);
    connection.on('error', over);
    connection.on('end', over);
  }

  /** Name of the lock that this connection has while it lives in the server. */
  get guard(): string {
    return this.settings.guard;
  }

  get isOver(): boolean {
    return this.hasEnded || this.epoch !== this.settings.primary.epoch;
  }

  /** Opens a connection. Rejects with a {@link SqlFailure}. */
  static connect(options: ConnectionOptions, settings: MysqlSessionSettings): Promise<MysqlSession> {
    return new Promise((resolve, reject) => {
      const connection = createConnection({
        ...options,
        connectTimeout: settings.timeoutMs,
        multipleStatements: true,
        // Counts only rows that have changed.
        flags: ['-FOUND_ROWS'],
        supportBigNumbers: true,
        // Replies have one form, whatever the app prefers.
        bigNumberStrings: false,
        rowsAsArray: false,
        nestTables: false,
        typeCast: true,
      });
      const session = new MysqlSession(connection, settings);
      connection.connect((error) => {
        if (!error) return resolve(session);
        session.destroy();
        reject(failureOf(error, false));
      });
    });
  }

  async send<T>(statement: Statement<T>): Promise<T> {
    const isPrepared = statement.prepared === true && !this.settings.pooled;
    try {
      return await this.exchange(statement, isPrepared);
    } catch (failure) {
      if (!isPrepared || !UNPREPARED.has(errnoOf(failure))) throw failure;
      return this.exchange(statement, false);
    }
  }

  private exchange<T>({ sql, read }: Statement<T>, isPrepared: boolean): Promise<T> {
    const connection = this.#connection;
    return new Promise<T>((resolve, reject) => {
      if (this.isOver)
        return reject(new SqlFailure('the connection has ended', 'not-executed', { passing: true }));
      // The driver forgets the statement under way when it destroys the connection.
      this.abandon = () =>
        reject(new SqlFailure('the connection was closed', 'unknown', { passing: true }, this));
      const answered = (error: QueryError | null, reply: unknown): void => {
        if (error) return this.failed(error, reject);
        try {
          resolve(read(reply));
        } catch (cause) {
          reject(cause);
        }
      };
      const [text, values] = [sql.texts.join('?'), [...sql.values] as (Buffer | number)[]];
      if (isPrepared) connection.execute(text, values, answered);
      else connection.query(text, values, answered);
    });
  }

  private failed(error: QueryError, reject: (failure: SqlFailure) => void): void {
    const failure = failureOf(error, true, this);
    this.abandon = () => reject(failure);
    const isNotPrimary = NOT_PRIMARY.has(error.errno ?? 0);
    if (isNotPrimary && !this.isOver) this.settings.primary.epoch += 1;
    // Without this, an undo would end the connection under a later statement.
    if (isNotPrimary || failure.outcome === 'unknown') this.destroy();
    // Ends a transaction of which the first statements were executed.
    else this.#connection.query('ROLLBACK AND NO CHAIN NO RELEASE', this.abandon);
  }

  destroy(): void {
    this.hasEnded = true;
    this.#connection.destroy();
    // The driver only says that it sends no more. Then a server that hangs would keep the process alive.
    (this.#connection as unknown as { readonly stream: Socket }).stream.destroy();
    this.abandon?.();
  }
}
