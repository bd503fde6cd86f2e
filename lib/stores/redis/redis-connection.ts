import { RedisFailure, failureOf, isNoScript, isReadOnly } from './redis-failure.js';
import { CommandDeadlines } from './command-deadlines.js';
import { watchHandshakes } from './handshake-watch.js';
import { dropSocket, type RedisLike } from './redis-client.js';
import { WriteBatch } from './write-batch.js';
import type { RedisSession } from './redis-session.js';
import type { Script } from './script.js';

/** A command, and how its reply is read; a reply that cannot be read makes the outcome unknown. */
export interface RedisRequest<T> {
  readonly command: string;
  readonly args: readonly (string | number)[];
  readonly read: (reply: unknown) => T;
  /** What to send instead when the server does not know the script. */
  readonly inFull?: () => RedisRequest<T>;
}

const NAMELESS = { id: undefined, address: undefined };

interface Waiter {
  resolve(session: RedisSession): void;
  reject(failure: RedisFailure): void;
}

/**
 * The connection that commands travel on. Each command is sent at most once, and ends within the time-out: with
 * its reply, or with a failure that says whether it can have been executed.
 */
export class RedisConnection {
  private session: RedisSession | undefined;
  private life: { alive: boolean } | undefined;
  private waiters = new Set<Waiter>();
  private readonly deadlines: CommandDeadlines;
  private readonly writes: WriteBatch;
  private lastError: unknown;
  private closed = false;

  constructor(
    private readonly client: RedisLike,
    private readonly timeoutMs: number,
    /** False where commands go to more than one server. */
    private readonly identifies: boolean,
    /** Made known to the server first: a script it has to be sent again would be overtaken by later commands. */
    private readonly scripts: readonly Script[] = [],
  ) {
    this.deadlines = new CommandDeadlines(timeoutMs);
    this.writes = new WriteBatch(client);
    client.on('error', (error: unknown) => (this.lastError = error));
    client.on('ready', () => void this.begin());
    client.on('close', () => this.end());
    client.on('end', () => this.end());
    watchHandshakes(client, this.deadlines);
    if (client.status === 'ready') void this.begin();
    else this.connect();
  }

  /** The current connection, if it is up. */
  get current(): RedisSession | undefined {
    return this.session;
  }

  /** Runs a script, by its hash where the server knows it, and reads the reply. */
  run<T>(
    script: Script,
    keys: readonly string[],
    args: readonly (string | number)[],
    read: (reply: unknown) => T,
  ): Promise<T> {
    return this.send({
      command: 'evalsha',
      args: [script.sha, keys.length, ...keys, ...args],
      read,
      inFull: () => ({ command: 'eval', args: [script.source, keys.length, ...keys, ...args], read }),
    });
  }

  send<T>(request: RedisRequest<T>): Promise<T> {
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
      this.writes.begin(this.deadlines.idle);
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
    const name = this.identifies ? await this.identify() : NAMELESS;
    if (!life.alive) return;
    this.lastError = undefined;
    this.session = Object.assign(life, name);
    const waiters = this.waiters;
    this.waiters = new Set();
    for (const waiter of waiters) waiter.resolve(this.session);
  }

  private async identify(): Promise<Pick<RedisSession, 'id' | 'address'>> {
    const inFlight = this.deadlines.add(() => dropSocket(this.client));
    const ask = (...words: [string, ...string[]]): Promise<string> => {
      const [command, ...args] = words;
      return this.client.call(command, ...args).then(
        (reply) => (typeof reply === 'string' || typeof reply === 'number' ? `${reply}` : ''),
        () => '',
      );
    };
    // Who may not do this sends each script in full once.
    const loads = this.scripts.map(({ source }) => ask('script', 'load', source));
    const info = await ask('client', 'info');
    // Before Redis 6.2 there is only the id.
    const id = info || (await ask('client', 'id'));
    await Promise.all(loads);
    inFlight.done = true;
    if (!info) return { id: id || undefined, address: undefined };
    const field = (key: string) => new RegExp(`(?:^| )${key}=(\\S+)`).exec(info)?.[1];
    return { id: field('id'), address: field('addr') };
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
