import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { Reading } from './reading.js';

type AnyFunction = (...args: unknown[]) => unknown;
type Methods = Record<PropertyKey, AnyFunction | undefined>;

export const isPromiseLike = (value: unknown): value is PromiseLike<unknown> =>
  typeof value === 'object' && value !== null && typeof (value as PromiseLike<unknown>).then === 'function';

/** A returned object and its current reading. A method may return the same object more than once. */
interface Held {
  reading: Reading;
  /** Number of its iterators' steps that are running. */
  stepping: number;
  /**
   * Reading that ended because a method of the object itself closed it. The object then reports its end in its own way.
   */
  closed?: Reading;
}

const held = new WeakMap<object, Held>();

const STEPS = ['next', 'return', 'throw'] as const;
/** Methods that close a cursor for good, whatever its iterators are doing. */
const ENDINGS = ['close', 'cancel', 'destroy', Symbol.asyncDispose] as const;

/** Prototype of all async iterators: each is its own iterator, and is disposable where Node supports that. */
const iteratorPrototype = Object.getPrototypeOf(
  Object.getPrototypeOf(Object.getPrototypeOf((async function* () {})())),
) as object;

/**
 * Keeps an async iterable locked until all iterators that were taken from it have ended, or the iterable is closed.
 * Replaces methods on the object itself: a wrapper would hide the other methods, and break methods that use private
 * fields.
 */
export const holdIterable = (source: object, where: string): Promise<void> => {
  const known = held.get(source);
  if (known) {
    if (known.reading.over) known.reading = new Reading(where);
    return known.reading.done;
  }
  refuseFrozen(source, where);
  const state: Held = { reading: new Reading(where), stepping: 0 };
  held.set(source, state);
  replaceSteps(state, source, source);
  replaceIterator(state, source);
  replaceEndings(state, source);
  return state.reading.done;
};

export const refuseFrozen = (source: object, where: string): void => {
  const isFixed = (name: PropertyKey): boolean =>
    Object.getOwnPropertyDescriptor(source, name)?.configurable === false;
  if (Object.isExtensible(source) && ![Symbol.asyncIterator, ...STEPS, ...ENDINGS].some(isFixed)) return;
  throw new LockConfigurationError(
    `${where}: the async iterable that it returned is frozen, so its lock cannot follow who reads it. Return one ` +
      `that is not, or make the method an async generator that reads it: async *method() { yield* iterable; }`,
  );
};

export const replace = (target: object, name: PropertyKey, method: AnyFunction): void => {
  Object.defineProperty(target, name, { value: method, writable: true, configurable: true });
};

export const methodOf = (target: object, name: PropertyKey): AnyFunction | undefined => {
  const method = (target as Methods)[name];
  return typeof method === 'function' ? method : undefined;
};

const replaceIterator = (state: Held, source: object): void => {
  const original = methodOf(source, Symbol.asyncIterator)!;
  let isItsOwn = false;
  replace(source, Symbol.asyncIterator, () => {
    const { reading } = state;
    // An object that is its own iterator reports its end by itself.
    if (reading.over && !isItsOwn) throw reading.late();
    const iterator = iteratorOf(reading, () => original.call(source));
    isItsOwn = iterator === source;
    if (isItsOwn) return source;
    const steps = Object.create(iteratorPrototype) as object;
    replaceSteps(state, iterator, steps);
    return steps;
  });
};

/** Returns the iterator of the source. Ends the reading if the source returns no iterator. */
const iteratorOf = (reading: Reading, make: () => unknown): object => {
  try {
    const iterator = reading.inSection(make);
    if (typeof iterator === 'object' && iterator !== null) return iterator;
    throw new TypeError('the result of Symbol.asyncIterator is no object');
  } catch (error) {
    reading.finish();
    throw error;
  }
};

const replaceEndings = (state: Held, source: object): void => {
  for (const name of ENDINGS) {
    const original = methodOf(source, name);
    if (!original) continue;
    replace(source, name, (...args) => {
      const { reading } = state;
      if (reading.over) return original.apply(source, args);
      return afterwards(
        () => reading.inSection(() => original.apply(source, args)),
        () => {
          state.closed = reading;
          reading.finish();
        },
      );
    });
  }
};

/** Puts the steps of an iterator into `target`. Each step runs in the section, and the last one ends the reading. */
const replaceSteps = (state: Held, iterator: object, target: object): void => {
  const isItsOwn = target === iterator;
  /** Reading in which it takes part since its first step. */
  let during: Reading | undefined;
  /** Its answer after its end. */
  let ended: { readonly result: unknown } | undefined;

  const end = (reading: Reading, result: unknown): void => {
    if (during !== reading || ended) return;
    ended = { result };
    reading.leave();
  };

  for (const name of STEPS) {
    const original = methodOf(iterator, name);
    // Without a return() it would not notice a `break`.
    if (!original && name !== 'return') continue;
    const step = (...args: unknown[]): unknown =>
      original ? original.apply(iterator, args) : Promise.resolve({ done: true, value: args[0] });
    replace(target, name, (...args) => {
      const { reading } = state;
      // The object's iterator reads it through its own next(). They are one reader, which ends when the iterator ends.
      const isPart = isItsOwn && state.stepping > 0;
      if (isPart || reading === state.closed) return step(...args);
      if (during !== reading) {
        const late = reading.begin();
        // A reader that comes too late may still close the iterator.
        if (late) return name === 'next' ? Promise.reject(late) : step(...args);
        [during, ended] = [reading, undefined];
      }
      if (ended) return name === 'next' ? Promise.resolve(ended.result) : step(...args);
      if (!isItsOwn) state.stepping++;
      return afterwards(
        () => reading.inSection(() => step(...args)),
        (outcome) => {
          if (!isItsOwn) state.stepping--;
          if (!outcome || isLast(name, outcome.value)) end(reading, resultAfter(outcome?.value));
        },
      );
    });
  }
};

/** Calls `then` with the outcome of `call`, or without one if it failed, before the caller gets the result. */
const afterwards = (call: () => unknown, then: (outcome?: { value: unknown }) => void): unknown => {
  let result: unknown;
  try {
    result = call();
  } catch (error) {
    then();
    throw error;
  }
  if (!isPromiseLike(result)) {
    then({ value: result });
    return result;
  }
  return result.then(
    (value) => {
      then({ value });
      return value;
    },
    (error: unknown) => {
      then();
      throw error;
    },
  );
};

/**
 * Returns true for the last step. A driver's cursor has a `next()` that returns a row, which may have a field `done`,
 * and returns null at the end.
 */
const isLast = (name: (typeof STEPS)[number], value: unknown): boolean => {
  if (name !== 'next') return (value as { done?: unknown } | undefined)?.done !== false;
  if (value === null) return true;
  const { done } = (value ?? {}) as { done?: unknown };
  return (
    done === true && Object.keys(value as object).every((field) => field === 'done' || field === 'value')
  );
};

const resultAfter = (last: unknown): unknown => (last === null ? null : { done: true, value: undefined });
