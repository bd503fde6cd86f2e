import { onAbort } from '../../core/util/abort-listeners.js';
import type { Runtime } from '../../core/util/runtime.js';
import { StoreFailure } from '../../core/seam/store-failure.js';
import { MAX_UNSENT, type Load } from './load.js';
import { RequestQueue, type Queued, type Urgency } from './request-queue.js';

/** How a request waits until it is sent. */
export interface SendTerms {
  /** Default: `other`. */
  readonly urgency?: Urgency | undefined;
  /** See {@link Queued.lines}. Default: none. */
  readonly lines?: readonly string[] | undefined;
  /**
   * Until when it may be sent, on the runtime's clock. Default: the time-out from now; also for a release whose time is
   * over.
   */
  readonly until?: number | undefined;
  /** See {@link Queued.urgentFrom}. */
  readonly urgentFrom?: number;
  /** See {@link Queued.owner}. */
  readonly owner?: string | undefined;
  /** Signals that withdraw it while it is unsent. */
  readonly withdrawnBy?: readonly AbortSignal[] | undefined;
}

/** A request that waits, and how it ends. */
export interface Unsent extends Queued {
  readonly askedAt: number;
  readonly withdrawnBy: readonly AbortSignal[];
  readonly reject: (failure: StoreFailure) => void;
  isSent: boolean;
  /** Ends its wait; the store's own once it is sent. */
  timer: unknown;
  readonly stops: (() => void)[];
}

/** What the requests of one connection have in common. */
export interface UnsentHost<Q> {
  /** Name of the store, for messages. */
  readonly name: string;
  readonly runtime: Runtime;
  /** Time in ms within which each request has its reply, counted from its sending. */
  readonly timeoutMs: number;
  /** What the process asks of the store. */
  readonly load: Load;
  /**
   * Returns what else than the load keeps a request from being sent; undefined while there is a connection. Left out where
   * unsent requests go on with the next connection.
   */
  trouble?(request: Q): StoreFailure | undefined;
  /** For how long the oldest request under way has had no reply, in ms. Beyond the time-out, the connection ends. */
  silentForMs(): number;
  /** A request was given up, behind which others may wait that can be sent now. */
  next(): void;
  /** A request has failed, or has its reply. */
  forgotten?(request: Q): void;
}

/** The failure of a request that its caller has withdrawn. `cause`: why it was unsent until then. */
export const withdrawn = (cause: StoreFailure): StoreFailure =>
  new StoreFailure('the request was withdrawn', 'not-executed', { claimOnly: true, cause });

/**
 * Requests of one connection that are not sent yet: in their order, for the time of their callers, and withdrawn with
 * them.
 */
export class UnsentRequests<Q extends Unsent> {
  private readonly queue = new RequestQueue<Q>();

  constructor(private readonly host: UnsentHost<Q>) {}

  /** Requests that were not forgotten yet, sent or not. */
  get all(): ReadonlySet<Q> {
    return this.queue.all;
  }

  /** Returns the fields of a request that are the same for each store. */
  request(terms: SendTerms, reject: Unsent['reject']): Unsent {
    const { urgency = 'other', lines = [], until, urgentFrom, owner, withdrawnBy = [] } = terms;
    const { runtime, timeoutMs } = this.host;
    const askedAt = runtime.now();
    const isOpenEnded = until === undefined || (until <= askedAt && urgency === 'release');
    // One literal, since spread objects are slow, and there is one for each request.
    return {
      urgency,
      lines,
      urgentFrom,
      owner,
      withdrawnBy,
      askedAt,
      reject,
      until: isOpenEnded ? askedAt + timeoutMs : until,
      rank: 0,
      blockers: 0,
      isSent: false,
      timer: undefined,
      stops: [],
    };
  }

  /** Adds a request, unless too many wait: then it is refused. Call {@link wait} for one that cannot be sent at once. */
  add(request: Q): boolean {
    const { load, runtime } = this.host;
    const isSpared = request.urgency === 'renewal' || request.urgency === 'release';
    if (load.unsent >= MAX_UNSENT && !isSpared) {
      // Not at once: a caller that asks again in a loop would let nothing else of the process run.
      runtime.soon(() => request.reject(this.overloaded()));
      return false;
    }
    load.unsent += 1;
    this.queue.add(request);
    return true;
  }

  /** A request waits to be sent: for its time, and unless it is withdrawn. */
  wait(request: Q): void {
    const { runtime } = this.host;
    const { until, stops, withdrawnBy } = request;
    if (request.isSent || !this.queue.all.has(request)) return;
    if (until < Infinity)
      request.timer = runtime.setTimer(() => this.timeIsOver(request), until - runtime.now(), true);
    const withdraw = (): void => this.withdrawOne(request);
    if (withdrawnBy.some(({ aborted }) => aborted)) return withdraw();
    if (stops.length === 0) for (const signal of withdrawnBy) stops.push(onAbort(signal, withdraw));
  }

  /** Returns the request to send, whose time is not over. It stays in its lines until {@link forget}. */
  next(now: number): Q | undefined {
    for (;;) {
      const request = this.queue.next(now);
      if (!request) return undefined;
      if (now < request.until) return this.sends(request, now);
      // The timer is late.
      this.fail(request, this.whyUnsent(request));
    }
  }

  /** Returns further requests to send together with one, as {@link next} does; at most `count`. */
  more(now: number, count: number, fits: (request: Q) => boolean): Q[] {
    if (count <= 0) return [];
    const found = this.queue.more(count, (one) => now < one.until && fits(one));
    return found.map((request) => this.sends(request, now));
  }

  /** A request that was sent is unsent again, and is not sent until {@link resume}. */
  putBack(request: Q): void {
    this.host.runtime.clearTimer(request.timer);
    this.host.load.unsent += 1;
    request.isSent = false;
    this.queue.hold(request);
    this.wait(request);
  }

  resume(request: Q): void {
    this.queue.resume(request);
  }

  /** A request that was sent, and not executed, is sent again: before new ones, and until then at the latest. */
  repeat(request: Q, until: number): void {
    request.until = Math.max(request.until, until);
    this.putBack(request);
    this.resume(request);
  }

  /** Withdraws the acquire of an owner, if it was not sent. */
  withdraw(line: string, owner: string): void {
    const request = this.queue.acquireOf(line, owner);
    if (request) this.withdrawOne(request);
  }

  /** Returns the failure of an acquire that waits behind others, while the store works. See `KindStore.unsent`. */
  failureOf(line: string, owner: string): StoreFailure | undefined {
    const request = this.queue.acquireOf(line, owner);
    return request && !request.isSent && !this.host.trouble?.(request) ? this.overloaded() : undefined;
  }

  /** Fails a request, unless it was sent. */
  fail(request: Q, failure: StoreFailure): void {
    if (request.isSent || !this.queue.all.has(request)) return;
    this.host.load.unsent -= 1;
    this.forget(request);
    request.reject(failure);
  }

  /** Fails all requests that were not sent. */
  failAll(failure: () => StoreFailure): void {
    for (const request of this.queue.all) this.fail(request, failure());
  }

  /** A request has failed, has its reply, or need not keep its place any more. */
  forget(request: Q): void {
    this.host.runtime.clearTimer(request.timer);
    for (const stop of request.stops) stop();
    this.queue.delete(request);
    this.host.forgotten?.(request);
  }

  private sends(request: Q, now: number): Q {
    const { load, runtime } = this.host;
    runtime.clearTimer(request.timer);
    load.unsent -= 1;
    load.sends(now);
    request.isSent = true;
    return request;
  }

  /** After a blocked event loop, replies that have come are read first: without them the store would look silent. */
  private timeIsOver(request: Q): void {
    this.host.runtime.soon(() => this.giveUp(request, this.whyUnsent(request)));
  }

  /** Why it was unsent is the cause: callers behind it whose time is over hear that. */
  private withdrawOne(request: Q): void {
    const cause = this.whyUnsent(request);
    this.giveUp(request, withdrawn(cause));
  }

  private giveUp(request: Q, failure: StoreFailure): void {
    this.fail(request, failure);
    this.host.next();
  }

  private whyUnsent(request: Q): StoreFailure {
    return this.host.trouble?.(request) ?? this.overloaded();
  }

  private overloaded(): StoreFailure {
    return this.host.load.overloaded(this.host.name, this.host.silentForMs());
  }
}
