import { defer, Observable, takeUntil, throwError } from 'rxjs';
import { isArray } from '../core/errors/describe.js';
import { isTaken, LockConfigurationError, type LockNotAcquiredError } from '../core/errors/lock.errors.js';
import type { LockSection } from '../core/lock-manager.js';
import { handlingTaken } from '../core/settings/lock-call.js';
import type { KeyOfCall } from '../core/settings/acquire-options.js';
import type { LockService } from '../lock.service.js';
import { openSection } from './open-section.js';
import { IterablePromise } from './iterable-promise.js';
import { asStream, isAsyncIterable, isStream, isPromiseLike, stepsIn } from './streams.js';
import type { LimitedOptions, LockedOptions } from './locked.options.js';
import type { DecoratorName } from './check-use.js';

type AnyMethod = (this: unknown, ...args: unknown[]) => unknown;

/** Options of both decorators, without those that the decorator handles itself. */
export type CallOptions = Omit<LockedOptions & LimitedOptions, 'onBusy' | 'service'>;

/** Runs a section under a lock (`@Locked`) or a permit (`@Limited`). */
export type RunSection = (
  locks: LockService,
  keys: readonly KeyOfCall[],
  options: CallOptions,
  section: LockSection<void>,
) => Promise<void>;

/** What the wrapper of a locked method needs. */
export interface LockedMethodSpec {
  readonly decorator: DecoratorName;
  readonly run: RunSection;
  readonly original: AnyMethod;
  /** `Class.method`, for messages. */
  readonly where: string;
  readonly options: LockedOptions & LimitedOptions;
  readonly callOptions: CallOptions;
  keysOf(locks: LockService, args: unknown[], self: unknown): readonly KeyOfCall[];
  /** Returns the service of an instance; throws without one. */
  serviceOf(instance: unknown): LockService;
  /** Returns the signal that ends the wait when the client disconnects. */
  callSignal(): AbortSignal | undefined;
  /** Registers an Observable that the client is reading; returns a function to call at its end. */
  streamBegins(): (() => void) | undefined;
}

/**
 * How a method returns its result, which decides how long the lock is held. `iterable`: the method is not async, and is
 * not declared to return a promise. `unknown`: the compiler did not emit its return type.
 */
export type ResultStyle = 'promise' | 'observable' | 'generator' | 'iterable' | 'unknown';

/** Wraps a method so that it runs inside its lock, or not at all. */
export const wrapMethod = (spec: LockedMethodSpec, style: ResultStyle): AnyMethod => {
  if (style === 'observable') return lockedObservable(spec);
  if (style === 'generator') return lockedGenerator(spec);
  return style === 'promise' ? lockedPromise(spec) : lockedIterable(spec, style === 'iterable');
};

/**
 * Returns the options of all calls. `onBusy: 'skip'` does not wait, so only `waitMs: 0` may be given with it.
 *
 * @param defaultLabel label of a method without the option
 */
export const callOptions = (
  { onBusy, service: _service, ...options }: LockedOptions & LimitedOptions,
  defaultLabel: string,
): CallOptions => {
  const { label = defaultLabel, waitMs } = options;
  const skips = onBusy === 'skip' && waitMs === undefined;
  return Object.freeze({ ...options, label, ...(skips && { waitMs: 0 }) });
};

/** Marks the options of a method with `onBusy`, which handles a taken key by itself. */
const asked = ({ options: { onBusy } }: LockedMethodSpec, call: CallOptions): CallOptions =>
  handlingTaken(call, onBusy !== undefined);

/** Returns the options of one call. */
const optionsNow = (spec: LockedMethodSpec): CallOptions => {
  const { callOptions: options } = spec;
  const signal = options.signal ?? spec.callSignal();
  return asked(spec, signal ? { ...options, signal } : options);
};

/** Returns true when the method's own lock is taken, false when the error comes from a lock inside its body. */
const isBusy = (error: unknown, started: boolean): error is LockNotAcquiredError =>
  !started && isTaken(error);

const lockedPromise = (spec: LockedMethodSpec): AnyMethod =>
  function (this: unknown, ...args: unknown[]): Promise<unknown> {
    return new Promise((resolve, reject) => {
      runLocked(spec, this, args, { streams: resolve }).then(resolve, reject);
    });
  };

/** @param isRead whether the result is known to be iterated; then only the reader gets a failure */
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

/** Callbacks of a call, before its promise settles. */
interface Listener {
  /** The result goes on after the method has returned. */
  streams(result: unknown): void;
  /** The method does not run, and its result is undefined. */
  skips?(): void;
  /**
   * Decides about a query: a result that can be awaited or iterated, and that starts only then. It is awaited if this
   * is absent.
   */
  rowsOf?(query: AsyncIterable<unknown>): unknown;
}

/**
 * Runs the method under its lock. V8 follows an error's stack to the caller only through `await`, and through the
 * promise's own resolve and reject functions.
 */
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
    if (spec.options.oncePerMs !== undefined && isStream(result)) throw streamRefused(spec.where);
    const stream = asStream(result, spec);
    if (!stream) return void (plain = result);
    // The caller gets the stream now; the lock is held until the stream has been read.
    listener.streams(stream.result);
    await stream.done;
  };
  try {
    const locks = spec.serviceOf(self);
    // A mocked service may return no promise.
    await spec.run(locks, spec.keysOf(locks, args, self), optionsNow(spec), body);
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
      keys = spec.keysOf(locks, args, this);
    } catch (error) {
      return throwError(() => error);
    }
    return new Observable((subscriber) => {
      const gone = new AbortController();
      const options = optionsNow(spec);
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
          // A source that emits all its values inside `subscribe` has to learn at once that its subscriber has left.
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
      // A mocked service may return no promise.
      Promise.resolve(spec.run(locks, keys, asked(spec, { ...options, signal }), body))
        .then(() => {
          if (!started) throw notRun(spec);
          if (failure) throw failure.error;
          subscriber.complete();
        })
        .catch((error: unknown) => {
          if (!onBusy || !isBusy(error, started)) return subscriber.error(error);
          if (onBusy === 'skip') return subscriber.complete();
          // Deferred, so that an error that it throws becomes an error of the stream.
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
    const keys = spec.keysOf(locks, args, this);
    let section;
    try {
      section = await openSection(
        (body) => spec.run(locks, keys, optionsNow(spec), body),
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
      // An error of the body takes precedence over an error of the lock's end.
      await (done ? opened.end() : opened.end().catch(() => undefined));
    }
  };

/**
 * Returns the error for a lock that was granted without running the body: only a mock does that, and returning
 * undefined would hide it.
 */
const notRun = (spec: LockedMethodSpec): LockConfigurationError =>
  new LockConfigurationError(
    `${spec.where} is ${spec.decorator}, but its LockService did not run it: it is a mock. In tests import ` +
      `RedisLockTestingModule from 'nest-redis-lock/testing'.`,
  );

/** Returns the error for a stream from a method with `oncePerMs`: its reader may leave at any time. */
export const streamRefused = (where: string): LockConfigurationError =>
  new LockConfigurationError(
    `${where}: a method with oncePerMs must return a Promise, because a stream does not tell whether the work succeeded. ` +
      'Make it async, and let it return its result.',
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

/** Describes a value without its content, which is the user's data. */
const kindOf = (value: unknown): string => {
  if (value === undefined || value === null) return String(value);
  return typeof value === 'object' ? 'an object without Symbol.asyncIterator' : `a ${typeof value}`;
};
