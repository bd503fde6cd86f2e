import { unbound, type Runtime } from '../../core/runtime.js';
import type { StoreFailure } from '../../core/seam/store-failure.js';
import { CommandDeadlines, type PendingCommand } from '../load/command-deadlines.js';
import { Load } from '../load/load.js';
import { UnsentRequests, type SendTerms, type Unsent } from '../load/unsent-requests.js';
import { SqlFailure, type Attempt, type SqlSession, type Statement } from './sql.js';

/** Pauses in ms before a statement is tried again whose row others have locked: the first one, and the longest. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 200;
/** A statement that has waited for a lock of others for so long, in ms, keeps its lane from the others. */
const KEEPS_LANE_MS = 500;

const CLOSED = (): SqlFailure => new SqlFailure('the lock store is closed', 'not-executed', {});

/** What the lanes of a store have in common. */
export interface LaneHost {
  /** Name of the database, for messages. */
  readonly name: string;
  readonly runtime: Runtime;
  /** Time in ms within which each statement has its reply, counted from its sending. */
  readonly timeoutMs: number;
  /** What the process asks of the store. Default: that of the lane alone. */
  readonly load?: Load;
  /** Opens a connection. Rejects with a {@link SqlFailure}. */
  connect(): Promise<SqlSession>;
  /** See `SqlDialect.probe`. */
  probe?(finalKey: string): Statement<void>;
}

/** Makes a statement when it is sent. */
export type MakeStatement<T> = (sentAt: number) => Statement<T> | Attempt<T>;

interface Request extends Unsent {
  readonly make: MakeStatement<unknown>;
  readonly resolve: (value: never) => void;
  /** Set once others had locked its row when it was sent. */
  lockedOut?: { readonly failure: SqlFailure; readonly pauseMs: number; readonly keepsLane: boolean };
}

/**
 * One connection to the database, with its own queue. One statement is under way at a time, so it is certain of every
 * other one that it was not sent. The connection is opened with the first statement, and again after its end. It is ended
 * only when the server did not answer a statement that was sent.
 */
export class Lane {
  private session: SqlSession | undefined;
  private connectingSince: number | undefined;
  /** Why the last connection could not be opened; undefined before, and once one is open. */
  private refusal: SqlFailure | undefined;
  private readonly load: Load;
  private readonly unsent: UnsentRequests<Request>;
  private readonly deadlines: CommandDeadlines;
  private underWay: Request | undefined;
  /** The statement that was sent last. */
  private sent: PendingCommand | undefined;
  private closing: Promise<void> | undefined;
  private drained: (() => void) | undefined;

  constructor(private readonly host: LaneHost) {
    const { name, runtime, timeoutMs, load = new Load() } = host;
    this.load = load;
    this.deadlines = new CommandDeadlines(timeoutMs, runtime);
    this.unsent = new UnsentRequests<Request>({
      ...{ name, runtime, timeoutMs, load },
      trouble: (request) => this.trouble(request),
      silentForMs: () => this.deadlines.silentForMs,
      next: () => this.next(),
      forgotten: (request) => {
        if (load.lockedOut === request) load.lockedOut = undefined;
        if (this.unsent.all.size === 0) this.drained?.();
      },
    });
  }

  /** Sends a statement when its turn comes. Rejects with a {@link StoreFailure}. */
  run<T>(make: MakeStatement<T>, terms: SendTerms = {}): Promise<T> {
    if (this.closing) return Promise.reject(CLOSED());
    return new Promise<T>((resolve, reject) => {
      const { unsent } = this;
      const request: Request = { ...unsent.request(terms, reject), make, resolve };
      if (!unsent.add(request)) return;
      this.next();
      unsent.wait(request);
    });
  }

  /** Withdraws the acquire of an owner, if it was not sent. */
  withdraw(line: string, owner: string): void {
    this.unsent.withdraw(line, owner);
  }

  /** Returns the failure of an acquire that waits behind others, on a connection that works. */
  failureOf(line: string, owner: string): StoreFailure | undefined {
    return this.unsent.failureOf(line, owner);
  }

  /** Sends the releases that wait, for one time-out at most, and closes the connection. Others are not sent any more. */
  close(): Promise<void> {
    return (this.closing ??= this.end());
  }

  /** Closes the connection at once. The outcome of the statement under way is unknown then. */
  destroy(): void {
    void this.close();
    this.session?.destroy();
  }

  private async end(): Promise<void> {
    const { unsent } = this;
    const { runtime, timeoutMs } = this.host;
    for (const request of unsent.all) if (request.urgency !== 'release') unsent.fail(request, CLOSED());
    if (unsent.all.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = runtime.setTimer(resolve, timeoutMs);
        this.drained = () => {
          runtime.clearTimer(timer);
          resolve();
        };
      });
    }
    unsent.failAll(CLOSED);
    this.session?.destroy();
  }

  private next(): void {
    const { host, unsent } = this;
    while (!this.underWay && this.connectingSince === undefined && unsent.all.size > 0) {
      const { session } = this;
      if (!session || session.isOver) return void this.connect();
      const request = unsent.next(host.runtime.now());
      if (!request) return;
      this.underWay = request;
      // Outside the caller's context: its traces show no keys.
      unbound(() => this.send(session, request)).then(
        (value) => this.ended(request, () => request.resolve(value as never)),
        (failure: SqlFailure) => this.failed(request, failure),
      );
    }
  }

  private async send(session: SqlSession, request: Request): Promise<unknown> {
    const { host } = this;
    const [line] = request.lines;
    this.beginsStatement(request);
    if (request.lockedOut && host.probe && line !== undefined) {
      await session.send(host.probe(line));
      if (this.underWay !== request) return undefined;
      this.beginsStatement(request);
    }
    const statement = request.make(this.sent!.sentAt);
    if (!('otherwise' in statement)) return session.send(statement);
    const value = await session.send(statement);
    if (value !== undefined || this.underWay !== request) return value;
    this.beginsStatement(request);
    return session.send(statement.otherwise());
  }

  /** A statement of a request is sent: it has a time-out of its own. */
  private beginsStatement(request: Request): void {
    this.endsStatement();
    this.sent = this.deadlines.add(() => this.isLate(request));
  }

  /** The statement that was sent last has its reply, or is given up. */
  private endsStatement(): void {
    if (this.sent) this.sent.done = true;
  }

  private async connect(): Promise<void> {
    const { unsent } = this;
    this.connectingSince = this.host.runtime.now();
    this.session?.destroy();
    try {
      const session = await unbound(() => this.host.connect());
      if (this.closing && unsent.all.size === 0) session.destroy();
      else this.session = session;
      this.refusal = undefined;
    } catch (failure) {
      this.refusal = failure as SqlFailure;
      // Whatever failed, none of these was sent.
      const { message, cause, transient, passing } = this.refusal;
      unsent.failAll(() => new SqlFailure(message, 'not-executed', { cause, transient, passing }));
    }
    this.connectingSince = undefined;
    this.next();
  }

  private ended(request: Request, settle: () => void): void {
    if (this.underWay !== request) return;
    this.endsStatement();
    this.underWay = undefined;
    this.unsent.forget(request);
    settle();
    this.next();
  }

  private failed(request: Request, failure: SqlFailure): void {
    // Rows of a renewal are not waited for: the others of its batch would wait, too.
    const isLockedOut =
      failure.transient && failure.outcome === 'not-executed' && request.urgency !== 'renewal';
    if (this.underWay !== request || !isLockedOut) return this.ended(request, () => request.reject(failure));
    const { load } = this;
    this.endsStatement();
    this.underWay = undefined;
    if (load.lockedOut === request) load.lockedOut = undefined;
    const pauseMs = Math.min(2 * (request.lockedOut?.pauseMs ?? FIRST_PAUSE_MS / 2), LONGEST_PAUSE_MS);
    const keepsLane = this.host.runtime.now() - this.sent!.sentAt >= KEEPS_LANE_MS;
    request.lockedOut = { failure, pauseMs, keepsLane };
    this.unsent.putBack(request);
    this.tryLater(request, pauseMs, keepsLane);
    this.next();
  }

  /** Tries again a statement whose row others have locked. Meanwhile others are sent. */
  private tryLater(request: Request, pauseMs: number, keepsLane: boolean): void {
    const { load, unsent } = this;
    const again = (): void => {
      if (!unsent.all.has(request)) return;
      if (keepsLane && load.lockedOut) return this.tryLater(request, pauseMs, keepsLane);
      if (keepsLane) load.lockedOut = request;
      unsent.resume(request);
      this.next();
    };
    this.host.runtime.setTimer(again, pauseMs, true);
  }

  private isLate(request: Request): void {
    const { host, session } = this;
    const { name, timeoutMs } = host;
    const message = `${name} did not answer within ${timeoutMs} ms`;
    const failure = new SqlFailure(message, 'unknown', { passing: true }, session);
    session?.destroy();
    this.ended(request, () => request.reject(failure));
  }

  /** What keeps a statement from being sent: others have locked its row, or there is no connection yet. */
  private trouble({ lockedOut, askedAt }: Request): SqlFailure | undefined {
    if (lockedOut) return lockedOut.failure;
    const { session, host, refusal: cause, connectingSince = -Infinity } = this;
    if (session && !session.isOver) return undefined;
    const { name, runtime, timeoutMs } = host;
    const now = runtime.now();
    const message = `there was no connection to ${name} within ${Math.round(now - askedAt)} ms`;
    // A caller may have less time than a connection takes. That is no outage.
    const transient = !cause && now - connectingSince < timeoutMs;
    return new SqlFailure(message, 'not-executed', { cause, transient, passing: true });
  }
}
