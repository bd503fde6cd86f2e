import { AsyncLocalStorage } from 'node:async_hooks';
import { fences, type FenceMessage } from '../core/telemetry.js';
import { invalidOption } from '../core/settings/option-checks.js';
import { CONTROL_METHODS, kindOfStatement, sqlOf } from './statements.js';

type Call = (...args: readonly unknown[]) => unknown;
type Members = Record<string, unknown>;

/** A call of a watched object. */
export interface WatchedCall {
  /** The statement, or the class and the method. */
  readonly what: string;
  /** Line of the code that made the call: the first of its stack outside of `node_modules`. */
  readonly at: string | undefined;
}

/** Keys whose leases were passed to `fenceTransaction`, in one transaction or one watched method. */
export type FencedKeys = ReadonlySet<string>;

/** Hears of the calls of watched objects. */
export interface CallObserver {
  /** False while calls are to pass as if nothing watched them. */
  readonly isWatching: boolean;
  /** Whether the work that runs now has lost its lock. */
  readonly isLate: boolean;
  /** Called before each call. A promise delays the call. */
  before(call: WatchedCall): Promise<void> | undefined;
  /** Called for each write that has happened. `isLate`: when it began, or when its transaction began to commit. */
  wrote(call: WatchedCall, isLate: boolean, fenced: FencedKeys): void;
}

interface Scope {
  readonly fenced: Set<string>;
}

interface Transaction extends Scope {
  readonly writes: WatchedCall[];
}

const STACK_LINES = 50;

/** Returns the first line of the caller's stack that is not of a package or of Node. */
const callerOf = (hook: Call): string | undefined => {
  const { stackTraceLimit } = Error;
  Error.stackTraceLimit = STACK_LINES;
  const holder: { stack?: string } = {};
  Error.captureStackTrace(holder, hook);
  Error.stackTraceLimit = stackTraceLimit;
  const lines = (holder.stack ?? '').split('\n').slice(1);
  const own = lines.find((line) => /[/\\]/.test(line) && !/node_modules|node:/.test(line));
  return own?.trim().replace(/^at (async )?/, '');
};

const ONE_LINE = 160;
const oneLine = (sql: string): string => {
  const text = sql.replace(/\s+/g, ' ').trim();
  return text.length <= ONE_LINE ? text : `${text.slice(0, ONE_LINE - 1)}…`;
};

const has = (target: object, name: string): boolean => typeof (target as Members)[name] === 'function';

/** Replaces methods of objects for the time of a test run, and reports their calls. */
export class WatchedCalls {
  private readonly restores: (() => void)[] = [];
  private readonly connections = new Map<object, { transaction?: Transaction | undefined }>();
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
    return [...this.connections.values()].some(({ transaction }) => transaction !== undefined);
  }

  /** Watches the statements of a TypeORM data source, of a pool or of a connection. */
  database(target: object): void {
    if (has(target, 'createQueryRunner')) return this.source(target, 'createQueryRunner');
    if (has(target, 'getConnection')) this.source(target, 'getConnection');
    else if (has(target, 'connect') && 'totalCount' in target) this.source(target, 'connect');
    if (!has(target, 'query'))
      invalidOption('databases', 'a list of TypeORM data sources, or pools or connections of pg or mysql2', [
        target,
      ]);
    this.connection(target);
  }

  /** Watches a method that writes somewhere. */
  method(target: object, name: string): void {
    if (!has(target, name))
      invalidOption('writes', `a list of [object, names of its methods]`, [target, name]);
    const what = `${target.constructor?.name || 'Object'}.${name}`;
    this.replace(target, name, (original) => {
      const hook: Call = (...args) => {
        const scope: Scope = { fenced: new Set() };
        const run = (): unknown => this.methods.run(scope, () => original(...args));
        return this.observed({ what, at: callerOf(hook) }, run, (call, isLate, observer) =>
          observer.wrote(call, isLate, scope.fenced),
        );
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
        if (typeof connection === 'object' && connection !== null) this.connection(connection);
        return connection;
      };
      const made = original(...args);
      return made instanceof Promise ? made.then(watched) : watched(made);
    });
  }

  private connection(target: object): void {
    if (this.connections.has(target)) return;
    this.connections.set(target, {});
    // A runner of TypeORM sends the statements of its transactions itself.
    const isRunner = 'isTransactionActive' in target;
    for (const name of ['query', ...(isRunner ? [] : ['execute', ...Object.keys(CONTROL_METHODS)])]) {
      if (!has(target, name)) continue;
      this.replace(target, name, (original) => {
        const hook: Call = (...args) => {
          const sql = CONTROL_METHODS[name as keyof typeof CONTROL_METHODS] ?? sqlOf(args);
          if (sql === undefined) return original(...args);
          return this.statement(target, sql, callerOf(hook), () => original(...args));
        };
        return hook;
      });
    }
  }

  private statement(target: object, sql: string, at: string | undefined, run: () => unknown): unknown {
    const state = this.connections.get(target)!;
    const fence = this.fencing.getStore();
    // The row of a fence is no data that needs one.
    const kind = fence ? 'read' : kindOfStatement(sql);
    if (state.transaction) fence?.add(state.transaction);
    return this.observed({ what: oneLine(sql), at }, run, (call, isLate, observer) => {
      const { transaction } = state;
      if (kind === 'begin') state.transaction = { fenced: new Set(), writes: [] };
      else if (kind === 'write' && transaction) transaction.writes.push(call);
      else if (kind === 'write') observer.wrote(call, isLate, new Set());
      else if (kind !== 'read') state.transaction = undefined;
      if (kind === 'commit')
        for (const write of transaction?.writes ?? []) observer.wrote(write, isLate, transaction!.fenced);
    });
  }

  /** Runs a call between its two reports. */
  private observed(
    call: WatchedCall,
    run: () => unknown,
    done: (call: WatchedCall, isLate: boolean, observer: CallObserver) => void,
  ): unknown {
    const { observer } = this;
    if (!observer.isWatching) return run();
    const start = (): unknown => {
      const { isLate } = observer;
      const result = run();
      const succeeded = (value: unknown): unknown => {
        done(call, isLate, observer);
        return value;
      };
      return result instanceof Promise ? result.then(succeeded) : succeeded(result);
    };
    const delayed = observer.before(call);
    return delayed ? delayed.then(start) : start();
  }

  private replace(target: object, name: string, replacement: (original: Call) => Call): void {
    const own = Object.getOwnPropertyDescriptor(target, name);
    const method = (target as Members)[name] as Call;
    const value = replacement((...args) => method.apply(target, args as unknown[]));
    Object.defineProperty(target, name, { value, configurable: true, writable: true, enumerable: false });
    this.restores.push(() => {
      if (own) Object.defineProperty(target, name, own);
      else Reflect.deleteProperty(target, name);
    });
  }
}
