import { Observable } from 'rxjs';
import { holdIterable, isPromiseLike } from './held-iterable.js';
import { holdNodeStream, type NodeStream } from './held-node-stream.js';
import { holdWebStream, isWebStream } from './held-web-stream.js';
import { Reading } from './reading.js';

interface FileLike {
  getStream(): NodeStream;
}

const has = (value: unknown, ...methods: PropertyKey[]): boolean =>
  typeof value === 'object' &&
  value !== null &&
  methods.every((name) => typeof (value as Record<PropertyKey, unknown>)[name] === 'function');

export const isAsyncIterable = (value: unknown): value is AsyncIterable<unknown, unknown, unknown> =>
  has(value, Symbol.asyncIterator);

/** Returns true by shape: a second copy of rxjs has another Observable class. A call of a locked method is a promise. */
export const isObservable = (value: unknown): value is Observable<unknown> =>
  has(value, 'subscribe', 'pipe') && !isPromiseLike(value);

const isFile = (value: unknown): value is FileLike => has(value, 'getStream', 'getHeaders');

const isNodeStream = (value: unknown): value is NodeStream => has(value, 'once', 'pipe', 'destroy');

/** Returns whether a result goes on after the method has returned. */
export const isStream = (result: unknown): boolean =>
  [isFile, isNodeStream, isObservable, isWebStream, isAsyncIterable].some((is) => is(result));

/** The call that returned a stream. */
interface Call {
  /** `Class.method`, for messages. */
  readonly where: string;
  streamBegins(): (() => void) | undefined;
}

/**
 * Returns a result that goes on after the method has returned, with a promise of its end; undefined for a plain result.
 * Work inside it runs in the async context of the call, so it is part of the locked section.
 */
export const asStream = (
  result: unknown,
  call: Call,
): { result: unknown; done: Promise<void> } | undefined => {
  const { where } = call;
  if (isFile(result)) return { result, done: holdNodeStream(result.getStream(), where) };
  if (isNodeStream(result)) return { result, done: holdNodeStream(result, where) };
  if (isObservable(result)) return heldObservable(result, call);
  if (isWebStream(result)) return { result, done: holdWebStream(result, where) };
  if (isAsyncIterable(result)) return { result, done: holdIterable(result, where) };
  return undefined;
};

const heldObservable = (
  source: Observable<unknown>,
  call: Call,
): { result: unknown; done: Promise<void> } => {
  const reading = new Reading(call.where);
  const result = new Observable((subscriber) => {
    const late = reading.begin();
    if (late) return subscriber.error(late);
    // Before any code of the source, which may throw: rxjs then runs no teardown that is added later.
    subscriber.add(() => reading.leave());
    if (subscriber.closed) return;
    subscriber.add(call.streamBegins());
    subscriber.add(reading.inSection(() => source.subscribe(subscriber)));
  });
  return { result, done: reading.done };
};

type Snapshot = <R>(fn: () => R) => R;
type Source = AsyncGenerator<unknown, unknown, unknown>;

/** Runs every step of a generator in the given context. Without this its body runs in the reader's context. */
export const stepsIn = (inContext: Snapshot, source: Source): AsyncIterable<unknown, unknown, unknown> => ({
  [Symbol.asyncIterator]: () => ({
    next: (sent) => inContext(() => source.next(sent)),
    return: (value) => inContext(() => source.return(value)),
    throw: (error) => inContext(() => source.throw(error)),
  }),
});
