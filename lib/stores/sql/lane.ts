import { unbound, type Runtime } from '../../core/util/runtime.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { CommandDeadlines, type PendingCommand } from '../load/command-deadlines.js';
import { Load } from '../load/load.js';
import { UnsentRequests, type SendTerms, type Unsent } from '../load/unsent-requests.js';
import {
  isRefused,
  NO_ROW,
  NOT_FREE,
  SqlFailure,
  type SqlSession,
  type Statement,
  type Together,
} from './sql.js';

/** Pauses in ms before a statement is tried again whose row others have locked: the first one, and the longest. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 200;
/**
 * A statement that has waited for a lock of others for so long, in ms, keeps its lane from the others. No probe sees a lock
 * of the place of a new row.
 */
const KEEPS_LANE_MS = 500;
/** Maximum number of acquires or releases in one statement. */
const MAX_TOGETHER = 64;
/** Maximum number of rows in one statement. */
export const MAX_ROWS = 100;
/** A statement that took longer than this part of the time-out is slow: the next ones have fewer rows. */
const SLOW = 0.25;

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
export type MakeStatement<T> = (sentAt: number) => Statement<T>;

/** How a request is sent together with others. */
export interface Company<C, T> {
  readonly by: Together<C, T>;
  readonly claim: C;
  /** Called each time before it is sent. */
  sent?(at: number): void;
}

interface Request extends Unsent {
  readonly make: MakeStatement<unknown>;
  readonly company: Company<unknown, unknown> | undefined;
  readonly resolve: (value: never) => void;
  /** How it is sent next. Undefined: alone, with its own statement. */
  by: Together<unknown, unknown> | undefined;
  /** Maximum number of requests with which it is sent: less after an error that one of them may have caused. */
  room: number;
  /** Whether others may have locked its row: a statement for several has skipped it, or has waited. */
  isSkipped: boolean;
  /** Set once others had locked its row when it was sent. */
  lockedOut:
    { readonly failure: SqlFailure; readonly pauseMs: number; readonly keepsLane: boolean } | undefined;
}

/**
 * One connection to the database, with its own queue. One statement is under way at a time, so it is certain of every
 * other one that it was not sent. Requests that wait meanwhile, and can be sent together, are the next statement. The
 * connection is opened with the first statement, and again after its end. It is ended only when the server did not
 * answer a statement that was sent.
 */
export class Lane {
  private session: SqlSession | undefined;
  private connectingSince: number | undefined;
  /** Why the last connection could not be opened; undefined before, and once one is open. */
  private refusal: SqlFailure | undefined;
  private readonly load: Load;
  private readonly unsent: UnsentRequests<Request>;
  private readonly deadlines: CommandDeadlines;
  private underWay: readonly Request[] | undefined;
  /** Maximum number of rows in one statement at present. */
  private rows = MAX_ROWS;
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

  /** Maximum number of rows that a statement should have. */
  get maxRows(): number {
    return this.rows;
  }

  /**
   * Sends a statement when its turn comes. Rejects with a {@link StoreFailure}.
   *
   * @param company how it may be sent together with others, in place of its own statement; its one line is its key
   */
  run<T, C>(make: MakeStatement<T>, terms: SendTerms = {}, company?: Company<C, T>): Promise<T> {
    if (this.closing) return Promise.reject(CLOSED());
    return new Promise<T>((resolve, reject) => {
      const { unsent } = this;
      const by = company?.by;
      const own = { make, resolve, company, by, room: MAX_TOGETHER, lockedOut: undefined, isSkipped: false };
      const request: Request = Object.assign(unsent.request(terms, reject), own);
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
      const now = host.runtime.now();
      const request = unsent.next(now);
      if (!request) return;
      const requests = [request, ...this.companions(request, session, now)];
      this.underWay = requests;
      // Outside the caller's context: its traces show no keys.
      unbound(() => this.send(session, requests)).then(
        (values) => this.replied(requests, values),
        (failure: SqlFailure) => this.failed(requests, failure),
      );
    }
  }

  /** Returns the requests that are sent together with one. Each key has one at most: further ones wait behind it. */
  private companions({ by, room }: Request, { sendsAlone }: SqlSession, now: number): readonly Request[] {
    if (!by || sendsAlone) return [];
    const count = Math.min(room, this.rows) - 1;
    return this.unsent.more(now, count, (other) => other.by === by && other.room === room);
  }

  private async send(session: SqlSession, requests: readonly Request[]): Promise<readonly unknown[]> {
    const { host } = this;
    const [{ lines, lockedOut, isSkipped, by, company, make }] = requests as readonly [Request];
    const [line] = lines;
    this.beginsStatement(requests);
    if ((lockedOut || isSkipped) && host.probe && line !== undefined) {
      await session.send(host.probe(line));
      if (this.underWay !== requests) return [];
      this.beginsStatement(requests);
    }
    const { sentAt } = this.sent!;
    for (const one of requests) one.company?.sent?.(sentAt);
    if (requests.length > 1) return session.send(by!.many(requests.map((one) => one.company!.claim)));
    return [await session.send(by?.one?.(company!.claim) ?? make(sentAt))];
  }

  /** A statement is sent: it has a time-out of its own. */
  private beginsStatement(requests: readonly Request[]): void {
    if (this.sent) this.sent.done = true;
    this.sent = this.deadlines.add(() => this.isLate(requests));
  }

  /** The statement under way has its reply, or is given up: other ones can be sent. */
  private endsStatement(requests: readonly Request[]): void {
    const { timeoutMs, runtime } = this.host;
    this.sent!.done = true;
    this.underWay = undefined;
    const isSlow = runtime.now() - this.sent!.sentAt > SLOW * timeoutMs;
    const rows = Math.max(requests.length, requests[0]!.lines.length);
    if (!isSlow) this.rows = Math.min(MAX_ROWS, 2 * this.rows);
    else if (rows > 1) this.rows = rows >> 1;
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

  /** A request without a reply is sent otherwise, before those that come later. */
  private replied(requests: readonly Request[], values: readonly unknown[]): void {
    if (this.underWay !== requests) return;
    this.endsStatement(requests);
    requests.forEach((request, i) => {
      const value = values[i];
      const { by } = request;
      if (by && (value === undefined || value === NO_ROW || value === NOT_FREE)) {
        request.isSkipped = requests.length > 1 && value === undefined;
        return this.repeat(request, value === NO_ROW ? by.inserting : undefined);
      }
      this.unsent.forget(request);
      request.resolve(value as never);
    });
    this.next();
  }

  private repeat(request: Request, by: Request['by']): void {
    const { unsent, host } = this;
    request.by = by;
    unsent.repeat(request, host.runtime.now() + host.timeoutMs);
    if (this.closing && request.urgency !== 'release') unsent.fail(request, CLOSED());
  }

  private failed(requests: readonly Request[], failure: SqlFailure): void {
    if (this.underWay !== requests) return;
    this.endsStatement(requests);
    if (requests.length > 1 && mayBeOfOneRow(failure)) {
      for (const request of requests) {
        request.room = requests.length >> 1;
        // Each half would wait for the locked row again.
        request.isSkipped = failure.transient;
        this.repeat(request, failure.transient ? undefined : request.by);
      }
    } else {
      const [first] = requests as readonly [Request];
      // Rows of a renewal are not waited for: the others of its batch would wait, too.
      const isLockedOut = failure.transient && failure.outcome === 'not-executed';
      if (isLockedOut && first.urgency !== 'renewal') this.isLockedOut(first, failure);
      else this.rejectAll(requests, failure);
    }
    this.next();
  }

  private rejectAll(requests: readonly Request[], failure: SqlFailure): void {
    for (const request of requests) {
      this.unsent.forget(request);
      request.reject(failure);
    }
  }

  private isLockedOut(request: Request, failure: SqlFailure): void {
    const { load } = this;
    if (load.lockedOut === request) load.lockedOut = undefined;
    const pauseMs = Math.min(2 * (request.lockedOut?.pauseMs ?? FIRST_PAUSE_MS / 2), LONGEST_PAUSE_MS);
    const keepsLane = this.host.runtime.now() - this.sent!.sentAt >= KEEPS_LANE_MS;
    request.lockedOut = { failure, pauseMs, keepsLane };
    request.by = undefined;
    this.unsent.putBack(request);
    if (this.closing && request.urgency !== 'release') this.unsent.fail(request, CLOSED());
    else this.tryLater(request, pauseMs, keepsLane);
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

  private isLate(requests: readonly Request[]): void {
    if (this.underWay !== requests) return;
    const { host, session } = this;
    const { name, timeoutMs } = host;
    const message = `${name} did not answer within ${timeoutMs} ms`;
    const failure = new SqlFailure(message, 'unknown', { passing: true }, session);
    this.endsStatement(requests);
    session?.destroy();
    this.rejectAll(requests, failure);
    this.next();
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

/** Whether the server refused a statement for a reason that other rows may not have. */
export const mayBeOfOneRow = (failure: unknown): boolean =>
  isRefused(failure) ||
  (failure instanceof StoreFailure && failure.outcome === 'not-executed' && failure.transient);
