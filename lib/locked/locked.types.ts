import type { Observable } from 'rxjs';
import type { KeyWithMode, Without } from '../core/settings/acquire-options.js';
import type { DecoratorOptions, LimitedOptions, LockedOptions } from './locked.options.js';

/** One key, or several that are taken all or none, each of which may have a mode of its own. */
export type KeyResult = string | readonly (string | KeyWithMode)[];

// eslint-disable-next-line @typescript-eslint/no-explicit-any
type Any = any;
type AnyFunction = (...args: Any[]) => Any;

/** What a lockable method returns: something that ends later. */
export type Lockable = Promise<Any> | Observable<Any> | AsyncIterable<Any>;

/**
 * What a method that is not async may return: it gives a promise of that, which can be iterated like a generator. More
 * than a generator has (the `close()` of a cursor) is there only after an `await`.
 */
type Iterated<R> = keyof R extends keyof AsyncGenerator ? true : false;

/** What comes out of it in the end. */
type Settled<R> = R extends Observable<infer V> ? V : R extends AsyncIterable<infer V> ? V : Awaited<R>;

type IsAny<T> = 0 extends 1 & T ? true : false;

/** Streams can always be empty, so only a promise has to admit `undefined`. */
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

/** Whether it is given as it is declared. */
type IsKept<R> = IsAny<R> extends true ? true : R extends Promise<Any> | Observable<Any> ? true : Iterated<R>;
/** Skipping means not to wait; 0 says just that. */
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

/** A method decorator that only fits methods which can be locked in this way. */
export type LockedDecorator<A extends unknown[], O> = <M extends AnyFunction>(
  target: object,
  property: PropertyKey,
  descriptor: TypedPropertyDescriptor<M> & CheckResult<M, O> & CheckOptions<O> & CheckParameters<M, A>,
) => void;

/**
 * The signatures of a decorator after its first, by its options and by what a key may be. They have no documentation of
 * their own: editors show that of the first one then.
 */
interface SectionDecorator<Options extends DecoratorOptions, Key> {
  // No key: it is `ClassName.methodName`. For jobs that must run once.
  <const O extends Options>(options?: O & Options): LockedDecorator<[], O>;
  // `@Locked<Service['method']>(…)`: the method's parameters are inferred.
  <M extends AnyFunction = never>(
    key: (...args: Parameters<M>) => Key,
    options: Options & SkipOptions,
  ): LockedDecorator<Parameters<M>, SkipOptions>;
  <M extends AnyFunction = never>(
    key: (...args: Parameters<M>) => Key,
    options?: Options,
  ): LockedDecorator<Parameters<M>, Record<never, never>>;
  // A template, or (of `@Locked`) several that are taken all or none. Last, because the compiler shows what is wrong with the
  // last: mostly that is an option beside a template.
  <const O extends Options>(key: Key, options?: O & Options): LockedDecorator<[], O>;
}

interface SkipOptions {
  readonly onBusy: 'skip';
  readonly waitMs?: 0;
}

type OptionsOfLocked = LockedOptions & Without<'permits'>;
type OptionsOfLimited = LimitedOptions & Without<'reentrant' | 'mode'>;

/** The signatures of `@Locked`. */
export interface Locked extends SectionDecorator<OptionsOfLocked, KeyResult> {
  // First, because a function is given its return type by the first signature that is tried: modes are words there.
  /**
   * Runs a method of any provider or controller inside a lock: the key is rendered from the arguments, the lock is
   * taken, kept while the method runs, and released whatever happens. A locked method never runs without its lock.
   *
   * Keys: `'order:<<userId>>'` by parameter name, `'cart:<<cart.owner.id>>:<<1>>'` by path or index, several for all
   * or none, a function (used verbatim), `<<$request.user.id>>` on HTTP, `<<$name>>` from the module's `context`, or
   * none for `ClassName.methodName`. Mistakes in a key are `LockKeyError` when the class is loaded.
   *
   * Options and their defaults: `LockedOptions`; durations are whole ms. Mistakes in them are
   * `LockConfigurationError` when the class is loaded.
   *
   * At a call it throws `LockNotAcquiredError` (taken for longer than `waitMs`), `LockStoreError` (the store failed),
   * `LockKeyError` (an argument cannot be part of a key), `LockAbortedError` (client gone, app stopping), `LockLostError`
   * (over before the method began, inside a lock on the key that was lost, or after it with `onLost: 'throw'`),
   * `LockConfigurationError` (no lock service, an endless wait against the order). The method's own errors pass
   * untouched.
   *
   * @example
   * `@Locked('order:<<userId>>', { waitMs: 2_000 })`
   * async placeOrder(userId: string, items: Item[]): Promise<Order> { … }
   */
  <A extends unknown[], const O extends OptionsOfLocked>(
    key: (...args: A) => KeyResult,
    options?: O & OptionsOfLocked,
  ): LockedDecorator<A, O>;
}

/** The signatures of `@Limited`. */
export interface Limited extends SectionDecorator<OptionsOfLimited, string> {
  /**
   * Runs a method of any provider or controller with one of the key's permits, of which there are `permits`: so many
   * calls run at once, over all processes, and the others wait. A limited method never runs without its permit.
   *
   * Keys, `onBusy`, `service` and what it throws at a call are those of `@Locked`, but it takes one key, its lease has no
   * fencing token, and a call inside another of the same key takes a permit more. Where callers give different numbers,
   * the last one decides. Without `permits` the number that the store has for the key counts; with none there the call
   * fails with `LockStoreError`.
   *
   * @example
   * `@Limited('crm:<<tenant>>', { permits: 3 })`
   * async sync(tenant: string): Promise<void> { … }
   */
  <A extends unknown[], const O extends OptionsOfLimited>(
    key: (...args: A) => string,
    options?: O & OptionsOfLimited,
  ): LockedDecorator<A, O>;
}
