import { unbound, type Runtime } from '../../../core/runtime.js';
import { AwaitedSession } from './awaited-session.js';
import { ClientErrors } from './client-errors.js';
import { CommandDeadlines } from './command-deadlines.js';
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
  timedOut,
} from './redis-failure.js';
import { MasterSearch } from './master-search.js';
import { readBatch } from './batch-replies.js';
import { requestFor, type RedisRequest } from './redis-request.js';
import { nameSession, type RedisSession } from './redis-session.js';
import { SilentSentinels } from './sentinels/silent-sentinels.js';
import type { Commands } from './commands.js';
import type { Script } from './script.js';
import { batchOf, keysAndArgs, ScriptBatch, type BatchPart, type ScriptRun } from './script-batch.js';
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
  private readonly batch = new ScriptBatch((runs) => this.sendBatch(runs));
  private readonly errors: ClientErrors;
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
    const {
      timeoutMs,
      runtime,
      scripts = [],
      batchParts = [],
      isCheck = false,
      idlePingMs = IDLE_PING_MS,
    } = options;
    this.#client = client;
    this.timeoutMs = timeoutMs;
    this.idlePingMs = idlePingMs;
    this.batchScript = batchParts.length > 0 ? batchOf(batchParts) : undefined;
    this.isCheck = isCheck;
    this.scripts = this.batchScript ? [...scripts, this.batchScript] : scripts;
    this.deadlines = new CommandDeadlines(timeoutMs, runtime);
    this.masterSearch = new MasterSearch(runtime);
    this.awaited = new AwaitedSession(this.deadlines);
    this.errors = new ClientErrors(client);
    this.silentSentinels = new SilentSentinels(client, this.errors.clean);
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
  ): Promise<T> {
    return this.send(requestFor(script, keys, args, read));
  }

  /** Loads a script, where the user has the right: it may be the only way to run one. */
  async load({ source }: Script): Promise<void> {
    const loaded = this.send({ command: 'script', args: ['load', source], read: () => undefined });
    await loaded.catch((failure: RedisFailure) => isReplyError(failure.cause) || Promise.reject(failure));
  }

  /** Runs a script that can share a request with others of its tick. On an idle connection it is sent at once. */
  runShared<T>(
    run: Pick<ScriptRun, 'part' | 'keys' | 'batchKeys' | 'args'>,
    read: (reply: unknown) => T,
  ): Promise<T> {
    const { part, keys, batchKeys, args } = run;
    return new Promise<T>((resolve, reject) =>
      this.share({ part, keys, batchKeys, args, read, resolve: resolve as (value: unknown) => void, reject }),
    );
  }

  /** Runs a script like `runShared`, but without a promise, which costs as much as everything else here. */
  share(run: ScriptRun): void {
    const { session } = this;
    if (!session) this.sendEach([run]);
    else if (this.batch.isEmpty && this.deadlines.idle) this.sendAlone(session, run);
    else this.batch.add(run);
  }

  send<T>(request: RedisRequest<T>): Promise<T> {
    this.batch.flush();
    if (this.session) return this.sendOn(this.session, request);
    return new Promise((resolve, reject) => this.exchangeWhenReady(request, resolve, reject));
  }

  /**
   * Sends a request on this session only: a later one may lead to a server that lacks what was done on this one.
   * Rejects with the outcome `not-executed` when the session has ended.
   */
  sendOnlyOn<T>(session: RedisSession, request: RedisRequest<T>): Promise<T> {
    this.batch.flush();
    if (this.session !== session) return Promise.reject(this.notSent('the connection to Redis was lost'));
    return new Promise((resolve, reject) => this.exchange(session, request, resolve, reject, true));
  }

  /**  @param why message of the failure that waiting and later requests get */
  close(why = STORE_CLOSED): void {
    const because = (this.closedBecause ??= why);
    this.closed = true;
    this.#client.disconnect();
    this.end();
    this.awaited.reject(() => this.notSent(because));
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
    this.ready().then((session) => {
      // Earlier requests may be in the batch by now: send them first.
      this.batch.flush();
      this.exchange(session, request, resolve, reject, isAgain);
    }, reject);
  }

  private sendAlone(session: RedisSession, run: ScriptRun): void {
    const { part, keys, args, read, resolve, reject } = run;
    this.exchange(session, requestFor(part.script, keys, args, read), resolve, reject);
  }

  private exchange<T>(
    session: RedisSession,
    request: RedisRequest<T>,
    resolve: (value: T) => void,
    reject: (failure: unknown) => void,
    isOnlyHere = false,
  ): void {
    // Without a script for several keys, the requests of one tick at least share a packet.
    if (!this.batchScript && !this.deadlines.idle) gatherTick(this.#client);
    const inFlight = this.deadlines.add(() => {
      inFlight.done = true;
      reject(timedOut(this.timeoutMs, this.errors.last, session));
      // Replies come in order, so no later request on this connection has a reply either.
      this.drop(session);
    });
    // Outside the caller's context: its traces show no keys, and a batch belongs to several callers.
    unbound(() => this.#client.call(request.command, ...request.args)).then(
      (reply) => {
        if (inFlight.done) return;
        inFlight.done = true;
        if (this.masterSearch.isDueTo(reply)) this.drop(session);
        let result: T;
        try {
          result = request.read(reply);
        } catch (cause) {
          return reject(
            new RedisFailure(
              'the answer is none that Redis gives; look at what is in its place, or in between',
              'unknown',
              { cause },
              session,
            ),
          );
        }
        resolve(result);
      },
      (error: unknown) => {
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
        } else reject(failureOf(error, session, this.errors.explained, request));
      },
    );
  }

  private sendBatch(runs: readonly ScriptRun[]): void {
    const { session } = this;
    if (session && runs.length === 1) return this.sendAlone(session, runs[0]!);
    if (!session || !this.batchScript) return this.sendEach(runs);
    const [keys, args] = keysAndArgs(runs);
    // Read all replies before trusting any: a reply that is wrong in one place is wrong.
    const read = (reply: unknown): unknown[] =>
      readBatch(reply, runs.length).map((one, i) => (one instanceof Error ? one : runs[i]!.read(one)));
    this.sendOn(session, requestFor(this.batchScript, keys, args, read)).then(
      (replies) =>
        runs.forEach((run, i) => {
          const result = replies[i];
          if (!(result instanceof Error)) return run.resolve(result);
          run.reject(
            failureOf(result, session, this.errors.clean, {
              keys: run.keys,
              refusals: run.part.script.refusals,
            }),
          );
        }),
      (failure: RedisFailure) => {
        // Nothing was executed, perhaps because of one run only: the user may have rights for some of the keys. Send
        // each by itself.
        if (failure.outcome === 'not-executed' && isReplyError(failure.cause)) this.sendEach(runs);
        else for (const run of runs) run.reject(failure);
      },
    );
  }

  private sendEach(runs: readonly ScriptRun[]): void {
    for (const { part, keys, args, read, resolve, reject } of runs) {
      this.run(part.script, keys, args, read).then(resolve, reject);
    }
  }

  /** Waits for the connection, within the command time-out. */
  private ready(): Promise<RedisSession> {
    if (this.closedBecause !== undefined) return Promise.reject(this.notSent(this.closedBecause));
    this.onDown('needed');
    // A client that gave up (a foreign retryStrategy) connects once more for each command. Its errors also arrive as
    // 'error' events, and it goes on trying.
    if (['end', 'wait'].includes(this.#client.status))
      this.#client.connect().catch((error: unknown) => {
        this.errors.noteIfUnknown(error);
        if (this.isCheck) this.awaited.reject(() => this.notSent('Redis cannot be reached'));
      });
    // The same goes for a server that refused the database: an operator may have fixed that.
    if (this.life?.refused) void this.open(this.life);
    return this.awaited.next(() =>
      this.notSent(notReady(this.errors.last, this.timeoutMs) + this.silentSentinels.text),
    );
  }

  private async begin(): Promise<void> {
    this.life = { alive: true, refused: false };
    await this.open(this.life);
  }

  /** Makes a new connection ready: its database, the scripts, and the id by which it can be killed. */
  private async open(life: Life): Promise<void> {
    life.refused = false;
    const note = (error: unknown): void => this.errors.note(error);
    const refusal = await openDatabase(this.#client, life, this.deadlines, note);
    if (!life.alive) return;
    if (refusal !== undefined) return this.refused(life, this.errors.clean(refusal));
    const name = await nameSession(this.#client, this.scripts, this.deadlines);
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
    if (!hadEnded && !this.closed) this.onDown('ended');
  }

  private notSent(message: string): RedisFailure {
    const cause = this.errors.last;
    const passing = message !== STORE_CLOSED && mayReconnect(cause);
    return new RedisFailure(message, 'not-executed', { cause, passing });
  }
}
