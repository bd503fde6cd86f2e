import { unbound } from '../../../core/runtime.js';
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
  unanswered,
} from './redis-failure.js';
import { MasterSearch } from './master-search.js';
import { readBatch } from './batch-replies.js';
import { requestFor, type RedisRequest } from './redis-request.js';
import { runProbe, type Probe } from './probe.js';
import { nameSession, type RedisSession } from './redis-session.js';
import { SilentSentinels } from './sentinels/silent-sentinels.js';
import type { Commands } from './commands.js';
import type { Script } from './script.js';
import { batchOf, keysAndArgs, ScriptBatch, type BatchPart, type ScriptRun } from './script-batch.js';

/** How often a connection that is idle is asked whether it still lives, in ms. */
const IDLE_PING_MS = 10_000;
const PING: RedisRequest<void> = { command: 'ping', args: [], read: () => undefined };

const STORE_CLOSED = 'the lock store is closed';

/** A connection of the client, from its handshake on. It is a session once it is in its database. */
interface Life {
  alive: boolean;
  /** Its database was refused; the next command asks for it again. */
  refused: boolean;
}

/** What a connection is made for. */
export interface RedisConnectionOptions {
  readonly timeoutMs: number;
  /** Made known to the server first: a script it has to be sent again would be overtaken by later commands. */
  readonly scripts?: readonly Script[];
  /** Scripts that can share a request. */
  readonly batchParts?: readonly BatchPart[];
  /** Run on each new connection, before anything is asked there. See {@link RedisConnection.probed}. */
  readonly probe?: Probe | (() => Probe | undefined) | undefined;
  /** For tests. */
  readonly idlePingMs?: number;
}

/**
 * The connection that commands travel on. Each command is executed at most once: it is sent again only after the server
 * has refused it unread. Each sending ends within the time-out: with its reply, or with a failure that says whether it
 * can have been executed.
 */
export class RedisConnection implements Commands {
  readonly id = Symbol('connection');
  /** Private to the language: it knows the password, and a logger that prints a lease or a service would print it. */
  readonly #client: RedisLike;
  private session: RedisSession | undefined;
  private life: Life | undefined;
  private readonly deadlines: CommandDeadlines;
  private readonly awaited: AwaitedSession;
  private readonly batch = new ScriptBatch((runs) => this.sendBatch(runs));
  private readonly errors: ClientErrors;
  private answerOfProbe: unknown;
  private pinger: NodeJS.Timeout | undefined;
  private closed = false;
  private closedBecause: string | undefined;
  private hadSession = false;
  private readonly masterSearch = new MasterSearch();
  /** Told when there is a connection again, before anything is asked on it. */
  onAgain: () => void = () => undefined;
  /** Notified when the connection has ended, unless it was closed from here, and when a request finds no connection. */
  onDown: (why: 'ended' | 'needed') => void = () => undefined;
  private readonly timeoutMs: number;
  private readonly idlePingMs: number;
  private readonly scripts: readonly Script[];
  private readonly batchScript: Script | undefined;
  private readonly silentSentinels: SilentSentinels;
  private readonly probe: RedisConnectionOptions['probe'];

  constructor(client: RedisLike, options: RedisConnectionOptions) {
    const { timeoutMs, scripts = [], batchParts = [], probe, idlePingMs = IDLE_PING_MS } = options;
    this.#client = client;
    this.timeoutMs = timeoutMs;
    this.idlePingMs = idlePingMs;
    this.batchScript = batchParts.length > 0 ? batchOf(batchParts) : undefined;
    this.probe = probe;
    this.scripts = this.batchScript ? [...scripts, this.batchScript] : scripts;
    this.deadlines = new CommandDeadlines(timeoutMs);
    this.awaited = new AwaitedSession(this.deadlines);
    this.errors = new ClientErrors(client);
    this.silentSentinels = new SilentSentinels(client, this.errors.clean);
    client.on('close', () => this.end());
    client.on('end', () => this.end());
    watchHandshakes(client, this.deadlines, () => void this.begin());
    // Else it connects when it is first asked for something.
    if (client.status === 'ready') void this.begin();
  }

  /** The current connection, if it is up. */
  get current(): RedisSession | undefined {
    return this.session;
  }

  /** Whether a connection was asked for, also one that never came up. */
  get isWanted(): boolean {
    return this.#client.status !== 'wait';
  }

  /** What the probe answered on the current connection, or the error with which it failed. */
  get probed(): unknown {
    return this.answerOfProbe;
  }

  /** The current connection, or the next one. Waits for it within the command time-out. */
  async opened(): Promise<RedisSession> {
    return this.session ?? this.ready();
  }

  /** Runs a script and reads the reply. */
  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T> {
    return this.send(requestFor(script, keys, args, read));
  }

  /** The same for a script that can share a request with others of its tick. One that is alone leaves at once. */
  runShared<T>(
    run: Pick<ScriptRun, 'part' | 'keys' | 'batchKeys' | 'args'>,
    read: (reply: unknown) => T,
  ): Promise<T> {
    const { part, keys, batchKeys, args } = run;
    return new Promise<T>((resolve, reject) =>
      this.share({ part, keys, batchKeys, args, read, resolve: resolve as (value: unknown) => void, reject }),
    );
  }

  /** The same without a promise, which costs as much as all the rest of it: the run itself is told. */
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
   * The same on this session, or not at all: a later one may lead to a server that lacks what was done on this one. Then the
   * outcome is `not-executed`.
   */
  sendOnlyOn<T>(session: RedisSession, request: RedisRequest<T>): Promise<T> {
    this.batch.flush();
    if (this.session !== session) return Promise.reject(this.notSent('the connection to Redis was lost'));
    return new Promise((resolve, reject) => this.exchange(session, request, resolve, reject, true));
  }

  /** @param why what is told to whoever waits for it, and asks later. */
  close(why = STORE_CLOSED): void {
    const because = (this.closedBecause ??= why);
    this.closed = true;
    this.#client.disconnect();
    this.end();
    this.awaited.refuse(() => this.notSent(because));
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
      // What was asked for before this may have been put into it meanwhile.
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
    // Where no script can be run for several keys, what is asked in one tick shares a packet at least.
    if (!this.batchScript && !this.deadlines.idle) gatherTick(this.#client);
    const inFlight = this.deadlines.add(() => {
      inFlight.done = true;
      reject(unanswered(this.timeoutMs, this.errors.last, session));
      // Replies come in order, so nothing sent on this connection since then was answered either.
      this.drop(session);
    });
    this.#client.call(request.command, ...request.args).then(
      (reply) => {
        if (inFlight.done) return;
        inFlight.done = true;
        if (this.masterSearch.isDueTo(reply)) this.drop(session);
        let answer: T;
        try {
          answer = request.read(reply);
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
        resolve(answer);
      },
      (error: unknown) => {
        // Whoever asks next waits for the new connection. One who asked this one again at once, and again, would keep the
        // process from ever hearing that it has ended.
        if (this.masterSearch.isDueTo(error)) this.drop(session, error);
        else if (isUnwritable(error)) this.drop(session);
        if (inFlight.done) return;
        inFlight.done = true;
        // Its end is not heard of yet, and nothing was sent: that is to be asked where everybody is who asks from now on.
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
    // All is read before anything is believed: an answer that is wrong in one place is wrong.
    const read = (reply: unknown): unknown[] =>
      readBatch(reply, runs.length).map((one, i) => (one instanceof Error ? one : runs[i]!.read(one)));
    this.sendOn(session, requestFor(this.batchScript, keys, args, read)).then(
      (answers) =>
        runs.forEach((run, i) => {
          const answer = answers[i];
          if (!(answer instanceof Error)) return run.resolve(answer);
          run.reject(
            failureOf(answer, session, this.errors.clean, {
              keys: run.keys,
              refusals: run.part.script.refusals,
            }),
          );
        }),
      (failure: RedisFailure) => {
        // Nothing of it was done, and perhaps because of one of them only: who may use some keys and not others.
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
    // A client that gave up (a foreign retryStrategy) is asked once more for each command.
    // What went wrong arrives as an 'error' event, too, and the client goes on trying.
    if (['end', 'wait'].includes(this.#client.status))
      this.#client.connect().catch((error: unknown) => this.errors.noteIfUnknown(error));
    // So is a server that refused the database: an operator may have mended that.
    if (this.life?.refused) void this.open(this.life);
    return this.awaited.next(() =>
      this.notSent(notReady(this.errors.last, this.timeoutMs) + this.silentSentinels.text),
    );
  }

  private async begin(): Promise<void> {
    this.life = { alive: true, refused: false };
    await this.open(this.life);
  }

  /** A new connection counts as ready once it is in its database, and it is known how to end it from elsewhere. */
  private async open(life: Life): Promise<void> {
    life.refused = false;
    const note = (error: unknown): void => this.errors.note(error);
    const refusal = await openDatabase(this.#client, life, this.deadlines, note);
    if (!life.alive) return;
    if (refusal !== undefined) return this.refused(life, this.errors.clean(refusal));
    let probed: unknown;
    const probe = async (): Promise<void> => {
      const due = typeof this.probe === 'function' ? this.probe() : this.probe;
      const answer = due && (await runProbe(this.#client, due));
      probed = answer instanceof Error ? this.errors.clean(answer) : answer;
    };
    const name = await nameSession(this.#client, this.scripts, this.deadlines, probe);
    if (!life.alive) return;
    this.errors.note(undefined);
    this.answerOfProbe = probed;
    this.session = Object.assign(life, name, { of: this.id });
    this.startPinging(this.session);
    if (this.hadSession) this.onAgain();
    this.hadSession = true;
    this.awaited.begin(this.session);
  }

  private refused(life: Life, cause: Error): void {
    this.errors.note(cause);
    // The next connection may be let in, with another password for example.
    if (databaseOf(this.#client) === 0) return dropSocket(this.#client);
    life.refused = true;
    this.awaited.refuse(() => refusedDatabase(databaseOf(this.#client), cause));
  }

  /** A connection that something in between has dropped without a word is found before the next lock needs it. */
  private startPinging(session: RedisSession): void {
    const ping = (): void => {
      // Whatever is under way finds out by itself.
      if (this.deadlines.idle) this.sendOn(session, PING).catch(() => undefined);
    };
    this.pinger = unbound(() => setInterval(ping, this.idlePingMs).unref());
  }

  /** Gives the connection up at once, so that what is asked next waits for the new one. */
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
    clearInterval(this.pinger);
    if (!hadEnded && !this.closed) this.onDown('ended');
  }

  private notSent(message: string): RedisFailure {
    const cause = this.errors.last;
    const passing = message !== STORE_CLOSED && mayReconnect(cause);
    return new RedisFailure(message, 'not-executed', { cause, passing });
  }
}
