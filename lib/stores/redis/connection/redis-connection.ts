import { Portions } from '../../../core/util/portions.js';
import { unbound, type Runtime } from '../../../core/util/runtime.js';
import type { StoreFailure } from '../../../core/seam/store-failure.js';
import { AwaitedSession } from './awaited-session.js';
import { ClientErrors } from './client-errors.js';
import { CommandDeadlines } from '../../load/command-deadlines.js';
import { openDatabase, refusedDatabase } from './database.js';
import { watchHandshakes } from './handshake-watch.js';
import { databaseOf, dropSocket, gatherTick, type RedisLike } from './redis-client.js';
import {
  RedisFailure,
  failureOf,
  isNoScript,
  isReplyError,
  isUnwritable,
  mayReconnect,
  notReady,
  stillLoading,
  timedOut,
  unreadable,
} from './redis-failure.js';
import { MasterSearch } from './master-search.js';
import { nameSession, type RedisSession } from './redis-session.js';
import { SilentSentinels } from './sentinels/silent-sentinels.js';
import type { Commands } from './commands.js';
import { type OfClaim, type Script, requestFor, runsOf, type RedisRequest } from './script.js';
import { batchOf, type BatchPart, type ScriptRun, type SharedRun } from './script-batch.js';
import { SendWindow } from './send-window.js';
import { SharedRuns } from './shared-runs.js';
import { every } from './timers.js';

/** Interval at which an idle connection is checked, in ms. */
const IDLE_PING_MS = 10_000;
const PING: RedisRequest<void> = { command: 'ping', args: [], read: () => undefined };

const STORE_CLOSED = 'the lock store is closed';

/** One connection of the client, from its handshake on. It becomes a session once it is in its database. */
interface Life {
  alive: boolean;
  /** Whether the server has refused the database. The next command asks for it again. */
  refused: boolean;
  /** Whether scripts are on their way, and the server replies: else the connection is dropped within the time-out. */
  isLoading: boolean;
}

export interface RedisConnectionOptions {
  readonly timeoutMs: number;
  readonly runtime: Runtime;
  /** Scripts to load on each new connection. A script sent again in full would be overtaken by later commands. */
  readonly scripts?: readonly Script[];
  /** Scripts that can share a request. */
  readonly batchParts?: readonly BatchPart[];
  /** Whether the first failed attempt to connect fails the requests that wait for it. A check of the setup needs that. */
  readonly isCheck?: boolean;
  /** Interval of PING while idle, in ms; default 10,000. For tests. */
  readonly idlePingMs?: number;
}

/**
 * The connection for commands. Each command is executed at most once: it is sent again only after the server refused it
 * without executing it. Each attempt ends within the time-out, with its reply or with a failure. The failure says
 * whether the command may have been executed.
 */
export class RedisConnection implements Commands {
  readonly id = Symbol('connection');
  /** ECMAScript-private: the client knows the password, and a logger that prints a lease would print that, too. */
  readonly #client: RedisLike;
  private session: RedisSession | undefined;
  private life: Life | undefined;
  private readonly deadlines: CommandDeadlines;
  private readonly awaited: AwaitedSession;
  private readonly sharedRuns: SharedRuns;
  private readonly errors: ClientErrors;
  private readonly window: SendWindow;
  /** Many replies may come at the same time. */
  private readonly portions: Portions;
  private endPings: (() => void) | undefined;
  private closed = false;
  private closedBecause: string | undefined;
  private hadSession = false;
  private readonly masterSearch: MasterSearch;
  /** Called when there is a connection again, before any request is sent on it. */
  onAgain: () => void = () => undefined;
  /** Called when the connection has ended, unless this process closed it, and when a request finds no connection. */
  onDown: (why: 'ended' | 'needed') => void = () => undefined;
  private readonly timeoutMs: number;
  private readonly idlePingMs: number;
  private readonly scripts: readonly Script[];
  private readonly batchScript: Script | undefined;
  private readonly silentSentinels: SilentSentinels;
  private readonly isCheck: boolean;

  constructor(client: RedisLike, options: RedisConnectionOptions) {
    const { timeoutMs, runtime, scripts = [], batchParts = [], idlePingMs = IDLE_PING_MS } = options;
    this.#client = client;
    this.timeoutMs = timeoutMs;
    this.idlePingMs = idlePingMs;
    this.batchScript = batchParts.length > 0 ? batchOf(batchParts) : undefined;
    this.isCheck = options.isCheck ?? false;
    this.scripts = this.batchScript ? [...scripts, this.batchScript] : scripts;
    this.deadlines = new CommandDeadlines(timeoutMs, runtime);
    this.masterSearch = new MasterSearch(runtime);
    this.portions = new Portions(runtime);
    this.awaited = new AwaitedSession(this.deadlines);
    this.errors = new ClientErrors(client);
    this.silentSentinels = new SilentSentinels(client, this.errors.clean);
    this.window = new SendWindow({
      ...{ runtime, timeoutMs },
      trouble: () => (this.session ? undefined : this.notSent('there was no connection to Redis')),
      silentForMs: () => this.deadlines.silentForMs,
      sendRuns: (runs) => this.sharedRuns.send(runs),
    });
    this.sharedRuns = new SharedRuns(this, this.window, this.deadlines, {
      batchScript: this.batchScript,
      clean: this.errors.clean,
    });
    client.on('close', () => this.end());
    client.on('end', () => this.end());
    watchHandshakes(client, this.deadlines, () => void this.begin());
    // Otherwise the client connects at the first request.
    if (client.status === 'ready') void this.begin();
  }

  get current(): RedisSession | undefined {
    return this.session;
  }

  /** Whether a connection was requested, even if none was ever established. */
  get isWanted(): boolean {
    return this.#client.status !== 'wait';
  }

  /** Resolves with the current connection, else with the next one. Waits for it within the command time-out. */
  async opened(): Promise<RedisSession> {
    return this.session ?? this.ready();
  }

  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
    claim?: OfClaim,
  ): Promise<T> {
    return this.send(requestFor(script, keys, args, read, script.urgency, claim));
  }

  /** Loads a script, where the user has the right: it may be the only way to run one. */
  async load({ source }: Script): Promise<void> {
    const loaded = this.send({ command: 'script', args: ['load', source], read: () => undefined });
    await loaded.catch((failure: RedisFailure) => isReplyError(failure.cause) || Promise.reject(failure));
  }

  runShared<T>(run: SharedRun, read: (reply: unknown) => T): Promise<T> {
    const { part, keys, batchKeys, args, claim } = run;
    return new Promise<T>((done, reject) => {
      const resolve = done as (value: unknown) => void;
      this.share({ part, keys, batchKeys, args, claim, read, resolve, reject });
    });
  }

  share(run: ScriptRun): void {
    this.sharedRuns.share(run);
  }

  /** See `KindStore.unsent`. */
  failureOf(name: string, owner: string): StoreFailure | undefined {
    return this.window.failureOf(name, owner);
  }

  send<T>(request: RedisRequest<T>): Promise<T> {
    this.sharedRuns.flush();
    const { session, window } = this;
    if (!session) return new Promise((resolve, reject) => this.exchangeWhenReady(request, resolve, reject));
    return request.urgency === undefined || window.isOpen
      ? this.sendOn(session, request)
      : window.wait(request, (due) => this.sendAtOnce(due));
  }

  /**
   * Sends a request on this session only: a later one may lead to a server that lacks what was done on this one.
   * Rejects with the outcome `not-executed` when the session has ended.
   */
  sendOnlyOn<T>(session: RedisSession, request: RedisRequest<T>): Promise<T> {
    this.sharedRuns.flush();
    if (this.session !== session) return Promise.reject(this.notSent('the connection to Redis was lost'));
    return new Promise((resolve, reject) =>
      this.exchange(session, request, resolve, reject, { isOnlyHere: true }),
    );
  }

  /**  @param why message of the failure that waiting and later requests get */
  close(why = STORE_CLOSED): void {
    const because = (this.closedBecause ??= why);
    this.closed = true;
    this.#client.disconnect();
    this.end();
    this.awaited.reject(() => this.notSent(because));
  }

  /** Sends a request whose turn has come. */
  private sendAtOnce<T>(request: RedisRequest<T>): Promise<T> {
    return this.session ? this.sendOn(this.session, request) : this.send(request);
  }

  private sendOn<T>(session: RedisSession, request: RedisRequest<T>): Promise<T> {
    return new Promise((resolve, reject) => this.exchange(session, request, resolve, reject));
  }

  private exchangeWhenReady<T>(
    request: RedisRequest<T>,
    resolve: (value: T) => void,
    reject: (failure: unknown) => void,
    isAgain = false,
  ): void {
    this.ready(request.claim?.until).then((session) => {
      // Earlier requests may be in the batch by now: send them first.
      this.sharedRuns.flush();
      if (isAgain || this.session !== session || this.window.isOpen)
        this.exchange(session, request, resolve, reject, { isOnlyHere: isAgain });
      else this.send(request).then(resolve, reject);
    }, reject);
  }

  /** Sends a request on this session. It counts as a number of `runs`. */
  exchange<T>(
    session: RedisSession,
    request: RedisRequest<T>,
    resolve: (value: T) => void,
    reject: (failure: unknown) => void,
    {
      isOnlyHere = false,
      runs = runsOf(request),
    }: { readonly isOnlyHere?: boolean; readonly runs?: number } = {},
  ): void {
    // Without a script for several keys, the requests of one tick at least share a packet.
    if (!this.batchScript && !this.deadlines.idle) gatherTick(this.#client);
    // A session that ended meanwhile has no place in the window of the next one.
    if (session === this.session) this.window.sent(runs);
    const inFlight = this.deadlines.add(() => {
      inFlight.done = true;
      reject(timedOut(this.timeoutMs, this.errors.last, session));
      // Replies come in order, so no later request on this connection has a reply either.
      this.drop(session);
    });
    // Outside the caller's context: its traces show no keys, and a batch belongs to several callers.
    unbound(() => this.#client.call(request.command, ...request.args)).then(
      (reply) => {
        const isLate = inFlight.done;
        inFlight.done = true;
        this.portions.add(() => {
          this.replied(session, runs, inFlight.sentAt);
          if (isLate) return;
          if (this.masterSearch.isDueTo(reply)) this.drop(session);
          let result: T;
          try {
            result = request.read(reply);
          } catch (cause) {
            return reject(unreadable(cause, session));
          }
          resolve(result);
        }, runs);
      },
      (error: unknown) => {
        this.replied(session, runs, inFlight.sentAt);
        // Later requests wait for the new connection. A caller that retries on this one at once, again and again, would
        // keep the process from noticing that it has ended.
        if (this.masterSearch.isDueTo(error)) this.drop(session, error);
        else if (isUnwritable(error)) this.drop(session);
        if (inFlight.done) return;
        inFlight.done = true;
        // The socket is closed but no `close` event has come; nothing was written. Retry once on the next connection.
        if (isUnwritable(error) && !isOnlyHere) return this.exchangeWhenReady(request, resolve, reject, true);
        if (request.inFull && isNoScript(error)) {
          const inFull = request.inFull();
          (isOnlyHere ? this.sendOnlyOn(session, inFull) : this.send(inFull)).then(resolve, reject);
        } else
          this.portions.add(() => reject(failureOf(error, session, this.errors.explained, request)), runs);
      },
    );
  }

  private replied(session: RedisSession, runs: number, sentAt: number): void {
    if (session === this.session) this.window.replied(runs, sentAt);
  }

  /** Waits for the connection within the command time-out, and until then while the server loads scripts. */
  private ready(until = -Infinity): Promise<RedisSession> {
    if (this.closedBecause !== undefined) return Promise.reject(this.notSent(this.closedBecause));
    this.onDown('needed');
    // A client that gave up (a foreign retryStrategy, settings of TLS that cannot work) connects once more for each command.
    // Its errors also arrive as 'error' events. Unless it gave up again, it goes on trying. Else no socket and no timer
    // would keep the process alive until the requests fail.
    if (['end', 'wait'].includes(this.#client.status))
      this.#client.connect().catch((error: unknown) => {
        this.errors.noteIfUnknown(error);
        if (this.isCheck || this.#client.status === 'end')
          this.awaited.reject(() => this.notSent('Redis cannot be reached'));
      });
    // The same goes for a server that refused the database: an operator may have fixed that.
    if (this.life?.refused) void this.open(this.life);
    return this.awaited.next(() => {
      if (!this.life?.isLoading)
        return this.notSent(notReady(this.errors.last, this.timeoutMs) + this.silentSentinels.text);
      return this.deadlines.runtime.now() < until ? undefined : stillLoading();
    });
  }

  private async begin(): Promise<void> {
    this.life = { alive: true, refused: false, isLoading: false };
    await this.open(this.life);
  }

  /** Makes a new connection ready: its database, the scripts, and the id by which it can be killed. */
  private async open(life: Life): Promise<void> {
    life.refused = false;
    const refusal = await openDatabase(this.#client, life, this.deadlines, (error) =>
      this.errors.note(error),
    );
    if (!life.alive) return;
    if (refusal !== undefined) return this.refused(life, this.errors.clean(refusal));
    const name = await nameSession(this.#client, this.scripts, this.deadlines, () => (life.isLoading = true));
    if (!life.alive) return;
    this.errors.note(undefined);
    this.session = Object.assign(life, name, { of: this.id });
    this.startPinging(this.session);
    if (this.hadSession) this.onAgain();
    this.hadSession = true;
    this.awaited.begin(this.session);
  }

  private refused(life: Life, cause: Error): void {
    this.errors.note(cause);
    // The server may accept the next connection, with another password for example.
    if (databaseOf(this.#client) === 0) return dropSocket(this.#client);
    life.refused = true;
    this.awaited.reject(() => refusedDatabase(databaseOf(this.#client), cause));
  }

  /** Sends PING while idle, so that a connection that was dropped silently is found before the next lock needs it. */
  private startPinging(session: RedisSession): void {
    const ping = (): void => {
      // A request under way finds out by itself.
      if (this.deadlines.idle) this.sendOn(session, PING).catch(() => undefined);
    };
    this.endPings = every(this.deadlines.runtime, this.idlePingMs, ping);
  }

  /** Drops the connection at once, so that later requests wait for the new one. */
  private drop(session: RedisSession, because?: unknown): void {
    if (!session.alive) return;
    this.errors.note(because);
    this.end();
    dropSocket(this.#client);
  }

  private end(): void {
    const hadEnded = this.session === undefined;
    if (this.life) this.life.alive = false;
    this.life = undefined;
    this.session = undefined;
    this.endPings?.();
    this.window.reset();
    if (!hadEnded && !this.closed) this.onDown('ended');
  }

  private notSent(message: string): RedisFailure {
    const cause = this.errors.last;
    const passing = message !== STORE_CLOSED && mayReconnect(cause);
    return new RedisFailure(message, 'not-executed', { cause, passing });
  }
}
