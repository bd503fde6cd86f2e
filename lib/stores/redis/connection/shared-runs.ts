import type { CommandDeadlines } from '../../load/command-deadlines.js';
import { failureOf, isReplyError, type RedisFailure, replyError } from './redis-failure.js';
import type { RedisSession } from './redis-session.js';
import { keysAndArgs, ScriptBatch, type ScriptRun } from './script-batch.js';
import { type Script, requestFor, type RedisRequest } from './script.js';
import type { SendWindow } from './send-window.js';
import { impossible } from './strict-replies.js';

/** The connection. */
interface SharedRunsHost {
  readonly current: RedisSession | undefined;
  send<T>(request: RedisRequest<T>): Promise<T>;
  exchange<T>(
    session: RedisSession,
    request: RedisRequest<T>,
    resolve: (value: T) => void,
    reject: (failure: unknown) => void,
    how?: { readonly runs: number },
  ): void;
}

interface SharedRunsOptions {
  /** Script for several runs; undefined when they cannot share a request. */
  readonly batchScript: Script | undefined;
  /** Removes what an error shows of the settings. */
  readonly clean: (error: unknown) => Error;
}

/**
 * Sends runs of scripts on one connection. The runs of one tick share a request. On an idle connection one is sent at
 * once.
 */
export class SharedRuns {
  private readonly batch = new ScriptBatch((runs) => this.send(runs));

  constructor(
    private readonly connection: SharedRunsHost,
    private readonly window: SendWindow,
    private readonly deadlines: CommandDeadlines,
    private readonly options: SharedRunsOptions,
  ) {}

  share(run: ScriptRun): void {
    const { window, deadlines } = this;
    const { current } = this.connection;
    if (!current) this.sendEach([run]);
    else if (!window.isOpen) window.addRun(run);
    else if (this.batch.isEmpty && deadlines.idle) this.sendAlone(current, run);
    else this.batch.add(run);
  }

  /** Sends what has been gathered. Call it before sending anything that must not overtake these runs. */
  flush(): void {
    this.batch.flush();
  }

  /** Sends runs whose turn has come. */
  send(runs: readonly ScriptRun[]): void {
    const { current: session } = this.connection;
    const { batchScript, clean } = this.options;
    if (session && runs.length === 1) return this.sendAlone(session, runs[0]!);
    if (!session || !batchScript) return this.sendEach(runs);
    const [keys, args] = keysAndArgs(runs);
    // Read all replies before trusting any: a reply that is wrong in one place is wrong.
    const read = (reply: unknown): unknown[] =>
      readBatch(reply, runs.length).map((one, i) => (one instanceof Error ? one : runs[i]!.read(one)));
    const settle = (replies: readonly unknown[]): void =>
      runs.forEach((run, i) => {
        const result = replies[i];
        if (!(result instanceof Error)) return run.resolve(result);
        const { keys, part } = run;
        run.reject(failureOf(result, session, clean, { keys, refusals: part.script.refusals }));
      });
    const fail = (failure: unknown): void => {
      const { outcome, cause } = failure as RedisFailure;
      // Nothing was executed, perhaps because of one run only: the user may have rights for some of the keys. Send
      // each by itself.
      if (outcome === 'not-executed' && isReplyError(cause)) this.sendEach(runs);
      else for (const run of runs) run.reject(failure);
    };
    const request = requestFor(batchScript, keys, args, read);
    this.connection.exchange(session, request, settle, fail, { runs: runs.length });
  }

  private sendAlone(session: RedisSession, { part, keys, args, read, resolve, reject }: ScriptRun): void {
    this.connection.exchange(session, requestFor(part.script, keys, args, read), resolve, reject);
  }

  private sendEach(runs: readonly ScriptRun[]): void {
    for (const { part, keys, args, read, claim, resolve, reject } of runs) {
      const { script } = part;
      this.connection.send(requestFor(script, keys, args, read, script.urgency, claim)).then(resolve, reject);
    }
  }
}

/** Returns the reply of each script of a batch; an `Error` for each script that failed. */
export const readBatch = (reply: unknown, count: number): unknown[] => {
  if (!Array.isArray(reply) || reply.length !== count) throw impossible(reply);
  return reply.map((one: unknown) => {
    if (!Array.isArray(one)) return one;
    const [message, ...more] = one as unknown[];
    if (typeof message !== 'string' || more.length > 0) throw impossible(one);
    return replyError(message);
  });
};
