import { AsyncLocalStorage } from 'node:async_hooks';
import { EventEmitter } from 'node:events';
import { fences, type FenceMessage } from '../core/telemetry.js';
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
  type Wrote,
} from './connection-state.js';
import { CONTROL_METHODS, sqlOf, statementOf, type Statement } from './statements.js';

type Call = (...args: readonly unknown[]) => unknown;
type Members = Record<string, unknown>;

/** Hears of the calls of watched objects. */
export interface CallObserver {
  /** False while calls are to pass as if nothing watched them. */
  readonly isWatching: boolean;
  /** Returns the locks of the work that runs now. */
  now(): Moment;
  /** Called before each call. A promise delays the call. */
  before(call: WatchedCall): Promise<void> | undefined;
  /** Called for each write that has happened, with the locks at its beginning. */
  wrote: Wrote;
}

/** Notes a call that begins now. Returns what follows from its end. */
type Begin = (call: WatchedCall, moment: Moment, observer: CallObserver) => Ending;

/** Mark of the methods that a `WatchedCalls` has replaced. */
const WATCHED_BY = Symbol('watched by');

const ONE_LINE = 160;
const oneLine = (sql: string): string => {
  const text = sql.replace(/\s+/g, ' ').trim();
  return text.length <= ONE_LINE ? text : `${text.slice(0, ONE_LINE - 1)}…`;
};

const has = (target: object, name: string): boolean => typeof (target as Members)[name] === 'function';

const nameOf = (target: object): string => target.constructor?.name || 'Object';

/** Replaces methods of objects for the time of a test run, and reports their calls. */
export class WatchedCalls {
  private readonly restores: (() => void)[] = [];
  private readonly connections = new Map<object, ConnectionState>();
  /** True in the work of the next holder, which is not watched. */
  private readonly asides = new AsyncLocalStorage<boolean>();
  /** Scope of the watched method that is running. */
  private readonly methods = new AsyncLocalStorage<Scope>();
  /** Scopes of the running call of `fenceTransaction`. */
  private readonly fencing = new AsyncLocalStorage<Set<Scope>>();

  /** @param observer observer of the calls that begin from now on */
  constructor(public observer: CallObserver) {
    this.listenForFences();
  }

  /** Whether a transaction is open on a watched connection. */
  get isInTransaction(): boolean {
    return [...this.connections.values()].some((state) => state.isInTransaction);
  }

  /** Forgets transactions that an earlier run has left open. */
  reset(): void {
    for (const state of this.connections.values()) state.reset();
  }

  /** Runs work whose calls are not watched. */
  aside<T>(work: () => T): T {
    return this.asides.run(true, work);
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
    this.replace(target, name, (original) => {
      const hook: Call = (...args) => {
        const scope: Scope = { fenced: new Set() };
        const run = (): unknown => this.methods.run(scope, () => original(...args));
        return this.observed({ what, at: callerOf(hook) }, run, (call, moment, observer) => ({
          succeeded: () => observer.wrote(call, moment, scope.fenced),
        }));
      };
      return hook;
    });
  }

  /** Puts all methods back. */
  restore(): void {
    for (const restore of this.restores.splice(0).reverse()) restore();
  }

  /** Notes the keys of each fence in the transaction of its statements, and in the watched method around it. */
  private listenForFences(): void {
    const scopes = new WeakMap<object, Set<Scope>>();
    fences.start.bindStore(this.fencing, (message) => {
      const method = this.methods.getStore();
      const around = new Set(method ? [method] : []);
      scopes.set(message, around);
      return around;
    });
    const asyncEnd = (message: FenceMessage): void => {
      if (message.error !== undefined) return;
      for (const { fenced } of scopes.get(message) ?? [])
        for (const key of message.lease.keys) fenced.add(key);
    };
    const listener = { asyncEnd } as Parameters<typeof fences.subscribe>[0];
    fences.subscribe(listener);
    this.restores.push(() => {
      fences.unsubscribe(listener);
      fences.start.unbindStore(this.fencing);
    });
  }

  /** Watches the connections that a method returns. */
  private source(target: object, name: string): void {
    this.replace(target, name, (original) => (...args) => {
      const watched = (connection: unknown): unknown => {
        if (typeof connection === 'object' && connection !== null) this.connection(connection, false);
        return connection;
      };
      const made = original(...args);
      return made instanceof Promise ? made.then(watched) : watched(made);
    });
  }

  /** Hears of the clients that go back to a pool of pg. */
  private releases(pool: EventEmitter): void {
    const released = (_error: unknown, client: object): void => this.connections.get(client)?.reset();
    pool.on('release', released);
    this.restores.push(() => void pool.off('release', released));
  }

  private connection(target: object, isPool: boolean): void {
    const known = this.connections.get(target);
    if (known) return known.reset();
    const state = new ConnectionState(isPool);
    this.connections.set(target, state);
    // A runner of TypeORM sends the statements of its transactions itself.
    const isRunner = 'isTransactionActive' in target;
    for (const name of ['query', ...(isRunner ? [] : ['execute', ...Object.keys(CONTROL_METHODS)])]) {
      if (!has(target, name)) continue;
      this.replace(target, name, (original) => {
        const hook: Call = (...args) => {
          const sql = CONTROL_METHODS[name as keyof typeof CONTROL_METHODS] ?? sqlOf(args);
          if (sql === undefined) return original(...args);
          return this.statement(state, sql, callerOf(hook), () => original(...args));
        };
        return hook;
      });
    }
    this.untilRelease(target, state);
  }

  /** A connection that is released or destroyed is in no transaction. A pool of pg replaces `release` itself. */
  private untilRelease(target: object, state: ConnectionState): void {
    for (const name of ['release', 'destroy']) {
      if (!has(target, name) || Object.hasOwn(target, name)) continue;
      this.replace(target, name, (original) => (...args) => {
        state.reset();
        return original(...args);
      });
    }
  }

  private statement(
    state: ConnectionState,
    sql: string,
    at: string | undefined,
    run: () => unknown,
  ): unknown {
    const fence = this.fencing.getStore();
    // The row of a fence is no data that needs one.
    const statement: Statement = fence ? { kind: 'read' } : statementOf(sql);
    const begin: Begin = (call, moment, observer) => {
      const { scope } = state;
      if (scope) fence?.add(scope);
      return state.send(statement, call, moment, (...write) => observer.wrote(...write));
    };
    return this.observed({ what: oneLine(sql), at }, run, begin, state);
  }

  /** Runs a call between its two reports. */
  private observed(call: WatchedCall, run: () => unknown, begin: Begin, state?: ConnectionState): unknown {
    const { observer } = this;
    if (!observer.isWatching || this.asides.getStore()) return run();
    const start = (): unknown => {
      const ending = begin(call, observer.now(), observer);
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
        result = run();
      } catch (error) {
        return failed(error);
      }
      return result instanceof Promise ? result.then(succeeded, failed) : succeeded(result);
    };
    const delayed = observer.before(call);
    if (!delayed && !state?.ahead) return start();
    return inOrder(state, delayed, start);
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
