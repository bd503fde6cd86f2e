import { onAbort } from '../../core/abort-listeners.js';
import { unbound, type Runtime } from '../../core/runtime.js';
import { LaneQueue, type Queued, type Urgency } from './lane-queue.js';
import { Load, MAX_UNSENT } from './load.js';
import { SqlFailure, type Attempt, type SqlSession, type Statement } from './sql-session.js';

/** Pauses in ms before a statement is tried again whose row others have locked: the first one, and the longest. */
const FIRST_PAUSE_MS = 5;
const LONGEST_PAUSE_MS = 200;
/** A statement that has waited for a lock of others for so long, in ms, keeps its lane from the others. */
const KEEPS_LANE_MS = 500;

const CLOSED = (): SqlFailure => new SqlFailure('the lock store is closed', 'not-executed', {});
/** Why it was unsent is the cause: callers behind it whose time is over hear that. */
const withdrawn = (cause: SqlFailure): SqlFailure =>
  new SqlFailure('the request was withdrawn', 'not-executed', { claimOnly: true, cause });

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
}

/** How a statement waits until it is sent. */
export interface Terms {
  /** Default: `other`. */
  readonly urgency?: Urgency;
  /** See {@link Queued.lines}. Default: none. */
  readonly lines?: readonly string[];
  /** Until when it may be sent, on the runtime's clock. Default: the time-out from now; also for a time that is over. */
  readonly until?: number | undefined;
  /** See {@link Queued.urgentFrom}. */
  readonly urgentFrom?: number;
  /** See {@link Queued.owner}. */
  readonly owner?: string;
  /** Signals that withdraw it while it is unsent. */
  readonly withdrawnBy?: readonly AbortSignal[] | undefined;
}

/** Makes a statement when it is sent. */
export type MakeStatement<T> = (sentAt: number) => Statement<T> | Attempt<T>;

interface Request extends Queued {
  readonly make: MakeStatement<unknown>;
  readonly askedAt: number;
  readonly resolve: (value: never) => void;
  readonly reject: (failure: SqlFailure) => void;
  readonly withdrawnBy: readonly AbortSignal[];
  /** Ends its reply when sent, and its wait when not. */
  timer: unknown;
  readonly stops: (() => void)[];
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
  private isConnecting = false;
  private readonly queue = new LaneQueue<Request>();
  private readonly load: Load;
  private underWay: Request | undefined;
  private sentAt = 0;
  private closing: Promise<void> | undefined;
  private drained: (() => void) | undefined;

  constructor(private readonly host: LaneHost) {
    this.load = host.load ?? new Load();
  }

  /** Sends a statement when its turn comes. Rejects with a {@link SqlFailure}. */
  run<T>(make: MakeStatement<T>, terms: Terms = {}): Promise<T> {
    const { host, load } = this;
    const { urgency = 'other', lines = [], until = 0, urgentFrom, owner, withdrawnBy = [] } = terms;
    if (this.closing) return Promise.reject(CLOSED());
    return new Promise<T>((resolve, reject) => {
      const isSpared = urgency === 'renewal' || urgency === 'release';
      // Not at once: a caller that asks again in a loop would let nothing else of the process run.
      if (load.unsent >= MAX_UNSENT && !isSpared) return host.runtime.soon(() => reject(this.overloaded()));
      const askedAt = host.runtime.now();
      const request: Request = {
        ...{ urgency, lines, urgentFrom, owner, withdrawnBy, make, askedAt, resolve, reject },
        until: until > askedAt ? until : askedAt + host.timeoutMs,
        ...{ rank: 0, blockers: 0, timer: undefined, stops: [] },
      };
      load.unsent += 1;
      this.queue.add(request);
      this.next();
      if (this.underWay !== request) this.waits(request);
    });
  }

  /** Withdraws the acquire of an owner, if it was not sent. */
  withdraw(line: string, owner: string): void {
    const request = this.queue.acquireOf(line, owner);
    if (request) this.giveUp(request, withdrawn(this.whyUnsent(request)));
  }

  /** Returns the failure of an acquire that waits behind others, on a connection that works. */
  unsent(line: string, owner: string): SqlFailure | undefined {
    const request = this.queue.acquireOf(line, owner);
    return request && request !== this.underWay && this.works ? this.overloaded() : undefined;
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
    const { queue } = this;
    const { runtime, timeoutMs } = this.host;
    for (const request of queue.all) if (request.urgency !== 'release') this.fail(request, CLOSED());
    if (queue.all.size > 0) {
      await new Promise<void>((resolve) => {
        const timer = runtime.setTimer(resolve, timeoutMs);
        this.drained = () => {
          runtime.clearTimer(timer);
          resolve();
        };
      });
    }
    this.failAll(CLOSED());
    this.session?.destroy();
  }

  /** Whether the connection is there, and the server not silent. */
  private get works(): boolean {
    const { session, underWay, host } = this;
    const isSilent = underWay && host.runtime.now() - this.sentAt > host.timeoutMs / 2;
    return session !== undefined && !session.isOver && !isSilent;
  }

  private next(): void {
    const { host, queue, load } = this;
    while (!this.underWay && !this.isConnecting && queue.all.size > 0) {
      const { session } = this;
      if (!session || session.isOver) return void this.connect();
      const now = host.runtime.now();
      const request = queue.next(now);
      if (!request) return;
      // The timer is late.
      if (now >= request.until) {
        this.isOver(request);
        continue;
      }
      host.runtime.clearTimer(request.timer);
      load.unsent -= 1;
      load.sends(now);
      this.underWay = request;
      // Outside the caller's context: its traces show no keys.
      unbound(() => this.send(session, request, now)).then(
        (value) => this.ended(request, () => request.resolve(value as never)),
        (failure: SqlFailure) => this.failed(request, failure),
      );
    }
  }

  private async send(session: SqlSession, request: Request, now: number): Promise<unknown> {
    this.startTimer(request, now);
    const statement = request.make(now);
    if (!('otherwise' in statement)) return session.send(statement);
    const value = await session.send(statement);
    if (value !== undefined || this.underWay !== request) return value;
    this.startTimer(request, this.host.runtime.now());
    return session.send(statement.otherwise());
  }

  private startTimer(request: Request, now: number): void {
    const { runtime, timeoutMs } = this.host;
    this.sentAt = now;
    runtime.clearTimer(request.timer);
    request.timer = runtime.setTimer(() => this.isLate(request), timeoutMs, true);
  }

  private async connect(): Promise<void> {
    this.isConnecting = true;
    this.session?.destroy();
    try {
      const session = await unbound(() => this.host.connect());
      if (this.closing && this.queue.all.size === 0) session.destroy();
      else this.session = session;
    } catch (failure) {
      // Whatever failed, none of these was sent.
      const { message, cause, transient, passing } = failure as SqlFailure;
      this.failAll(new SqlFailure(message, 'not-executed', { cause, transient, passing }));
    }
    this.isConnecting = false;
    this.next();
  }

  /** A statement waits to be sent: for its time, and unless it is withdrawn. */
  private waits(request: Request): void {
    const { runtime } = this.host;
    const { until, stops, withdrawnBy } = request;
    if (!this.queue.all.has(request)) return;
    if (until < Infinity)
      request.timer = runtime.setTimer(() => this.isOver(request), until - runtime.now(), true);
    if (stops.length > 0) return;
    for (const signal of withdrawnBy) {
      const withdraw = (): void => this.giveUp(request, withdrawn(this.whyUnsent(request)));
      if (signal.aborted) return withdraw();
      stops.push(onAbort(signal, withdraw));
    }
  }

  private ended(request: Request, settle: () => void): void {
    if (this.underWay !== request) return;
    this.underWay = undefined;
    this.forget(request);
    settle();
    this.next();
  }

  private failed(request: Request, failure: SqlFailure): void {
    // Rows of a renewal are not waited for: the others of its batch would wait, too.
    const isLockedOut =
      failure.transient && failure.outcome === 'not-executed' && request.urgency !== 'renewal';
    if (this.underWay !== request || !isLockedOut) return this.ended(request, () => request.reject(failure));
    const { runtime } = this.host;
    runtime.clearTimer(request.timer);
    this.underWay = undefined;
    this.load.unsent += 1;
    if (this.load.lockedOut === request) this.load.lockedOut = undefined;
    const pauseMs = Math.min(2 * (request.lockedOut?.pauseMs ?? FIRST_PAUSE_MS / 2), LONGEST_PAUSE_MS);
    const keepsLane = runtime.now() - this.sentAt >= KEEPS_LANE_MS;
    request.lockedOut = { failure, pauseMs, keepsLane };
    this.queue.hold(request);
    this.waits(request);
    this.tryLater(request, pauseMs, keepsLane);
    this.next();
  }

  /** Tries again a statement whose row others have locked. Meanwhile others are sent. */
  private tryLater(request: Request, pauseMs: number, keepsLane: boolean): void {
    const { load, queue } = this;
    const again = (): void => {
      if (!queue.all.has(request)) return;
      if (keepsLane && load.lockedOut) return this.tryLater(request, pauseMs, keepsLane);
      if (keepsLane) load.lockedOut = request;
      queue.resume(request);
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

  /** The time of a statement is over that was not sent, or not executed because others have locked its row. */
  private isOver(request: Request): void {
    this.giveUp(request, this.whyUnsent(request));
  }

  private whyUnsent({ lockedOut, askedAt }: Request): SqlFailure {
    if (lockedOut) return lockedOut.failure;
    if (this.works) return this.overloaded();
    const { name, runtime } = this.host;
    const reason = this.isConnecting ? 'there was no connection to' : 'there was no free connection to';
    const message = `${reason} ${name} within ${Math.round(runtime.now() - askedAt)} ms`;
    return new SqlFailure(message, 'not-executed', { passing: true });
  }

  private overloaded(): SqlFailure {
    return new SqlFailure(this.load.textOf(this.host.name), 'not-executed', { overloaded: true });
  }

  /** Fails a statement, behind which others may wait that can be sent now. */
  private giveUp(request: Request, failure: SqlFailure): void {
    this.fail(request, failure);
    this.next();
  }

  private failAll(failure: SqlFailure): void {
    for (const request of this.queue.all) this.fail(request, failure);
  }

  /** Fails a statement, unless it is under way. */
  private fail(request: Request, failure: SqlFailure): void {
    if (this.underWay === request || !this.queue.all.has(request)) return;
    this.load.unsent -= 1;
    this.forget(request);
    request.reject(failure);
  }

  private forget(request: Request): void {
    const { host, load, queue } = this;
    host.runtime.clearTimer(request.timer);
    for (const stop of request.stops) stop();
    if (load.lockedOut === request) load.lockedOut = undefined;
    queue.delete(request);
    if (queue.all.size === 0) this.drained?.();
  }
}
