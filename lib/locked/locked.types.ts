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

/** The signatures of a decorator, by its options and by what a key may be. */
interface SectionDecorator<Options extends DecoratorOptions, Key> {
  // First, because a function is given its return type by the first signature that is tried: modes are words there.
  /** A function of the method's first parameters; what it returns is used verbatim. */
  <A extends unknown[], const O extends Options>(
    key: (...args: A) => Key,
    options?: O,
  ): LockedDecorator<A, O>;
  /** No key: it is `ClassName.methodName`. For jobs that must run once. */
  <const O extends Options>(options?: O): LockedDecorator<[], O>;
  /** `@Locked<Service['method']>(…)`: the method's parameters are inferred. */
  <M extends AnyFunction = never>(
    key: (...args: Parameters<M>) => Key,
    options: Options & SkipOptions,
  ): LockedDecorator<Parameters<M>, SkipOptions>;
  <M extends AnyFunction = never>(
    key: (...args: Parameters<M>) => Key,
    options?: Options,
  ): LockedDecorator<Parameters<M>, Record<never, never>>;
  // Last, because the compiler shows what is wrong with the last: mostly that is an option beside a template.
  /** A template, or (of `@Locked`) several that are taken all or none. */
  <const O extends Options>(key: Key, options?: O): LockedDecorator<[], O>;
}

interface SkipOptions {
  readonly onBusy: 'skip';
  readonly waitMs?: 0;
}

/** The signatures of `@Locked`. */
export type Locked = SectionDecorator<LockedOptions & Without<'permits'>, KeyResult>;

/** The signatures of `@Limited`. */
export type Limited = SectionDecorator<LimitedOptions & Without<'reentrant' | 'fair' | 'mode'>, string>;
