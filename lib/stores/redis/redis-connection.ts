import { RedisFailure, failureOf, isNoScript, isReadOnly, isReplyError } from './redis-failure.js';
import { CommandDeadlines } from './command-deadlines.js';
import { watchHandshakes } from './handshake-watch.js';
import { dropSocket, type RedisLike } from './redis-client.js';
import { requestFor, type RedisRequest } from './redis-request.js';
import { nameSession, NAMELESS, type RedisSession } from './redis-session.js';
import { readBatch } from './replies.js';
import { Script } from './script.js';
import { keysAndArgs, ScriptBatch, type ScriptRun } from './script-batch.js';
import { EXCLUSIVE_BATCH } from './scripts/batch.js';

/** Runs several of the scripts that can share a request. */
const BATCH = new Script(EXCLUSIVE_BATCH);

interface Waiter {
  resolve(session: RedisSession): void;
  reject(failure: RedisFailure): void;
}

/**
 * The connection that commands travel on. Each command is executed at most once: it is sent again only after the server
 * has refused it unread. Each sending ends within the time-out: with its reply, or with a failure that says whether it
 * can have been executed.
 */
export class RedisConnection {
  private session: RedisSession | undefined;
  private life: { alive: boolean } | undefined;
  private waiters = new Set<Waiter>();
  private readonly deadlines: CommandDeadlines;
  private readonly batch = new ScriptBatch((runs) => this.sendBatch(runs));
  private lastError: unknown;
  private closed = false;

  constructor(
    private readonly client: RedisLike,
    private readonly timeoutMs: number,
    /** False where commands go to more than one server. */
    private readonly oneServer: boolean,
    /** Made known to the server first: a script it has to be sent again would be overtaken by later commands. */
    private readonly scripts: readonly Script[] = [],
  ) {
    this.deadlines = new CommandDeadlines(timeoutMs);
    client.on('error', (error: unknown) => (this.lastError = error));
    client.on('ready', () => void this.begin());
    client.on('close', () => this.end());
    client.on('end', () => this.end());
    watchHandshakes(client, this.deadlines);
    // Else it connects when it is first asked for something.
    if (client.status === 'ready') void this.begin();
  }

  /** The current connection, if it is up. */
  get current(): RedisSession | undefined {
    return this.session;
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
    run: Pick<ScriptRun, 'script' | 'letter' | 'keys' | 'args'>,
    read: (reply: unknown) => T,
  ): Promise<T> {
    const alone = this.batch.isEmpty && this.deadlines.idle;
    if (alone || !this.session || !this.oneServer) return this.run(run.script, run.keys, run.args, read);
    const { script, letter, keys, args } = run;
    return new Promise<T>((resolve, reject) => {
      this.batch.add({
        script,
        letter,
        keys,
        args,
        read,
        resolve: resolve as (value: unknown) => void,
        reject,
      });
    });
  }

  send<T>(request: RedisRequest<T>): Promise<T> {
    this.batch.flush();
    const { session } = this;
    return session ? this.sendOn(session, request) : this.sendWhenReady(request);
  }

  close(): void {
    this.closed = true;
    this.client.disconnect();
    this.end();
    const waiters = this.waiters;
    this.waiters = new Set();
    for (const waiter of waiters) waiter.reject(this.notSent('the lock store is closed'));
  }

  private async sendWhenReady<T>(request: RedisRequest<T>): Promise<T> {
    return this.sendOn(await this.ready(), request);
  }

  private sendOn<T>(session: RedisSession, request: RedisRequest<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      const inFlight = this.deadlines.add(() => {
        inFlight.done = true;
        reject(this.unanswered(session));
        // Replies come in order, so nothing sent on this connection since then was answered either.
        this.drop(session);
      });
      this.client.call(request.command, ...request.args).then(
        (reply) => {
          if (inFlight.done) return;
          inFlight.done = true;
          try {
            resolve(request.read(reply));
          } catch (cause) {
            reject(
              new RedisFailure(
                'the answer is none that Redis gives; look at what is in its place, or in between',
                'unknown',
                { cause },
                session,
              ),
            );
          }
        },
        (error: unknown) => {
          if (isReadOnly(error)) this.drop(session);
          if (inFlight.done) return;
          inFlight.done = true;
          if (request.inFull && isNoScript(error)) resolve(this.send(request.inFull()));
          else reject(failureOf(error, session));
        },
      );
    });
  }

  private sendBatch(runs: readonly ScriptRun[]): void {
    const { session } = this;
    if (!session || runs.length === 1) return this.sendEach(runs);
    const [keys, args] = keysAndArgs(runs);
    // All is read before anything is believed: an answer that is wrong in one place is wrong.
    const read = (reply: unknown): unknown[] =>
      readBatch(reply, runs.length).map((one, i) => (one instanceof Error ? one : runs[i]!.read(one)));
    this.sendOn(session, requestFor(BATCH, keys, args, read)).then(
      (answers) =>
        runs.forEach((run, i) => {
          const answer = answers[i];
          if (!(answer instanceof Error)) return run.resolve(answer);
          if (isReadOnly(answer)) this.drop(session);
          run.reject(failureOf(answer, session));
        }),
      (failure: RedisFailure) => {
        // Nothing of it was done, and perhaps because of one of them only: who may use some keys and not others.
        if (failure.outcome === 'not-executed' && isReplyError(failure.cause)) this.sendEach(runs);
        else for (const run of runs) run.reject(failure);
      },
    );
  }

  private sendEach(runs: readonly ScriptRun[]): void {
    for (const { script, keys, args, read, resolve, reject } of runs) {
      this.run(script, keys, args, read).then(resolve, reject);
    }
  }

  /** Waits for the connection, within the command time-out. */
  private ready(): Promise<RedisSession> {
    if (this.closed) return Promise.reject(this.notSent('the lock store is closed'));
    // A client that gave up (a foreign retryStrategy) is asked once more for each command.
    if (this.client.status === 'end' || this.client.status === 'wait') this.connect();
    return new Promise((resolve, reject) => {
      const inFlight = this.deadlines.add(() => {
        this.waiters.delete(waiter);
        reject(this.notSent(`there was no connection to Redis within ${this.timeoutMs} ms`));
      });
      const waiter: Waiter = {
        resolve: (session) => {
          inFlight.done = true;
          resolve(session);
        },
        reject: (failure) => {
          inFlight.done = true;
          reject(failure);
        },
      };
      this.waiters.add(waiter);
    });
  }

  private connect(): void {
    // What went wrong arrives as an 'error' event too, and the client goes on trying.
    this.client.connect().catch((error: unknown) => (this.lastError ??= error));
  }

  /** A new connection counts as ready once it is known how to end it from elsewhere. */
  private async begin(): Promise<void> {
    const life = { alive: true };
    this.life = life;
    const known = [...this.scripts, BATCH];
    const name = this.oneServer ? await nameSession(this.client, known, this.deadlines) : NAMELESS;
    if (!life.alive) return;
    this.lastError = undefined;
    this.session = Object.assign(life, name);
    const waiters = this.waiters;
    this.waiters = new Set();
    for (const waiter of waiters) waiter.resolve(this.session);
  }

  /** Gives the connection up at once, so that what is asked next waits for the new one. */
  private drop(session: RedisSession): void {
    if (!session.alive) return;
    this.end();
    dropSocket(this.client);
  }

  private end(): void {
    if (this.life) this.life.alive = false;
    this.life = undefined;
    this.session = undefined;
  }

  private unanswered(session: RedisSession): RedisFailure {
    const cause = this.lastError;
    return new RedisFailure(
      `Redis did not answer within ${this.timeoutMs} ms`,
      'unknown',
      { cause },
      session,
    );
  }

  private notSent(message: string): RedisFailure {
    return new RedisFailure(message, 'not-executed', { cause: this.lastError });
  }
}
