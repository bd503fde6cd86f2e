import { of, type Observable, type ObservableInput } from 'rxjs';
import { isArray } from '../../core/util/describe.js';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { Lease } from '../../core/lease/lease.js';
import type { LockSection } from '../../core/service/lock-manager.js';
import { isPromiseLike } from './held-iterable.js';
import { IterablePromise } from './iterable-promise.js';
import { lockedObservable } from './locked-observable.js';
import {
  isBusy,
  notRun,
  optionsNow,
  streamRefused,
  type CallLocked,
  type LockedMethodSpec,
} from './locked-method.js';
import { asStream, isAsyncIterable, isObservable, isStream } from './streams.js';

/** Wraps an async method: the lock is held until its promise settles, and then until a stream in it has been read. */
export const lockedPromise =
  (spec: LockedMethodSpec): CallLocked =>
  (self, args, inside) =>
    new Promise((resolve, reject) => {
      runLocked(spec, self, args, inside, { streams: resolve }).then(resolve, reject);
    });

/**
 * Wraps a method whose result can be awaited, iterated or subscribed to.
 *
 * @param isRead whether the result is known to be a stream; then only the reader gets a failure
 */
export const lockedIterable =
  (spec: LockedMethodSpec, isRead: boolean): CallLocked =>
  (self, args, inside) => {
    let skipped = false;
    let wasAwaited = false;
    let returned: unknown;
    const iterate = (value: unknown): AsyncIterator<unknown, unknown, unknown> => {
      if (isAsyncIterable(value)) return value[Symbol.asyncIterator]();
      if (skipped) return each([]);
      if (wasAwaited && isArray(value)) return each(value);
      throw notIterable(spec, value, wasAwaited);
    };
    const flatten = (value: unknown): ObservableInput<unknown> =>
      !isPromiseLike(returned) && (isObservable(value) || isAsyncIterable(value)) ? value : of(value);
    const observe = () => lockedObservable(spec)(self, args, inside) as Observable<unknown>;
    return IterablePromise.of({ iterate, flatten, observe }, isRead, (promise, streams) =>
      runLocked(spec, self, args, inside, {
        streams,
        promise,
        returns: (value) => void (returned = value),
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
  /** What the caller has, if the method may return an Observable. */
  readonly promise?: IterablePromise;
  /** The result goes on after the method has returned. */
  streams(result: unknown): void;
  /** The method has returned this, perhaps a promise. */
  returns?(returned: unknown): void;
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
  inside: Lease | undefined,
  listener: Listener,
): Promise<unknown> => {
  let started = false;
  let plain: unknown;
  const body: LockSection<void> = async () => {
    started = true;
    const returned = spec.original.apply(self, args);
    listener.returns?.(returned);
    const isQuery = listener.rowsOf && isPromiseLike(returned) && isAsyncIterable(returned);
    const result = await (isQuery ? listener.rowsOf!(returned) : returned);
    if (isObservable(returned) && !listener.promise?.isAwaited()) throw notRead(spec);
    if (spec.options.oncePerMs !== undefined && isStream(result)) throw streamRefused(spec.where);
    const stream = asStream(result, spec);
    if (!stream) return void (plain = result);
    // The caller gets the stream now; the lock is held until the stream has been read.
    listener.streams(stream.result);
    await stream.done;
  };
  try {
    const locks = spec.serviceOf(self);
    const keys = spec.keysOf(locks, args, self);
    const options = optionsNow(spec, self, args, inside);
    if (listener.promise) {
      await Promise.resolve();
      if (listener.promise.isObserved()) throw observed(spec);
    }
    // A mocked service may return no promise.
    await spec.run(locks, keys, options, body);
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

const notRead = ({ where, decorator }: LockedMethodSpec): LockConfigurationError =>
  new LockConfigurationError(
    `${where}: the compiler did not declare that it returns an Observable, and its caller did not read that at once. Import ` +
      `Observable as a value, not by "import type". With esbuild, tsx or Babel write ` +
      `@Reflect.metadata('design:returntype', Observable) below ${decorator}.`,
  );

/** Heard only by a caller that awaits it, too. */
const observed = ({ where }: LockedMethodSpec): LockConfigurationError =>
  new LockConfigurationError(
    `${where}: its caller subscribed to this result, or piped it, and each subscription has the values. To await it, ` +
      'call it again.',
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
