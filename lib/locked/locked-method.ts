import { defer, Observable, takeUntil, throwError } from 'rxjs';
import { isArray } from '../core/errors/describe.js';
import { isTaken, LockConfigurationError, type LockNotAcquiredError } from '../core/errors/lock.errors.js';
import type { LockSection } from '../core/lock-manager.js';
import type { KeyOfCall } from '../core/settings/acquire-options.js';
import type { LockService } from '../lock.service.js';
import { openSection } from './open-section.js';
import { IterablePromise } from './iterable-promise.js';
import { asStream, isAsyncIterable, isPromiseLike, stepsIn } from './streams.js';
import type { LimitedOptions, LockedOptions } from './locked.options.js';
import type { DecoratorName } from './check-use.js';

type AnyMethod = (this: unknown, ...args: unknown[]) => unknown;

/** The options of whichever decorator, without what the decorator itself does with them. */
export type CallOptions = Omit<LockedOptions & LimitedOptions, 'onBusy' | 'service'>;

/** Runs a section under what the decorator promises: a lock of `@Locked`, a permit of `@Limited`. */
export type RunSection = (
  locks: LockService,
  keys: readonly KeyOfCall[],
  options: CallOptions,
  section: LockSection<void>,
) => Promise<void>;

/** What the wrapper of a locked method needs to know. */
export interface LockedMethodSpec {
  readonly decorator: DecoratorName;
  readonly run: RunSection;
  readonly original: AnyMethod;
  /** `Class.method`, for messages. */
  readonly where: string;
  readonly options: LockedOptions & LimitedOptions;
  keysOf(locks: LockService, args: unknown[]): readonly KeyOfCall[];
  /** The service of an instance; throws when there is none. */
  serviceOf(instance: unknown): LockService;
  /** Ends the wait when the client is gone. */
  callSignal(): AbortSignal | undefined;
  /** Says that an Observable goes on for the client; returns what says that it has ended. */
  streamBegins(): (() => void) | undefined;
}

/**
 * How a method gives its result decides how long the lock is held. An `iterable` is a method that is not async and
 * does not declare a promise; `unknown` is one whose declaration has not come through the compiler.
 */
export type ResultStyle = 'promise' | 'observable' | 'generator' | 'iterable' | 'unknown';

/** Wraps a method so that it runs inside its lock, or not at all. */
export const wrapMethod = (spec: LockedMethodSpec, style: ResultStyle): AnyMethod => {
  if (style === 'observable') return lockedObservable(spec);
  if (style === 'generator') return lockedGenerator(spec);
  return style === 'promise' ? lockedPromise(spec) : lockedIterable(spec, style === 'iterable');
};

/** `skip` asks once: no wait time but 0 can be given with it. */
const callOptions = (spec: LockedMethodSpec): CallOptions => {
  const { onBusy, service: _service, ...options } = spec.options;
  const signal = options.signal ?? spec.callSignal();
  return onBusy === 'skip' && options.waitMs === undefined
    ? { ...options, signal, waitMs: 0 }
    : { ...options, signal };
};

/** Whether an error says that this method's own lock is taken, rather than one that its body wanted. */
const isBusy = (error: unknown, started: boolean): error is LockNotAcquiredError =>
  !started && isTaken(error);

const lockedPromise = (spec: LockedMethodSpec): AnyMethod =>
  function (this: unknown, ...args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      runLocked(spec, this, args, { streams: resolve }).then(resolve, reject);
    });
  };

/** @param isRead whether it is known to be for iterating, so that a failure is for the reader alone */
const lockedIterable = (spec: LockedMethodSpec, isRead: boolean): AnyMethod =>
  function (this: unknown, ...args: unknown[]): Promise<unknown> {
    let skipped = false;
    let wasAwaited = false;
    const iterate = (value: unknown): AsyncIterator<unknown, unknown, unknown> => {
      if (isAsyncIterable(value)) return value[Symbol.asyncIterator]();
      if (skipped) return each([]);
      if (wasAwaited && isArray(value)) return each(value);
      throw notIterable(spec, value, wasAwaited);
    };
    return IterablePromise.of(iterate, isRead, (promise, streams) =>
      runLocked(spec, this, args, {
        streams,
        skips: () => void (skipped = true),
        rowsOf: (query) => {
          if (promise.isRead) return { [Symbol.asyncIterator]: () => query[Symbol.asyncIterator]() };
          wasAwaited = true;
          return query;
        },
      }),
    );
  };

async function* each(values: readonly unknown[]): AsyncGenerator<unknown, undefined, unknown> {
  yield* values;
}

/** What a call is told before its promise settles. */
interface Listener {
  /** The result goes on after the method returned. */
  streams(result: unknown): void;
  /** The method does not run, and its result is undefined. */
  skips?(): void;
  /** Decides about a result that can be awaited or iterated, and does nothing before: a query. Awaited if absent. */
  rowsOf?(query: AsyncIterable<unknown>): unknown;
}

/** V8 follows the stack of an error to the caller only where promises are awaited, or settled by their own functions. */
const runLocked = async (
  spec: LockedMethodSpec,
  self: unknown,
  args: unknown[],
  listener: Listener,
): Promise<unknown> => {
  let started = false;
  let plain: unknown;
  const body: LockSection<void> = async () => {
    started = true;
    const returned = spec.original.apply(self, args);
    const isQuery = listener.rowsOf && isPromiseLike(returned) && isAsyncIterable(returned);
    const result = await (isQuery ? listener.rowsOf!(returned) : returned);
    const stream = asStream(result, spec);
    if (!stream) return void (plain = result);
    // The caller gets what it asked for now; the lock stays until that has been read.
    listener.streams(stream.result);
    await stream.done;
  };
  try {
    const locks = spec.serviceOf(self);
    // A mocked service may give no promise.
    await spec.run(locks, spec.keysOf(locks, args), callOptions(spec), body);
  } catch (error) {
    const { onBusy } = spec.options;
    if (!onBusy || !isBusy(error, started)) throw error;
    if (onBusy !== 'skip') return onBusy.apply(self as never, [error, ...args] as never);
    listener.skips?.();
    return undefined;
  }
  if (!started) throw notRun(spec);
  return plain;
};

const lockedObservable = (spec: LockedMethodSpec): AnyMethod =>
  function (this: unknown, ...args: unknown[]): Observable<unknown> {
    const { onBusy } = spec.options;
    let locks: LockService;
    let keys: readonly KeyOfCall[];
    try {
      locks = spec.serviceOf(this);
      keys = spec.keysOf(locks, args);
    } catch (error) {
      return throwError(() => error);
    }
    return new Observable((subscriber) => {
      const gone = new AbortController();
      const options = callOptions(spec);
      const signal = options.signal ? AbortSignal.any([options.signal, gone.signal]) : gone.signal;
      let started = false;
      const body: LockSection<void> = () =>
        new Promise<void>((done) => {
          started = true;
          const streamEnds = spec.streamBegins();
          if (streamEnds) subscriber.add(streamEnds);
          // Ends the section when the source completes, fails, or is unsubscribed from.
          subscriber.add(done);
          if (subscriber.closed) return;
          const source = spec.original.apply(this, args) as Observable<unknown>;
          // A source that gives all it has within `subscribe` has to hear at once that its subscriber has gone.
          const unsubscribed = new Observable<void>((stop) => subscriber.add(() => stop.next()));
          new Observable((reader) => source.subscribe(reader))
            .pipe(takeUntil(unsubscribed))
            .subscribe({ next: (value) => subscriber.next(value), error: fail, complete: done });
          function fail(error: unknown): void {
            failure = { error };
            done();
          }
        });
      let failure: { error: unknown } | undefined;
      // A mocked service may give no promise.
      Promise.resolve(spec.run(locks, keys, { ...options, signal }, body))
        .then(() => {
          if (!started) throw notRun(spec);
          if (failure) throw failure.error;
          subscriber.complete();
        })
        .catch((error: unknown) => {
          if (!onBusy || !isBusy(error, started)) return subscriber.error(error);
          if (onBusy === 'skip') return subscriber.complete();
          // Deferred, so that what it throws becomes an error of the stream.
          const fallback = defer(
            () => onBusy.apply(this as never, [error, ...args] as never) as Observable<unknown>,
          );
          subscriber.add(fallback.subscribe(subscriber));
        });
      return () => gone.abort();
    });
  };

const lockedGenerator = (spec: LockedMethodSpec): AnyMethod =>
  async function* (this: unknown, ...args: unknown[]): AsyncGenerator<unknown, unknown, unknown> {
    const { onBusy } = spec.options;
    const locks = spec.serviceOf(this);
    const keys = spec.keysOf(locks, args);
    let section;
    try {
      section = await openSection(
        (body) => spec.run(locks, keys, callOptions(spec), body),
        () => notRun(spec),
      );
    } catch (error) {
      if (!onBusy || !isBusy(error, false)) throw error;
      if (onBusy === 'skip') return undefined;
      return yield* onBusy.apply(this as never, [error, ...args] as never) as AsyncGenerator<
        unknown,
        unknown,
        unknown
      >;
    }
    const opened = section;
    let done = false;
    try {
      const source = opened.inSection(() => spec.original.apply(this, args)) as AsyncGenerator<
        unknown,
        unknown,
        unknown
      >;
      const result = yield* stepsIn((fn) => opened.inSection(fn), source);
      done = true;
      return result;
    } finally {
      // What the body threw must not be replaced by what the end of the lock has to say.
      await (done ? opened.end() : opened.end().catch(() => undefined));
    }
  };

/** A lock that was granted without running the body can only be a mock; a silent undefined would hide that. */
const notRun = (spec: LockedMethodSpec): LockConfigurationError =>
  new LockConfigurationError(
    `${spec.where} is ${spec.decorator}, but its LockService did not run it: it is a mock. In tests import ` +
      `RedisLockTestingModule from 'nest-redis-lock/testing'.`,
  );

const notIterable = (spec: LockedMethodSpec, value: unknown, wasAwaited: boolean): LockConfigurationError => {
  const method = spec.where.slice(spec.where.indexOf('.') + 1);
  return new LockConfigurationError(
    wasAwaited
      ? `${spec.where}: what it returned can be awaited or iterated. Nothing iterated it when the lock was acquired, so it was ` +
          `awaited, and gave ${kindOf(value)}. Iterate the call itself: for await (const row of service.${method}(…)).`
      : `${spec.where}: what it returned cannot be iterated with "for await", because it is ${kindOf(value)}. Await it.`,
  );
};

/** Not the value itself: it is the user's data. */
const kindOf = (value: unknown): string => {
  if (value === undefined || value === null) return String(value);
  return typeof value === 'object' ? 'an object without Symbol.asyncIterator' : `a ${typeof value}`;
};
