import type { StoreFailure, StoreOutcome } from '../../../lib/core/seam/store-failure.js';
import type { Agenda } from '../engine/agenda.js';
import type { Random } from '../engine/random.js';
import type { SimProcess } from '../engine/sim-process.js';
import { Deadline } from './deadline.js';
import type { SimNode } from './sim-node.js';

/** One life of a connection. */
interface Session {
  alive: boolean;
  /** The server takes no more from it: somebody has ended it there. */
  ended: boolean;
  lastUpAt: number;
  lastDownAt: number;
}

interface Request {
  readonly work: () => unknown;
  readonly resolve: (reply: unknown) => void;
  readonly reject: (failure: unknown) => void;
}

/** A client tries to connect again after so long, in ms. */
const RECONNECT_MS = 20;

/**
 * The connection of a process to a node: in order, with a time-out for each request, and again by itself. What a broken
 * connection had on its way may still arrive.
 */
export class NodeLink {
  session: Session | undefined;
  /** There is another connection. */
  onAgain: () => void = () => undefined;
  private readonly unsent = new Set<Request & { readonly deadline: Deadline }>();
  private hadSession = false;
  private connecting = false;
  private silentUntil = 0;
  private isolatedUntil = 0;
  private slowUntil = 0;
  private extraMs = 0;
  private losesReplies = false;
  private repeatsLateMs: number | undefined;
  private losesAfter: number | undefined;
  private closed = false;

  constructor(
    readonly process: SimProcess,
    readonly node: SimNode,
    private readonly agenda: Agenda,
    private readonly random: Random,
    private readonly latencyMs: readonly [number, number],
    private readonly timeoutMs: number,
    /** That of the library under test: a copy with a mistake has its own. */
    private readonly Failure: typeof StoreFailure,
  ) {
    node.whenDown(() => this.cut(undefined));
  }

  /** Does `work` at the node, and answers what that gives. */
  send<T>(work: () => T): Promise<T> {
    return new Promise<T>((resolve, reject) => {
      const request: Request = { work, resolve: resolve as (reply: unknown) => void, reject };
      if (this.closed) return reject(this.failure('the store is closed', 'not-executed'));
      if (this.session) return this.sendOn(this.session, request);
      const unsent = {
        ...request,
        deadline: new Deadline(this.process, this.timeoutMs, () => {
          this.unsent.delete(unsent);
          reject(this.failure(`no connection to ${this.node.name}`, 'not-executed'));
        }),
      };
      this.unsent.add(unsent);
      this.connect();
    });
  }

  /** For a release behind a doubt: whatever the connection of the failure has on its way is not done any more. */
  endSessionOf(failure: StoreFailure): Promise<void> {
    const { session } = failure as { session?: unknown };
    const old = session as Session | undefined;
    if (!old || old === this.session) return Promise.resolve();
    return this.send(() => void (old.ended = true));
  }

  /** Nothing gets through until then. */
  silence(until: number): void {
    this.silentUntil = Math.max(this.silentUntil, until);
  }

  /** The same, and what is sent meanwhile never comes. */
  isolate(until: number): void {
    this.silence(until);
    this.isolatedUntil = Math.max(this.isolatedUntil, until);
  }

  slow(extraMs: number, until: number): void {
    this.extraMs = extraMs;
    this.slowUntil = until;
  }

  loseNextReply(): void {
    this.losesReplies = true;
  }

  /** The next answer is lost, and so much later the node gets the request once more. */
  repeatNext(lateMs: number): void {
    this.repeatsLateMs = lateMs;
  }

  /** A request is lost, and the connection with it, after so many that get through. */
  loseRequest(after: number): void {
    this.losesAfter = after;
  }

  /** The connection breaks. @param lateMs so much later arrives what is on its way; undefined: it is lost. */
  cut(lateMs: number | undefined): void {
    const { session } = this;
    if (!session) return;
    this.lateMs = lateMs;
    session.alive = false;
    this.session = undefined;
    for (const lost of [...this.underWay]) lost(session);
    if (!this.process.crashed) this.process.arrive(() => this.connect());
  }

  close(): void {
    this.closed = true;
    const { session } = this;
    this.session = undefined;
    if (session) {
      session.alive = false;
      for (const lost of [...this.underWay]) lost(session);
    }
    for (const { deadline, reject } of this.unsent) {
      if (deadline.settle()) reject(this.failure('the store is closed', 'not-executed'));
    }
    this.unsent.clear();
  }

  private lateMs: number | undefined;
  private readonly underWay = new Set<(session: Session) => void>();

  /** A failed request, with the session it was sent on: an undo has to know. */
  private failure(message: string, outcome: StoreOutcome, session?: Session): StoreFailure {
    const failure = new this.Failure(message, outcome, { cause: new Error(message) });
    return Object.assign(failure, { session });
  }

  private sendOn(session: Session, { work, resolve, reject }: Request): void {
    const fail = (): void => {
      this.underWay.delete(lost);
      reject(this.failure(`${this.node.name} did not answer`, 'unknown', session));
    };
    const lost = (of: Session): void => {
      if (of !== session) return;
      this.process.arrive(() => deadline.settle() && fail());
    };
    const deadline = new Deadline(this.process, this.timeoutMs, () => {
      fail();
      // Nothing that is sent behind it would be answered.
      if (session === this.session)
        this.cut(this.random.chance(0.5) ? this.random.between(0, 200) : undefined);
    });
    this.underWay.add(lost);
    this.process.effect(() => {
      if (this.isIsolated) return;
      const at = Math.max(session.lastUpAt, this.through() + this.latency());
      session.lastUpAt = at;
      this.agenda.at(at, () =>
        this.arrives(session, () => this.reply(session, work, deadline, lost, resolve, reject)),
      );
    });
  }

  /** A request comes to the node, in time or late. */
  private arrives(session: Session, handle: () => void): void {
    if (session.ended || !this.node.isUp) return;
    if (!session.alive) {
      if (this.lateMs !== undefined) this.arrivesLate(session, this.lateMs, handle);
      return;
    }
    if (this.losesAfter !== undefined && this.losesAfter-- === 0) {
      this.losesAfter = undefined;
      return this.cut(undefined);
    }
    handle();
  }

  /** Over a connection that its process has no longer. */
  private arrivesLate(session: Session, lateMs: number, handle: () => void): void {
    this.agenda.at(this.agenda.now + lateMs, () => {
      if (!session.ended && this.node.isUp) handle();
    });
  }

  private reply(
    session: Session,
    work: () => unknown,
    deadline: Deadline,
    lost: (session: Session) => void,
    resolve: (reply: unknown) => void,
    reject: (failure: unknown) => void,
  ): void {
    const handle = (): (() => void) => {
      try {
        const reply = work();
        return () => resolve(reply);
      } catch (failure) {
        return () => reject(failure);
      }
    };
    const settle = handle();
    if (!session.alive || this.isIsolated) return;
    if (this.repeatsLateMs !== undefined) {
      this.arrivesLate(session, this.repeatsLateMs, handle);
      this.repeatsLateMs = undefined;
      return this.cut(undefined);
    }
    if (this.losesReplies) {
      this.losesReplies = false;
      return this.cut(undefined);
    }
    const at = Math.max(session.lastDownAt, this.through() + this.latency());
    session.lastDownAt = at;
    this.agenda.at(at, () => {
      if (!session.alive) return;
      this.process.arrive(() => {
        if (!deadline.settle()) return;
        this.underWay.delete(lost);
        settle();
      }, session);
    });
  }

  private connect(): void {
    if (this.connecting || this.session || this.closed || this.process.crashed) return;
    this.connecting = true;
    const at = this.through() + this.latency() + this.latency();
    this.process.effect(() => this.agenda.at(at, () => this.process.arrive(() => this.connected())));
  }

  private connected(): void {
    this.connecting = false;
    if (this.closed || this.session) return;
    if (!this.node.isUp) {
      this.process.setTimer(() => this.connect(), RECONNECT_MS);
      return;
    }
    this.session = { alive: true, ended: false, lastUpAt: 0, lastDownAt: 0 };
    if (this.hadSession) this.onAgain();
    this.hadSession = true;
    for (const unsent of [...this.unsent]) {
      this.unsent.delete(unsent);
      if (unsent.deadline.settle()) this.sendOn(this.session, unsent);
    }
  }

  private get isIsolated(): boolean {
    return this.agenda.now < this.isolatedUntil;
  }

  /** When something can get through. */
  private through(): number {
    return Math.max(this.agenda.now, this.silentUntil);
  }

  private latency(): number {
    const slow = this.agenda.now < this.slowUntil ? this.extraMs * this.random.between(0.5, 1) : 0;
    return this.random.between(...this.latencyMs) + slow;
  }
}
