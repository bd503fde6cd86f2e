import type { Socket } from 'node:net';
import type { Runtime } from '../../core/util/runtime.js';
import type { StoreFailure } from '../../core/seam/store-failure.js';
import { Load } from '../load/load.js';
import { UnsentRequests, type Unsent as AnyUnsent } from '../load/unsent-requests.js';
import { Frames } from './frames.js';
import { JuteReader, JuteWriter, ProtocolError } from './jute.js';
import type { ZkRequest } from './requests.js';
import { CODE, refusedWith, ZkFailure } from './zk-failure.js';

/** Numbers of requests that the client does not count, and of events. */
const XID = { event: -1, auth: -4, setWatches: -8 };
/** Operations of the session itself. */
const OP = { auth: 100, setWatches: 101, close: -11 };
const MAX_XID = 0x7f_ff_ff_ff;
/**
 * Requests that are under way at most. Further ones wait here: in the server they would delay the beats of the session, and
 * their time would run.
 */
const MAX_UNDER_WAY = 128;

/** What a client says of its session when it connects. */
export interface SessionHello {
  /** 0 for a new session. */
  readonly id: bigint;
  readonly password: Buffer;
  readonly timeoutMs: number;
  /** Number of the last change that the client has seen. A server that lags behind refuses the connection. */
  readonly lastSeen: bigint;
}

/** What the server grants. A session that has expired has the time-out 0. */
export type SessionGrant = Omit<SessionHello, 'lastSeen'>;

/** A change of a node that the client watches. */
export interface ZkEvent {
  /** 1 created, 2 deleted, 3 data changed, 4 children changed. */
  readonly type: number;
  readonly path: string;
}

export interface ZkConnectionHost {
  readonly runtime: Runtime;
  /**
   * Called with each reply: when its request was sent, if the leader has replied, and the number of the last change that
   * the server knows.
   */
  heard(sentAt: number | undefined, lastSeen: bigint): void;
  changed(event: ZkEvent): void;
  /** The server says that the session is over. */
  expired(): void;
  /** Called once, when the connection has ended. */
  ended(cause: Error): void;
}

interface Pending {
  readonly xid: number;
  /** Undefined for a request to which the server replies by itself. */
  readonly sentAt: number | undefined;
  /** When the connection ends without its reply. */
  readonly until: number;
  readonly beganAt: number;
  readonly read: (reply: JuteReader) => void;
  readonly reject: (failure: ZkFailure) => void;
}

/** When a request ends. */
export interface SendTerms {
  /** When it is sent at the latest, on the runtime's clock. */
  readonly until: number;
  /** Time in ms for its reply, from its sending. Without one, the connection ends. */
  readonly replyMs: number;
  /** Whether requests that go on with a claim, or end one, are sent before it. Default: false. */
  readonly mayWait?: boolean | undefined;
  /** Signals that withdraw it while it is unsent. */
  readonly withdrawnBy?: readonly AbortSignal[] | undefined;
}

/** A request that waits until fewer are under way. */
interface Unsent extends AnyUnsent {
  readonly send: () => void;
  /** The connection has ended. */
  readonly moveOn: () => void;
}

/** One connection to a server. Replies come in the order of the requests. */
export class ZkConnection {
  /** ECMAScript-private: it has sent the password, and knows the private key of TLS. */
  readonly #socket: Socket;
  private readonly frames = new Frames();
  private readonly pending: Pending[] = [];
  private readonly load = new Load();
  private readonly unsent: UnsentRequests<Unsent>;
  private greeted: ((frame: Buffer) => void) | undefined;
  private nextXid = 1;
  private timer: unknown;
  private timerDueAt = Infinity;
  /** Why it has ended. */
  cause: Error | undefined;

  private constructor(
    socket: Socket,
    private readonly host: ZkConnectionHost,
  ) {
    this.#socket = socket;
    this.unsent = new UnsentRequests<Unsent>({
      ...{ name: 'ZooKeeper', runtime: host.runtime, timeoutMs: 0, load: this.load },
      silentForMs: () => this.silentForMs,
      next: () => undefined,
    });
    socket.setNoDelay(true);
    socket.on('data', (chunk) => this.received(chunk));
    socket.on('error', (cause) => this.destroy(cause));
    socket.on('close', () => this.destroy(new Error('the server closed the connection')));
  }

  /**
   * Begins a session on a socket, or takes up an earlier one. Rejects with the cause when that takes longer than
   * `timeoutMs`, or `signal` aborts.
   */
  static async open(
    socket: Socket,
    hello: SessionHello,
    of: ZkConnectionHost,
    { timeoutMs, signal }: { readonly timeoutMs: number; readonly signal: AbortSignal },
  ): Promise<{ connection: ZkConnection; granted: SessionGrant }> {
    const { runtime } = of;
    const connection = new ZkConnection(socket, of);
    const giveUp = (): void => connection.destroy(new Error(`no session within ${Math.round(timeoutMs)} ms`));
    const timer = runtime.setTimer(giveUp, timeoutMs, true);
    signal.addEventListener('abort', giveUp);
    try {
      // It is sent as soon as the socket is connected.
      socket.write(helloOf(hello));
      return { connection, granted: grantOf(await connection.greeting()) };
    } catch (cause) {
      connection.destroy(cause as Error);
      throw cause;
    } finally {
      runtime.clearTimer(timer);
      signal.removeEventListener('abort', giveUp);
    }
  }

  get isOver(): boolean {
    return this.cause !== undefined;
  }

  /**
   * Sends a request when fewer are under way. Rejects with a {@link ZkFailure}: refused, not executed when it was not sent
   * in time, or unknown when the connection ends. If it was not sent until then, `again` sends it on the next one.
   */
  send<T>(
    request: ZkRequest<T>,
    terms: SendTerms,
    again = (): Promise<T> => Promise.reject(noConnection(this.cause)),
  ): Promise<T> {
    const { until, replyMs, mayWait, withdrawnBy } = terms;
    const { unsent } = this;
    if (this.cause || this.pending.length < MAX_UNDER_WAY) {
      this.load.sends(this.host.runtime.now());
      return this.sendNow(request, replyMs);
    }
    return new Promise<T>((resolve, reject) => {
      const urgency = mayWait ? 'other' : 'release';
      const send = (): void => void this.sendNow(request, replyMs).then(resolve, reject);
      const moveOn = (): void => void again().then(resolve, reject);
      const own: Unsent = { ...unsent.request({ urgency, until, withdrawnBy }, reject), send, moveOn };
      if (unsent.add(own)) unsent.wait(own);
    });
  }

  /** Sends a request before all that wait. Without a reply within `replyMs`, the connection ends. */
  sendNow<T>(request: ZkRequest<T>, replyMs: number): Promise<T> {
    const until = this.host.runtime.now() + replyMs;
    const xid = this.nextXid;
    this.nextXid = xid === MAX_XID ? 1 : xid + 1;
    const frame = new JuteWriter().int(xid).int(request.op);
    request.write(frame);
    return this.exchange(xid, frame, until, (reply) => request.read(reply), request.isLocal);
  }

  /** Tells which identity the client has. */
  authenticate(scheme: string, credentials: Buffer, until: number): Promise<void> {
    const frame = new JuteWriter().int(XID.auth).int(OP.auth).int(0).text(scheme).bytes(credentials);
    return this.exchange(XID.auth, frame, until, nothing, true);
  }

  /** Sets watches again, of which an earlier connection of the session had been told. */
  setWatches(
    lastSeen: bigint,
    data: readonly string[],
    children: readonly string[],
    until: number,
  ): Promise<void> {
    const frame = new JuteWriter().int(XID.setWatches).int(OP.setWatches).long(lastSeen);
    for (const paths of [data, [], children]) frame.list(paths, (path) => frame.text(path));
    return this.exchange(XID.setWatches, frame, until, nothing, true);
  }

  /** Ends the session in the server: its nodes are deleted at once. */
  closeSession(until: number): Promise<void> {
    const xid = this.nextXid;
    return this.exchange(xid, new JuteWriter().int(xid).int(OP.close), until, nothing);
  }

  /** Ends the connection at once. The outcome of what is under way is unknown then. */
  destroy(cause: Error): void {
    if (this.cause) return;
    this.cause = cause;
    this.host.runtime.clearTimer(this.timer);
    this.#socket.destroy();
    const failure = new ZkFailure(`The connection to ZooKeeper ended: ${cause.message}`, 'unknown', {
      cause,
      passing: true,
    });
    for (const { reject } of this.pending.splice(0)) reject(failure);
    this.host.ended(cause);
    for (const request of this.unsent.all) {
      this.unsent.forget(request);
      request.moveOn();
    }
  }

  private greeting(): Promise<Buffer> {
    return new Promise((resolve, reject) => {
      this.greeted = resolve;
      this.#socket.once('close', () => reject(this.cause!));
    });
  }

  private exchange<T>(
    xid: number,
    frame: JuteWriter,
    until: number,
    read: (reply: JuteReader) => T,
    isLocal = false,
  ): Promise<T> {
    const { cause, host } = this;
    if (cause) return Promise.reject(noConnection(cause));
    return new Promise<T>((resolve, reject) => {
      const beganAt = host.runtime.now();
      const sentAt = isLocal ? undefined : beganAt;
      this.pending.push({ xid, beganAt, sentAt, until, read: (reply) => resolve(read(reply)), reject });
      if (until < this.timerDueAt) this.arm(until);
      this.#socket.write(frame.frame());
    });
  }

  private arm(dueAt: number): void {
    const { runtime } = this.host;
    runtime.clearTimer(this.timer);
    this.timerDueAt = dueAt;
    // A process that stood still first reads what has arrived meanwhile.
    this.timer = runtime.setTimer(() => runtime.soon(() => this.checkReplies()), dueAt - runtime.now(), true);
  }

  /** A reply that is late could be mistaken for the one to a later request, so the connection ends. */
  private checkReplies(): void {
    this.timerDueAt = Infinity;
    if (this.cause) return;
    const now = this.host.runtime.now();
    const replyAt = Math.min(...this.pending.map(({ until }) => until));
    if (replyAt <= now) return this.destroy(new Error('the server did not reply in time'));
    if (replyAt < Infinity) this.arm(replyAt);
  }

  /** Sends the next request that waits. */
  private sendNext(): void {
    const next = this.unsent.next(this.host.runtime.now());
    if (!next) return;
    this.unsent.forget(next);
    next.send();
  }

  /** Returns why a request was not sent in time. */
  get tooLate(): StoreFailure {
    return this.load.overloaded('ZooKeeper', this.silentForMs);
  }

  private get silentForMs(): number {
    const [first] = this.pending;
    return first ? this.host.runtime.now() - first.beganAt : 0;
  }

  private received(chunk: Buffer): void {
    try {
      for (const frame of this.frames.add(chunk)) {
        if (this.cause) return;
        if (this.greeted) {
          this.greeted(frame);
          this.greeted = undefined;
        } else this.receive(new JuteReader(frame));
      }
    } catch (cause) {
      // Nothing that follows can be understood any more.
      this.destroy(cause as Error);
    }
  }

  private receive(reply: JuteReader): void {
    const [xid, lastSeen, code] = [reply.int(), reply.long(), reply.int()];
    if (xid === XID.event) {
      const type = reply.int();
      // State of the session, which an event of a node says again.
      reply.int();
      return this.host.changed({ type, path: reply.text() });
    }
    const [request] = this.pending;
    if (request?.xid !== xid)
      throw new ProtocolError(`a reply to request ${xid}, where ${request?.xid} was next`);
    // It stays the next one when it cannot be read: then its outcome is unknown.
    if (code === 0) request.read(reply);
    else request.reject(refusedWith(code));
    this.pending.shift();
    if (code === CODE.sessionExpired) {
      // That is no contact. The next connection is for a new session.
      this.host.expired();
      return this.destroy(new Error('the server has ended the session'));
    }
    this.host.heard(request.sentAt, lastSeen);
    if (!this.cause) this.sendNext();
  }
}

const nothing = (): void => undefined;

export const noConnection = (cause: Error | undefined, transient = false): ZkFailure =>
  new ZkFailure(
    `No connection to ZooKeeper: ${cause?.message ?? 'no server has replied yet'}`,
    'not-executed',
    { cause, transient, passing: true },
  );

const helloOf = ({ id, password, timeoutMs, lastSeen }: SessionHello): Buffer =>
  // The last value: the client wants no server that only reads.
  new JuteWriter().int(0).long(lastSeen).int(timeoutMs).long(id).bytes(password).bool(false).frame();

/** Reads the reply to a hello. */
export const grantOf = (frame: Buffer): SessionGrant => {
  const from = new JuteReader(frame);
  // Version of the protocol.
  from.int();
  const timeoutMs = from.int();
  return { timeoutMs, id: from.long(), password: from.bytes() };
};
