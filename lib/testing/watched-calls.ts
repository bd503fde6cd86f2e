import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { fences, type FenceMessage } from '../core/context/telemetry.js';
import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { invalidOption } from '../core/settings/option-checks.js';
import { callerOf } from './caller-site.js';
import {
  ConnectionState,
  inOrder,
  type Ending,
  type Moment,
  type Scope,
  type WatchedCall,
} from './connection-state.js';
import { asides, runs, type LossRun } from './loss-run.js';
import { CONTROL_METHODS, isUnwatchable, sqlOf, statementOf, type Statement } from './statements.js';
import { nextTurns, UnseenWork } from './unseen-work.js';

type Call = (...args: readonly unknown[]) => unknown;
type Members = Record<string, unknown>;

/** Notes a call that begins now. Returns what follows from its end. */
type Begin = (call: WatchedCall, moment: Moment, run: LossRun) => Ending;

/** Mark of the methods that a `WatchedCalls` has replaced. */
const WATCHED_BY = Symbol('watched by');

const ONE_LINE = 160;
const oneLine = (sql: string): string => {
  const text = sql.replace(/\s+/g, ' ').trim();
  return text.length <= ONE_LINE ? text : `${text.slice(0, ONE_LINE - 1)}…`;
};

const has = (target: object, name: string): boolean => typeof (target as Members)[name] === 'function';

const nameOf = (target: object): string => target.constructor?.name || 'Object';

/** Whether a result does its work only when it is read. */
const isLazy = (result: unknown): boolean =>
  typeof result === 'object' &&
  result !== null &&
  !(result instanceof Promise) &&
  ['then', 'next', 'pipe', 'subscribe'].some((name) => has(result, name));

/** How long the end of a run waits for calls without a reply, in ms. */
const MAX_REPLY_MS = 1_000;
const timer = setTimeout;

/** Replaces methods of objects for the time of a test run, and reports their calls. */
export class WatchedCalls {
  private readonly restores: (() => void)[] = [];
  private readonly connections = new Map<object, ConnectionState>();
  /** Scope of the watched method that is running. */
  private readonly methods = new AsyncLocalStorage<Scope>();
  /** Scopes of the running call of `fenceTransaction`. */
  private readonly fencing = new AsyncLocalStorage<Set<Scope>>();
  private readonly work = new UnseenWork(() => this.run);
  /** Calls without a reply. */
  private readonly pending = new Map<Promise<unknown>, WatchedCall>();
  /** Methods that were named and not called. */
  readonly uncalled = new Set<string>();
  /** Run whose calls are watched. */
  private run: LossRun | undefined;

  constructor() {
    this.listenForFences();
    this.work.start();
    this.restores.push(() => {
      this.work.stop();
      this.methods.disable();
      this.fencing.disable();
    });
  }

  /** Whether a transaction is open on a watched connection. */
  get isInTransaction(): boolean {
    return [...this.connections.values()].some((state) => state.isInTransaction);
  }

  /** Watches the calls of a run of the scenario. Resolves with its error, or undefined. */
  async watch(run: LossRun, scenario: () => unknown): Promise<{ readonly error: unknown } | undefined> {
    const unfollow = run.follow();
    this.run = run;
    try {
      const failure = await run.run(scenario);
      await this.settled(run);
      return failure;
    } finally {
      unfollow();
      this.run = undefined;
    }
  }

  /** Watches the statements of a TypeORM data source, of a pool or of a connection. */
  database(target: object): void {
    if (has(target, 'createQueryRunner')) return this.source(target, 'createQueryRunner');
    const isOfMysql = has(target, 'getConnection');
    const isPool = isOfMysql || (has(target, 'connect') && 'totalCount' in target);
    if (isPool) this.source(target, isOfMysql ? 'getConnection' : 'connect');
    if (isPool && target instanceof EventEmitter) this.releases(target as EventEmitter);
    if (!has(target, 'query'))
      invalidOption('databases', 'a list of TypeORM data sources, or pools or connections of pg or mysql2', [
        target,
      ]);
    this.connection(target, isPool);
  }

  /** Watches a method that writes somewhere. */
  method(target: object, name: string): void {
    if (!has(target, name))
      invalidOption('writes', `a list of [object, names of its methods]`, [target, name]);
    const what = `${nameOf(target)}.${name}`;
    this.uncalled.add(what);
    this.replace(target, name, (original) => {
      const hook: Call = (...args) => {
        this.uncalled.delete(what);
        const scope: Scope = { fenced: new Set() };
        const start = (): unknown => this.methods.run(scope, () => original(...args));
        return this.observed({ what, at: callerOf(hook) }, start, (call, moment, run) => {
          const written = { call, moments: [moment], fences: scope.fenced };
          return {
            succeeded: () => run.wrote({ ...written, doubt: scope.fenced.size > 0 ? 'opaque' : undefined }),
            failed: () => run.wrote({ ...written, doubt: 'rejected' }),
          };
        });
      };
      return hook;
    });
  }

  /** Puts all methods back. */
  restore(): void {
    for (const restore of this.restores.splice(0).reverse()) restore();
  }

  /** Lets the calls of a run end, and reports what goes on. */
  private async settled(run: LossRun): Promise<void> {
    await nextTurns();
    const isLate = new Promise((done) => timer(done, MAX_REPLY_MS).unref());
    while (this.pending.size > 0) {
      const calls = Promise.allSettled(this.pending.keys()).then(nextTurns);
      if (await Promise.race([calls.then(() => false), isLate.then(() => true)])) break;
    }
    for (const call of this.pending.values()) run.unseen(call, 'unawaited');
    this.pending.clear();
    for (const state of this.connections.values()) state.abandon();
    this.work.report();
  }

  /** Notes the lease of each fence in the transaction of its statements, and in the watched method around it. */
  private listenForFences(): void {
    const scopes = new WeakMap<object, Set<Scope>>();
    fences.start.bindStore(this.fencing, (message) => {
      const method = this.methods.getStore();
      const around = new Set(method ? [method] : []);
      scopes.set(message, around);
      if (this.run?.fences(message.lease)) message.isRefused = true;
      return around;
    });
    const asyncEnd = (message: FenceMessage): void => {
      const { lease, error } = message;
      if (error !== undefined) return;
      this.run?.passed(lease);
      for (const { fenced } of scopes.get(message) ?? []) fenced.add(lease);
    };
    const listener = { asyncEnd } as Parameters<typeof fences.subscribe>[0];
    fences.subscribe(listener);
    this.restores.push(() => {
      fences.unsubscribe(listener);
      fences.start.unbindStore(this.fencing);
    });
  }

  /** Calls a method of a driver. Its callback is the caller's. */
  private inDriver(original: Call, args: readonly unknown[], replied?: (reply: unknown) => unknown): unknown {
    const { inside } = this.work;
    const around = inside.getStore();
    const callbackOf = (callback: Call): Call =>
      function (this: unknown, ...reply) {
        reply.forEach((one) => replied?.(one));
        return inside.run(around, () => Reflect.apply(callback, this, reply));
      };
    const given = args.map((one) => (typeof one === 'function' ? callbackOf(one as Call) : one));
    return inside.run('statement', () => original(...given));
  }

  /** Watches the connections that a method returns, or passes to its callback. */
  private source(target: object, name: string): void {
    this.replace(target, name, (original) => (...args) => {
      const watched = (connection: unknown): unknown => {
        if (typeof connection === 'object' && connection !== null && has(connection, 'query'))
          this.connection(connection, false);
        return connection;
      };
      const made = this.inDriver(original, args, watched);
      return made instanceof Promise ? made.then(watched) : watched(made);
    });
  }

  /** Hears of the clients that go back to a pool of pg. */
  private releases(pool: EventEmitter): void {
    const released = (error: unknown, client: object): void => this.released(client, error);
    pool.on('release', released);
    this.restores.push(() => void pool.off('release', released));
  }

  private connection(target: object, isPool: boolean): void {
    const known = this.connections.get(target);
    if (known) return known.abandon();
    const state = new ConnectionState(isPool);
    this.connections.set(target, state);
    // A runner of TypeORM sends the statements of its transactions itself.
    const isRunner = 'isTransactionActive' in target;
    for (const name of ['query', ...(isRunner ? [] : ['execute', ...Object.keys(CONTROL_METHODS)])]) {
      if (!has(target, name)) continue;
      this.replace(target, name, (original) => {
        const hook: Call = (...args) => {
          // A pool sends a statement by one of its clients.
          if (this.work.inside.getStore() === 'statement') return original(...args);
          const sql = CONTROL_METHODS[name as keyof typeof CONTROL_METHODS] ?? sqlOf(args);
          const call = { what: oneLine(sql ?? `${nameOf(target)}.${name}`), at: callerOf(hook) };
          const start = (): unknown => this.inDriver(original, args);
          const fence = this.fencing.getStore();
          // The row of a fence is no data that needs one.
          const statement: Statement = fence ? { kind: 'read' } : statementOf(sql ?? 'unknown');
          return isUnwatchable(args) || sql === undefined
            ? this.unwatchable(statement, call, start)
            : this.statement(state, statement, call, start);
        };
        return hook;
      });
    }
    this.untilRelease(target);
  }

  /** A pool of pg replaces `release` itself. */
  private untilRelease(target: object): void {
    for (const name of ['release', 'destroy']) {
      if (!has(target, name) || Object.hasOwn(target, name)) continue;
      this.replace(target, name, (original) => (...args) => {
        this.released(target, name === 'destroy' || args[0]);
        return this.work.inside.run('statement', () => original(...args));
      });
    }
  }

  /** The server rolls back what a connection has begun that is destroyed. Of one that is released, later work may commit it. */
  private released(target: object, isDestroyed: unknown): void {
    const state = this.connections.get(target);
    if (isDestroyed) state?.reset();
    else state?.abandon();
  }

  private unwatchable({ kind }: Statement, call: WatchedCall, start: () => unknown): unknown {
    const run = runs.getStore() ?? this.run;
    if (kind !== 'read' && !asides.getStore()) run?.unseen(call, 'unwatched');
    return start();
  }

  private statement(
    state: ConnectionState,
    statement: Statement,
    watched: WatchedCall,
    start: () => unknown,
  ): unknown {
    const fence = this.fencing.getStore();
    const begin: Begin = (call, moment, run) => {
      const { scope } = state;
      if (scope) fence?.add(scope);
      return state.send(statement, call, moment, (written) => run.wrote(written));
    };
    return this.observed(watched, start, begin, state, statement.kind === 'read');
  }

  /** Runs a call between its two reports. */
  private observed(
    call: WatchedCall,
    work: () => unknown,
    begin: Begin,
    state?: ConnectionState,
    isRead = false,
  ): unknown {
    const { run } = this;
    const own = runs.getStore() ?? run;
    if (!own || asides.getStore()) return work();
    if (own !== run) {
      // Its run is over.
      if (!isRead) own.unseen(call, 'unawaited');
      return work();
    }
    const start = (): unknown => {
      const ending = begin(call, run.now(), run);
      const succeeded = (value: unknown): unknown => {
        ending.succeeded?.(value);
        return value;
      };
      const failed = (error: unknown): never => {
        ending.failed?.();
        throw error;
      };
      let result: unknown;
      try {
        result = work();
      } catch (error) {
        return failed(error);
      }
      if (isLazy(result) && !isRead) run.unseen(call, 'unwatched');
      return result instanceof Promise ? result.then(succeeded, failed) : succeeded(result);
    };
    const delayed = run.before(call);
    const result = !delayed && !state?.ahead ? start() : inOrder(state, delayed, start);
    if (result instanceof Promise && !isRead) this.followed(result, call);
    return result;
  }

  private followed(result: Promise<unknown>, call: WatchedCall): void {
    this.pending.set(result, call);
    const over = (): void => void this.pending.delete(result);
    result.then(over, over);
  }

  private replace(target: object, name: string, replacement: (original: Call) => Call): void {
    const own = Object.getOwnPropertyDescriptor(target, name);
    const method = (target as Members)[name] as Call & { readonly [WATCHED_BY]?: WatchedCalls };
    if (method[WATCHED_BY] === this) return;
    const shown = `${nameOf(target)}.${name}`;
    if (method[WATCHED_BY])
      throw new LockConfigurationError(
        `testing.loseEverywhere already watches ${shown} in another run: await it before the next one.`,
      );
    const value = Object.assign(
      replacement((...args) => method.apply(target, args as unknown[])),
      { [WATCHED_BY]: this },
    );
    try {
      Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: false });
    } catch (cause) {
      throw new LockConfigurationError(
        `testing.loseEverywhere cannot watch ${shown}: the object is frozen. Pass an object whose methods may be replaced.`,
        { cause },
      );
    }
    this.restores.push(() => {
      if (own) Reflect.defineProperty(target, name, own);
      else Reflect.deleteProperty(target, name);
    });
  }
}
