import type { Observable } from 'rxjs';
import type { KeyWithMode, Without } from '../../core/settings/acquire-options.js';
import type { DecoratorOptions, LimitedOptions, LockedOptions, VaryingOptions } from './locked.options.js';

/** One key, or several that are acquired all or none. Each key may have its own mode. */
export type KeyResult = string | readonly (string | KeyWithMode)[];

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Any = any;
type AnyFunction = (...args: Any[]) => Any;

/** Return type of a lockable method: something that ends later. */
export type Lockable = Promise<Any> | Observable<Any> | AsyncIterable<Any>;

/**
 * Whether a method that is not async may return the type. The wrapper returns a promise that can be iterated like a
 * generator. Further members (the `close()` of a cursor) are available only after `await`.
 */
type Iterated<R> = keyof R extends keyof AsyncGenerator ? true : false;

/** Type of the final result, or of the items of a stream. */
type Settled<R> = R extends Observable<infer V> ? V : R extends AsyncIterable<infer V> ? V : Awaited<R>;

type IsAny<T> = 0 extends 1 & T ? true : false;

/** Whether `undefined` is allowed as the result. Streams can always be empty, so only a promise has to allow it. */
type AllowsSkip<R> =
  R extends Promise<infer V>
    ? IsAny<V> extends true
      ? true
      : undefined extends V
        ? true
        : void extends V
          ? true
          : false
    : true;

/** Whether the wrapper returns the type as it is declared. */
type IsKept<R> = IsAny<R> extends true ? true : R extends Promise<Any> | Observable<Any> ? true : Iterated<R>;
/** `onBusy: 'skip'` does not wait, so only `waitMs: 0` may be given with it. */
type WaitsToSkip<O> = O extends { readonly onBusy: 'skip'; readonly waitMs: infer W }
  ? W extends 0 | undefined
    ? false
    : true
  : false;

type CheckOptions<O> =
  WaitsToSkip<O> extends true
    ? { 'onBusy: "skip" does not wait, so it cannot have a waitMs': never }
    : unknown;

type CheckResult<M extends AnyFunction, O> =
  ReturnType<M> extends Lockable
    ? IsKept<ReturnType<M>> extends false
      ? {
          'a method that is not async can be iterated, but has no further methods: return a Promise of it': ReturnType<M>;
        }
      : O extends { readonly onBusy: 'skip' }
        ? AllowsSkip<ReturnType<M>> extends true
          ? unknown
          : {
              'onBusy: "skip" makes the method return undefined, which its type does not allow': Settled<
                ReturnType<M>
              >;
            }
        : unknown
    : { 'a locked method must return a Promise, an Observable or an AsyncIterable': ReturnType<M> };

type CheckParameters<M extends AnyFunction, A extends unknown[]> =
  Parameters<M> extends [...A, ...Any[]]
    ? unknown
    : { 'the key function’s parameters do not match the method’s': A };

/** Method decorator that compiles only on methods that can be locked this way. `T` is the `this` of the key function. */
export type LockedDecorator<A extends unknown[], O, T = unknown> = <M extends AnyFunction>(
  target: object & T,
  property: PropertyKey,
  descriptor: TypedPropertyDescriptor<M> & CheckResult<M, O> & CheckOptions<O> & CheckParameters<M, A>,
) => void;

/**
 * Further signatures of a decorator, by its options and the type of a key. They have no documentation: editors then
 * show that of the first signature.
 */
interface SectionDecorator<Options extends DecoratorOptions, Key> {
  // `@Locked<Service['method']>(…)`: the method's parameters are inferred. The class is not, so there is no `this`.
  <M extends AnyFunction = never>(
    key: (this: unknown, ...args: Parameters<M>) => Key,
    options: Options & SkipOptions,
  ): LockedDecorator<Parameters<M>, SkipOptions>;
  <M extends AnyFunction = never>(
    key: (this: unknown, ...args: Parameters<M>) => Key,
    options?: Options,
  ): LockedDecorator<Parameters<M>, Record<never, never>>;
  // A template, or with `@Locked` a list of templates that are acquired all or none. It is the last signature because
  // the compiler reports the error of the last one. Mostly that is a wrong option beside a template.
  <const O extends Options, T = unknown, A extends unknown[] = []>(
    key: Key,
    options?: O & Options,
    vary?: VaryOptions<T, A>,
  ): LockedDecorator<A, O, T>;
}

/** Returns further options of one call. `self` is the instance. */
type VaryOptions<T, A extends unknown[]> = (self: T, ...args: A) => VaryingOptions | undefined;

interface SkipOptions {
  readonly onBusy: 'skip';
  readonly waitMs?: 0;
}

type OptionsOfLocked = LockedOptions & Without<'permits' | 'inside'>;
type OptionsOfLimited = LimitedOptions & Without<'inside' | 'mode'>;

export interface LockedSignature extends SectionDecorator<OptionsOfLocked, KeyResult> {
  // It is the first signature because a function gets its return type from the first one tried. There, modes are
  // literals.
  /**
   * Runs a method of any provider or controller inside a lock. The key is rendered from the arguments. The lock is
   * acquired, renewed while the method runs, and released also when the method throws. A locked method never runs
   * without its lock.
   *
   * Keys:
   * - `'order:<<userId>>'`: a parameter by name
   * - `'cart:<<cart.owner.id>>:<<1>>'`: a path, or a parameter by index
   * - `'report:<<tenant|all>>'`: with a default for undefined, null and the empty string
   * - `['a:<<x>>', 'b:<<y>>']`: several keys, all or none
   * - a function, whose result is used verbatim. Its `this` is the instance, which a method of a base class needs:
   *   `function (this: Job) { … }`
   * - `<<req.user.id>>` for `@Req() req`: the HTTP request; `<<$name>>`: the module's `context`
   *
   * A mistake in a key throws `LockKeyError` when the class is loaded, a wrong option throws `LockConfigurationError`.
   * Options and defaults: `LockedOptions`. Durations are whole ms. A function returns options that vary, from the instance
   * and the arguments: `(self, userId) => ({ waitMs: self.config.waitMs })`. Each object that it returns is checked once. The
   * errors below are those of a call; errors of the
   * method itself are not changed.
   *
   * Inside a section of the same key a call is an ordinary caller, unless its caller makes it a nested call:
   * `lease.call(this, this.method, …)`.
   *
   * @throws LockNotAcquiredError when the lock is still taken after `waitMs`, and when the call cannot nest
   * @throws LockStoreError when the store fails
   * @throws LockKeyError when an argument cannot be part of a key
   * @throws LockAbortedError when the client of an HTTP handler disconnects, or the app stops, during the wait
   * @throws LockLostError when the lock is lost before the method begins, when the call is nested in a lost lock on the
   * same key, and with `onLost: 'throw'` after the method
   * @throws LockConfigurationError without a lock service
   *
   * @example
   * `@Locked('order:<<userId>>', { waitMs: 2_000 })`
   * async placeOrder(userId: string, items: Item[]): Promise<Order> { … }
   */
  <T, A extends unknown[], const O extends OptionsOfLocked>(
    key: (this: T, ...args: A) => KeyResult,
    options?: O & OptionsOfLocked,
    vary?: VaryOptions<T, A>,
  ): LockedDecorator<A, O, T>;
}

export interface LimitedSignature extends SectionDecorator<OptionsOfLimited, string> {
  /**
   * Runs a method of any provider or controller with one of the key's permits. `permits` is the number of calls that
   * run at once, over all processes; further calls wait. A limited method never runs without its permit.
   *
   * Keys, `onBusy`, `service` and errors are those of `@Locked`, with three differences:
   * - It takes one key.
   * - Its lease has no fencing token.
   * - A call inside a section of the same key takes another permit. `lease.call` refuses the method.
   *
   * If callers give different numbers, the last one applies. Without `permits` the number in the store applies.
   *
   * @throws LockStoreError also when neither the decorator nor the store has a number of permits
   *
   * @example
   * `@Limited('crm:<<tenant>>', { permits: 3 })`
   * async sync(tenant: string): Promise<void> { … }
   */
  <T, A extends unknown[], const O extends OptionsOfLimited>(
    key: (this: T, ...args: A) => string,
    options?: O & OptionsOfLimited,
    vary?: VaryOptions<T, A>,
  ): LockedDecorator<A, O, T>;
}
