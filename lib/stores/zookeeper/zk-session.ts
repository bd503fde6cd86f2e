import type { Socket } from 'node:net';
import { onAbort } from '../../core/util/abort-listeners.js';
import type { Runtime } from '../../core/util/runtime.js';
import type { Session } from '../../core/seam/lease-model.js';
import { withdrawn } from '../load/unsent-requests.js';
import { Life } from './life.js';
import { sync, type ZkRequest } from './requests.js';
import { noConnection, ZkConnection, type ZkEvent } from './zk-connection.js';
import { CODE, ZkFailure } from './zk-failure.js';
import { ZkWatches } from './zk-watches.js';

/**
 * Part of the session's time-out between beats. A beat counts once a later one has its reply; see {@link Life}. A beat is a
 * sync, because only the leader replies to that. A server replies to a ping also while it has lost the leader.
 */
const BEAT_PART = 1 / 16;
/** Part of the session's time-out within which a beat has its reply. So a silent server is dropped before the session is over. */
const BEAT_REPLY_PART = 1 / 3;
/** Shortest time in ms that a server gets to begin a session. */
const MIN_OPEN_MS = 1_000;
/** Pause in ms before all servers are tried again. It varies by half. */
const RETRY_MS = 200;
/** How long a close waits for the server to end the session, in ms. */
const CLOSE_MS = 500;
const CLOSED = 'The lock store is closed';
const NEW_SESSION = { id: 0n, password: Buffer.alloc(16) };

/** An identity for a server: `digest` with `user:password`. */
export interface ZkAuth {
  readonly scheme: string;
  readonly credentials: string;
}

export interface ZkSessionSettings {
  readonly runtime: Runtime;
  /** One function for each server of the ensemble. It returns a socket that connects to the server. */
  readonly servers: readonly (() => Socket)[];
  /** Returns the identities. A function, so that no log of the store shows them. */
  readonly auth: () => readonly ZkAuth[];
  /** Time in ms within which each request settles, from its sending. */
  readonly commandTimeoutMs: number;
  /** Called before a session is ended whose validity has lapsed: its holds have to be lost by then. */
  readonly onLapse?: () => void;
  /** Called when a session goes on over another connection. */
  readonly onResumed?: () => void;
}

/** Terms of a request. */
export interface RequestTerms {
  /** The session in which it is sent. Default: any. */
  readonly within?: Session | undefined;
  /** When it is sent at the latest, on the runtime's clock. Default: after the time-out of requests. */
  readonly until?: number | undefined;
  /** Whether it begins a claim: requests that go on with a claim, or end one, are sent before it. Default: false. */
  readonly mayWait?: boolean | undefined;
  /** Signals that withdraw it while it is unsent. */
  readonly withdrawnBy?: readonly AbortSignal[] | undefined;
}

/** A request that waits for a connection. */
interface Waiting {
  readonly send: (connection: ZkConnection) => void;
  readonly reject: (failure: ZkFailure) => void;
}

/**
 * A session of ZooKeeper, over one connection after the other. It begins with the first request, and a new one after its
 * end. Requests reach the server in the order of the calls.
 */
export class ZkSession {
  readonly watches = new ZkWatches();
  /** The time-out to request, in ms. The server grants what lies within its limits. */
  timeoutMs = 30_000;
  private life: Life | undefined;
  private connection: ZkConnection | undefined;
  private isConnecting = false;
  /** When the servers were tried last. */
  private triedAt = -Infinity;
  private triedLast: (() => Socket) | undefined;
  private readonly waiting = new Set<Waiting>();
  private lastSeen = 0n;
  private lastCause: Error | undefined;
  /** Whether the last try to connect failed. */
  private isRefused = false;
  private beat: unknown;
  private readonly closing = new AbortController();

  constructor(private readonly settings: ZkSessionSettings) {}

  /** The time-out that the server has granted, in ms; before that the requested one. */
  get grantedMs(): number {
    return this.life?.granted.timeoutMs ?? this.timeoutMs;
  }

  /** Number of the session in the server. */
  get id(): string {
    return (this.life?.granted.id ?? 0n).toString(16);
  }

  /**
   * Sends a request: at once, or as soon as there is a connection on which few are under way. Requests that are sent in
   * one step go to the same session.
   *
   * @throws {ZkFailure}
   */
  request<T>(request: ZkRequest<T>, terms: RequestTerms = {}): Promise<T> {
    const { mayWait, withdrawnBy } = terms;
    const until = this.sendBy(terms);
    const { commandTimeoutMs: replyMs } = this.settings;
    return this.connected({ ...terms, until }, (connection) =>
      connection.send(request, { until, mayWait, withdrawnBy, replyMs }, () =>
        this.request(request, { ...terms, until }),
      ),
    );
  }

  get isClosed(): boolean {
    return this.closing.signal.aborted;
  }

  /** Calls `use` with the session, once there is a connection. Its requests are sent at once. */
  with<T>(terms: RequestTerms, use: (session: Session) => Promise<T>): Promise<T> {
    return this.connected({ ...terms, until: this.sendBy(terms) }, () => use(this.life!));
  }

  /** Returns when a request that begins now is sent at the latest: `until`, unless that is over. */
  timeLimit(until = 0): number {
    const { runtime, commandTimeoutMs } = this.settings;
    const now = runtime.now();
    return until > now ? until : now + commandTimeoutMs;
  }

  /** What goes on with a claim has a time-out of its own. */
  private sendBy({ until = this.timeLimit(), mayWait }: RequestTerms): number {
    return mayWait ? until : Math.max(until, this.timeLimit());
  }

  /** Closes the connection. With `keepsNodes`, the session lives on in the server until its time-out. */
  async close({ keepsNodes }: { readonly keepsNodes: boolean }): Promise<void> {
    const { connection, closing } = this;
    const { runtime } = this.settings;
    if (!closing.signal.aborted) {
      closing.abort();
      runtime.clearTimer(this.beat);
      for (const { reject } of this.waiting) reject(closed());
      this.waiting.clear();
    }
    if (!connection || connection.isOver) return;
    if (!keepsNodes) await connection.closeSession(runtime.now() + CLOSE_MS).catch(() => undefined);
    connection.destroy(new Error(CLOSED));
  }

  private connected<T>(
    { within, until, withdrawnBy = [] }: RequestTerms & { readonly until: number },
    useIt: (connection: ZkConnection) => Promise<T>,
  ): Promise<T> {
    const use = (opened: ZkConnection): Promise<T> => {
      if (within && within !== this.life) return Promise.reject(sessionOver());
      // Its caller may have gone while it waited for the connection.
      const isWithdrawn = withdrawnBy.some(({ aborted }) => aborted);
      return isWithdrawn ? Promise.reject(withdrawn(this.noConnection())) : useIt(opened);
    };
    const { connection, closing } = this;
    const { runtime } = this.settings;
    if (closing.signal.aborted) return Promise.reject(closed());
    // It had to wait for earlier ones about the same path.
    const isOpen = connection && !connection.isOver;
    if (runtime.now() >= until) return Promise.reject(isOpen ? connection.tooLate : this.noConnection());
    if (isOpen) return use(connection);
    return new Promise<T>((resolve, reject) => {
      const late = (): void => {
        this.waiting.delete(waiting);
        reject(this.noConnection());
      };
      // Without a connection, no request waits longer than one with a reply may take.
      const timer = runtime.setTimer(late, Math.min(until, this.timeLimit()) - runtime.now());
      const waiting: Waiting = {
        send: (opened) => {
          runtime.clearTimer(timer);
          use(opened).then(resolve, reject);
        },
        reject: (failure) => {
          runtime.clearTimer(timer);
          reject(failure);
        },
      };
      this.waiting.add(waiting);
      void this.connect();
    });
  }

  /** A caller may have less time than a connection takes. That is no outage. */
  private noConnection(): ZkFailure {
    return noConnection(this.lastCause, !this.isRefused);
  }

  /** Tries one server after the other, while a session lives or a request waits. */
  private async connect(): Promise<void> {
    if (this.isConnecting) return;
    this.isConnecting = true;
    const { runtime } = this.settings;
    while (this.needsConnection) {
      // Not at once after the last time: a server may accept connections and close them.
      const pauseMs = this.triedAt + RETRY_MS * (0.5 + runtime.random()) - runtime.now();
      if (pauseMs > 0) await this.pause(pauseMs);
      this.triedAt = runtime.now();
      for (const server of this.shuffledServers()) if (this.needsConnection) await this.connectTo(server);
    }
    this.isConnecting = false;
  }

  private get needsConnection(): boolean {
    if (this.closing.signal.aborted || this.connection?.isOver === false) return false;
    return this.life !== undefined || this.waiting.size > 0;
  }

  /** Tries to take up the session on a server, or to begin a new one. Never rejects. */
  private async connectTo(dial: () => Socket): Promise<void> {
    const { runtime, servers, commandTimeoutMs } = this.settings;
    const known = this.life;
    const askedAt = runtime.now();
    this.triedLast = dial;
    // Nothing of it counts any more, whatever a server replies: that may not know yet that the leader ends it.
    const isLapsed = (): boolean => known !== undefined && runtime.now() >= known.validUntil;
    // A server that has lost its data refuses a client that has seen more, each time.
    const lastSeen = isLapsed() ? 0n : this.lastSeen;
    const timeoutMs = known?.granted.timeoutMs ?? this.timeoutMs;
    const hello = { ...(known?.granted ?? NEW_SESSION), timeoutMs, lastSeen };
    let life: Life | undefined;
    let opened: ZkConnection | undefined;
    const host = {
      runtime,
      heard: (sentAt: number | undefined, seen: bigint) => {
        const now = runtime.now();
        // Its holds are lost, whatever the leader has replied.
        if (life && now >= life.validUntil)
          return opened?.destroy(new Error('contact was lost for too long'));
        if (sentAt !== undefined) life?.heard(sentAt, now);
        // Replies without a change may say less.
        if (seen > this.lastSeen) this.lastSeen = seen;
      },
      changed: (event: ZkEvent) => this.watches.changed(event),
      expired: () => this.expire(life),
      ended: (cause: Error) => this.ended(cause),
    };
    const openMs = Math.min(Math.max(MIN_OPEN_MS, timeoutMs / servers.length / 3), commandTimeoutMs);
    const { signal } = this.closing;
    const stopListening = onAbort(signal, () => opened?.destroy(new Error(CLOSED)));
    try {
      const { connection, granted } = await ZkConnection.open(dial(), hello, host, {
        timeoutMs: openMs,
        signal,
      });
      opened = connection;
      if (signal.aborted) throw new Error(CLOSED);
      if (granted.timeoutMs <= 0 || isLapsed()) {
        // After machine sleep, no timer has told the holds yet.
        this.settings.onLapse?.();
        if (granted.timeoutMs > 0) await connection.closeSession(runtime.now() + 2 * openMs);
        connection.destroy(new Error('the session has ended'));
        this.expire(known);
        // The server may end new ones, too.
        return known && this.needsConnection ? await this.connectTo(dial) : undefined;
      }
      life = known ?? new Life(granted, askedAt);
      life.granted = granted;
      life.connected(askedAt, runtime.now());
      await this.setUp(connection, lastSeen, openMs);
      this.life = life;
      this.established(connection, granted.timeoutMs);
      if (known) this.settings.onResumed?.();
    } catch (cause) {
      opened?.destroy(cause as Error);
      this.lastCause = cause as Error;
      this.isRefused = true;
    } finally {
      stopListening();
    }
  }

  private async setUp(connection: ZkConnection, lastSeen: bigint, openMs: number): Promise<void> {
    const { runtime, auth } = this.settings;
    const until = (): number => runtime.now() + 2 * openMs;
    for (const { scheme, credentials } of auth())
      await connection.authenticate(scheme, Buffer.from(credentials), until());
    await this.watches.setAgain(connection, lastSeen, until);
    // The last reply may have come too late.
    if (connection.cause) throw connection.cause;
  }

  private established(connection: ZkConnection, timeoutMs: number): void {
    this.connection = connection;
    this.isRefused = false;
    this.keepAlive(connection, timeoutMs);
    for (const waiting of [...this.waiting]) {
      this.waiting.delete(waiting);
      waiting.send(connection);
    }
  }

  /** Beats also while requests flow: their replies may come late. */
  private keepAlive(connection: ZkConnection, timeoutMs: number): void {
    const { runtime, commandTimeoutMs } = this.settings;
    const beat = (): void => {
      if (connection.isOver) return;
      const replyMs = Math.min(commandTimeoutMs, timeoutMs * BEAT_REPLY_PART);
      connection.sendNow(sync('/'), replyMs).catch(() => undefined);
      this.keepAlive(connection, timeoutMs);
    };
    runtime.clearTimer(this.beat);
    this.beat = runtime.setTimer(beat, timeoutMs * BEAT_PART, true);
  }

  /** While a session lives, it is taken up again at once: the server has to hear of it within its time-out. */
  private ended(cause: Error): void {
    this.lastCause = cause;
    this.connection = undefined;
    if (!this.closing.signal.aborted) void this.connect();
  }

  private expire(life: Life | undefined): void {
    if (!life || this.life !== life) return;
    this.life = undefined;
    this.lastSeen = 0n;
    life.ending.abort();
    this.watches.clear();
  }

  /** In no order, and the one tried last comes last: a server that is silent costs much of what a session has left. */
  private shuffledServers(): readonly (() => Socket)[] {
    const { servers, runtime } = this.settings;
    return servers
      .map((server) => ({ server, at: runtime.random() + (server === this.triedLast ? 1 : 0) }))
      .sort((a, b) => a.at - b.at)
      .map(({ server }) => server);
  }

  private pause(ms: number): Promise<void> {
    const { runtime } = this.settings;
    const { signal } = this.closing;
    return new Promise((resolve) => {
      const end = (): void => {
        runtime.clearTimer(timer);
        signal.removeEventListener('abort', end);
        resolve();
      };
      const timer = runtime.setTimer(end, ms);
      signal.addEventListener('abort', end);
    });
  }
}

export const closed = (): ZkFailure => new ZkFailure(CLOSED, 'not-executed', {});

const sessionOver = (): ZkFailure =>
  new ZkFailure('The session of ZooKeeper is over', 'not-executed', { passing: true }, CODE.sessionExpired);
