import { Client, type ClientConfig, type QueryConfig } from 'pg';
import type { Runtime } from '../../core/util/runtime.js';
import { type Sql, SqlFailure, type SqlSession, type SqlValue, type Statement } from '../sql/sql.js';

/** States of a statement that others have locked out, or that met others in another order. */
const TRANSIENT = new Set(['40001', '40P01', '55P03']);
/** States of a server that is not the primary: its name may lead to another one now. */
const NOT_PRIMARY = new Set(['25006', '57P03']);
/** States of a server that may answer otherwise later. 57014 is a statement that took too long. */
const PASSING = new Set([...NOT_PRIMARY, '53300', '57014']);
/** State of a prepared statement whose columns have another type by now. It has executed nothing. */
const STALE = '0A000';
/** States of a connection that has ended, or of a broken server: the statement may stand. */
const ENDED = /^(?:08|25P0[34]|40003|57P0[1245]|58|F0|XX)/;

interface PostgresError extends Error {
  readonly code?: string | undefined;
  readonly severity?: string | undefined;
}

/** Returns the state of SQL of a failure's cause; undefined for a failure of the connection. */
export const stateOf = (failure: unknown): string | undefined => {
  const { code, severity } = ((failure as Error | undefined)?.cause ?? {}) as Partial<PostgresError>;
  return severity === undefined ? undefined : code;
};

/** Returns the failure of a statement that was sent, or of a connection. */
const failureOf = (cause: PostgresError, sentOn?: SqlSession): SqlFailure => {
  const { message, code = 'no reason given', severity } = cause;
  const isRefused = severity !== undefined && !ENDED.test(code);
  const outcome = sentOn && !isRefused ? 'unknown' : 'not-executed';
  const isReply = severity !== undefined;
  const options = {
    cause,
    ...{ transient: TRANSIENT.has(code), keyOnly: TRANSIENT.has(code) },
    passing: !isReply || PASSING.has(code) || (sentOn !== undefined && !isRefused),
  };
  return new SqlFailure(`The database failed: ${message || code}`, outcome, options, sentOn);
};

/** Text of a message, by the texts of its statement, and the number of the parameter at each place. */
const messages = new WeakMap<
  readonly string[],
  { readonly text: string; readonly places: readonly number[] }
>();

const textOf = (texts: readonly string[], between: readonly (number | string)[]): string =>
  between.reduce<string>((all, part, i) => `${all}${part}${texts[i + 1]!}`, texts[0]!);

/**
 * Returns a statement with its parameters as $1, $2, …. A message with several statements has none, and its numbers are
 * in the text.
 */
const messageOf = ({ texts, values }: Sql): { text: string; values: SqlValue[] } => {
  const passed: SqlValue[] = [];
  if (values.every((value) => typeof value === 'number'))
    return { text: textOf(texts, values), values: passed };
  const places = values.map((value) => {
    const at = typeof value === 'number' ? -1 : passed.indexOf(value);
    return at < 0 ? passed.push(value) : at + 1;
  });
  let known = messages.get(texts);
  if (!known || places.some((place, i) => place !== known!.places[i])) {
    const parameters = places.map((place) => `$${place}`);
    known = { text: textOf(texts, parameters), places };
    messages.set(texts, known);
  }
  return { text: known.text, values: passed };
};

/** Identity of a connection in the server. Numbers of processes are used again, so it has the start, too. */
interface Backend {
  readonly pid: number;
  readonly startedUs: number;
  /** Version of the server, such as 150018. */
  readonly version: number;
}

/** A connection to PostgreSQL. */
export class PostgresSession implements SqlSession {
  isOver = false;
  /** Undefined behind a pooler, where a connection has no process in the server. */
  backend: Backend | undefined;
  /** Called with the payload of each notification, and its channel. */
  onNotification: ((payload: string, channel: string) => void) | undefined;
  /** Called when the connection has ended. */
  onEnd: (() => void) | undefined;
  /** Names of statements that are prepared on this connection, by their text. */
  private readonly prepared = new Map<string, string>();
  private names = 0;

  /** ECMAScript-private: the client knows the password. */
  readonly #client: Client;

  private constructor(client: Client) {
    this.#client = client;
    const over = (): void => {
      this.isOver = true;
      this.onEnd?.();
    };
    client.on('error', over);
    client.on('end', over);
    client.on('notification', ({ payload = '', channel }) => this.onNotification?.(payload, channel));
  }

  /** Opens a connection, and prepares it with a first statement. Rejects with a {@link SqlFailure}. */
  static async connect(
    config: ClientConfig,
    { runtime, timeoutMs }: { readonly runtime: Runtime; readonly timeoutMs: number },
    first?: Statement<Backend>,
  ): Promise<PostgresSession> {
    const client = new Client(config);
    const session = new PostgresSession(client);
    let isLate = false;
    const late = (): void => {
      isLate = true;
      session.destroy();
    };
    const timer = runtime.setTimer(late, timeoutMs, true);
    try {
      await client.connect();
      if (first) session.backend = await session.send(first);
      return session;
    } catch (cause) {
      session.destroy();
      if (isLate)
        throw new SqlFailure(`there was no connection to PostgreSQL within ${timeoutMs} ms`, 'not-executed', {
          ...{ cause, passing: true },
        });
      if (cause instanceof SqlFailure) throw cause;
      throw failureOf(cause as PostgresError);
    } finally {
      runtime.clearTimer(timer);
    }
  }

  /** Number of the process as the other end said when the connection began. A pooler says a number of its own. */
  get saidPid(): number | null {
    return (this.#client as unknown as { readonly processID: number | null }).processID;
  }

  send<T>({ sql, read, prepared = false }: Statement<T>): Promise<T> {
    const message = messageOf(sql);
    // The driver's own promise, and one for each step, would cost as much as the driver.
    return new Promise((resolve, reject) => {
      const failed = (failure: SqlFailure): void => {
        if (stateOf(failure) === STALE && this.prepared.delete(message.text)) exchange();
        else reject(failure);
      };
      const replied = (reply: unknown): void => {
        try {
          resolve(read(reply));
        } catch (cause) {
          reject(cause);
        }
      };
      const exchange = (): void =>
        this.exchange(prepared ? { ...message, ...this.nameOf(message.text) } : message, replied, failed);
      exchange();
    });
  }

  /** Without parameters the driver takes several statements as one message, which the server executes as one transaction. */
  private exchange(
    query: QueryConfig,
    replied: (reply: unknown) => void,
    failed: (failure: SqlFailure) => void,
  ): void {
    if (this.isOver)
      return failed(new SqlFailure('the connection has ended', 'not-executed', { passing: true }));
    this.#client.query(query, (error: PostgresError | null, reply: unknown) => {
      if (!error) return replied(reply);
      const failure = failureOf(error, this);
      if (failure.outcome === 'unknown' || NOT_PRIMARY.has(stateOf(failure)!)) this.destroy();
      return failed(failure);
    });
  }

  /** A pooler may send the next statement to a process that knows no name. */
  private nameOf(text: string): { name?: string } {
    const { backend, prepared } = this;
    if (!backend) return {};
    const name = prepared.get(text) ?? `lock ${(this.names += 1)}`;
    prepared.set(text, name);
    return { name };
  }

  destroy(): void {
    this.isOver = true;
    const { connection } = this.#client as unknown as { connection: { stream: { destroy(): void } } };
    connection.stream.destroy();
  }
}
