import { createConnection, type Connection, type ConnectionOptions, type QueryError } from 'mysql2';
import { SqlFailure, type SqlSession, type Statement } from '../sql/sql-session.js';

/** Errors that say that a row or a table was locked by others, or that the server chose another transaction. */
const TRANSIENT = new Set([1020, 1205, 1213]);
/** Errors of a server that may answer otherwise later, or of one that is not the primary any more. */
const PASSING = new Set([1040, 1047, 1203, 1226, 1290, 1836, 3032, 3100]);
/** Errors of a server that is not the primary: its name may lead to another one now. */
const NOT_PRIMARY = new Set([1047, 1290, 1792, 1836]);
/** Errors of a statement that was ended from outside: it may stand. */
const ENDED = new Set([1053, 1180, 1317, 1927]);

const NAME = 'The database';

/** Returns the failure of a statement that was sent, or of a connection. */
const failureOf = (error: QueryError, wasSent: boolean, session?: SqlSession): SqlFailure => {
  const { errno = 0, message } = error;
  // A driver's own error has no state of SQL, or is about the connection.
  const isReply = /^\w{5}$/.test(error.sqlState ?? '') && !error.fatal;
  const isRefused = isReply && !ENDED.has(errno);
  const outcome = wasSent && !isRefused ? 'unknown' : 'not-executed';
  const options = {
    cause: error,
    transient: isReply && TRANSIENT.has(errno),
    passing: !isReply || PASSING.has(errno) || ENDED.has(errno),
  };
  return new SqlFailure(`${NAME} failed: ${message}`, outcome, options, wasSent ? session : undefined);
};

/** Counts how often a server turned out not to be the primary any more. Connections from before are given up. */
export interface Primary {
  epoch: number;
}

/** A connection to MySQL or MariaDB. */
export class MysqlSession implements SqlSession {
  private hasEnded = false;
  /** Whether the connection has its guard. */
  isGuarded = false;
  private abandon: (() => void) | undefined;
  private readonly epoch: number;

  private constructor(
    private readonly connection: Connection,
    /** Name of the lock that this connection has while it lives in the server. */
    readonly guard: string,
    private readonly primary: Primary,
  ) {
    this.epoch = primary.epoch;
    const over = (): void => void (this.hasEnded = true);
    connection.on('error', over);
    connection.on('end', over);
  }

  get isOver(): boolean {
    return this.hasEnded || this.epoch !== this.primary.epoch;
  }

  /** Opens a connection. Rejects with a {@link SqlFailure}. */
  static connect(
    options: ConnectionOptions,
    guard: string,
    primary: Primary,
    timeoutMs: number,
  ): Promise<MysqlSession> {
    return new Promise((resolve, reject) => {
      const connection = createConnection({
        ...options,
        connectTimeout: timeoutMs,
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
      const session = new MysqlSession(connection, guard, primary);
      connection.connect((error) => {
        if (!error) return resolve(session);
        session.destroy();
        reject(failureOf(error, false));
      });
    });
  }

  send<T>({ sql, read }: Statement<T>): Promise<T> {
    const { connection } = this;
    const text = sql.texts.join('?');
    return new Promise<T>((resolve, reject) => {
      if (this.isOver)
        return reject(new SqlFailure('the connection has ended', 'not-executed', { passing: true }));
      // The driver forgets the statement under way when it destroys the connection.
      this.abandon = () =>
        reject(new SqlFailure('the connection was closed', 'unknown', { passing: true }, this));
      connection.query(text, [...sql.values], (error, reply) => {
        if (!error) {
          try {
            resolve(read(reply));
          } catch (cause) {
            reject(cause);
          }
          return;
        }
        const failure = failureOf(error, true, this);
        this.abandon = () => reject(failure);
        const isNotPrimary = NOT_PRIMARY.has(error.errno ?? 0);
        if (isNotPrimary && !this.isOver) this.primary.epoch += 1;
        // Without this, an undo would end the connection under a later statement.
        if (isNotPrimary || failure.outcome === 'unknown') this.destroy();
        // Ends a transaction of which the first statements were executed.
        else connection.query('ROLLBACK', this.abandon);
      });
    });
  }

  destroy(): void {
    this.hasEnded = true;
    this.connection.destroy();
    this.abandon?.();
  }
}
