import { unbound, type Runtime } from '../../core/runtime.js';
import { SqlFailure, type Attempt, type SqlSession, type Statement } from './sql-session.js';

const CLOSED = (): SqlFailure => new SqlFailure('the lock store is closed', 'not-executed', {});

/** What the lanes of a store have in common. */
export interface LaneHost {
  /** Name of the database, for messages. */
  readonly name: string;
  readonly runtime: Runtime;
  /** Time in ms within which each statement has its reply, counted from the request. */
  readonly timeoutMs: number;
  /** Opens a connection. Rejects with a {@link SqlFailure}. */
  connect(): Promise<SqlSession>;
}

interface Request {
  readonly statement: Statement<unknown> | Attempt<unknown>;
  readonly resolve: (value: never) => void;
  readonly reject: (failure: SqlFailure) => void;
  timer: unknown;
}

/**
 * One connection to the database, with its own queue. One statement is under way at a time, so it is certain of every
 * other one that it was not sent. The connection is opened with the first statement, and again after its end.
 */
export class Lane {
  private session: SqlSession | undefined;
  private isConnecting = false;
  private readonly queue: Request[] = [];
  private underWay: Request | undefined;
  private closing: Promise<void> | undefined;
  private idle: (() => void) | undefined;

  constructor(private readonly host: LaneHost) {}

  /** Sends a statement behind the earlier ones. Rejects with a {@link SqlFailure}. */
  run<T>(statement: Statement<T> | Attempt<T>): Promise<T> {
    const { host } = this;
    if (this.closing) return Promise.reject(CLOSED());
    return new Promise<T>((resolve, reject) => {
      const request: Request = { statement, resolve, reject, timer: undefined };
      request.timer = host.runtime.setTimer(() => this.isLate(request), host.timeoutMs, true);
      this.queue.push(request);
      this.next();
    });
  }

  /** Lets the statement under way end, and closes the connection. Others are not sent any more. */
  close(): Promise<void> {
    return (this.closing ??= this.end());
  }

  /** Closes the connection at once. The outcome of the statement under way is unknown then. */
  destroy(): void {
    void this.close();
    this.session?.destroy();
  }

  private async end(): Promise<void> {
    this.failAll(CLOSED());
    if (this.underWay) await new Promise<void>((resolve) => (this.idle = resolve));
    this.session?.destroy();
  }

  private next(): void {
    if (this.underWay || this.isConnecting || this.queue.length === 0) return;
    const { session } = this;
    if (!session || session.isOver) return void this.connect();
    const request = this.queue.shift()!;
    this.underWay = request;
    // Outside the caller's context: its traces show no keys.
    unbound(() => this.send(session, request.statement)).then(
      (value) => this.ended(request, () => request.resolve(value as never)),
      (failure: SqlFailure) => this.ended(request, () => request.reject(failure)),
    );
  }

  private async send<T>(session: SqlSession, statement: Statement<T> | Attempt<T>): Promise<T> {
    if (!('otherwise' in statement)) return session.send(statement);
    return (await session.send(statement)) ?? session.send(statement.otherwise());
  }

  private async connect(): Promise<void> {
    this.isConnecting = true;
    this.session?.destroy();
    try {
      const session = await unbound(() => this.host.connect());
      if (this.closing) session.destroy();
      else this.session = session;
    } catch (failure) {
      // Whatever failed, none of these was sent.
      const { message, cause, transient, passing } = failure as SqlFailure;
      this.failAll(new SqlFailure(message, 'not-executed', { cause, transient, passing }));
    }
    this.isConnecting = false;
    this.next();
  }

  private ended(request: Request, settle: () => void): void {
    this.host.runtime.clearTimer(request.timer);
    if (this.underWay !== request) return;
    this.underWay = undefined;
    settle();
    this.idle?.();
    this.next();
  }

  private isLate(request: Request): void {
    const { host, session } = this;
    const { name, timeoutMs } = host;
    if (this.underWay === request) {
      const message = `${name} did not answer within ${timeoutMs} ms`;
      const failure = new SqlFailure(message, 'unknown', { passing: true }, session);
      session?.destroy();
      this.ended(request, () => request.reject(failure));
      return;
    }
    this.queue.splice(this.queue.indexOf(request), 1);
    const reason = this.isConnecting ? 'there was no connection to' : 'there was no free connection to';
    const message = `${reason} ${name} within ${timeoutMs} ms`;
    request.reject(new SqlFailure(message, 'not-executed', { passing: true }));
  }

  private failAll(failure: SqlFailure): void {
    for (const request of this.queue.splice(0)) {
      this.host.runtime.clearTimer(request.timer);
      request.reject(failure);
    }
  }
}
