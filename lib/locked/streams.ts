import { AsyncLocalStorage } from 'node:async_hooks';
import { Observable } from 'rxjs';
import { LockConfigurationError } from '../core/lock.errors.js';
import { systemRuntime } from '../core/runtime.js';

/** How long a returned stream may stay unread before its lock is given back, in ms. */
export const UNREAD_STREAM_MS = 30_000;

const timers = systemRuntime();

/** In the background: a stream that was forgotten keeps no process alive. */
const whenUnread = (action: () => void): unknown => timers.setTimer(action, UNREAD_STREAM_MS, true);

interface Readable {
  once(event: 'close' | 'error', listener: () => void): unknown;
  destroy(error?: Error): unknown;
  readonly destroyed?: boolean;
  /** Null while nothing is there that would read it. */
  readonly readableFlowing?: boolean | null;
  readonly readableDidRead?: boolean;
}

interface FileLike {
  getStream(): Readable;
}

const has = (value: unknown, ...methods: string[]): boolean =>
  typeof value === 'object' &&
  value !== null &&
  methods.every((name) => typeof (value as Record<string, unknown>)[name] === 'function');

/** By shape: a second copy of rxjs makes Observables of another class. */
export const isObservable = (value: unknown): value is Observable<unknown> => has(value, 'subscribe', 'pipe');

/** Only generators: another async iterable (a database cursor) has methods that a wrapper would hide. */
const isAsyncGenerator = (value: unknown): value is AsyncGenerator<unknown, unknown, unknown> =>
  Object.prototype.toString.call(value) === '[object AsyncGenerator]';

const isFile = (value: unknown): value is FileLike => has(value, 'getStream', 'getHeaders');

const isNodeStream = (value: unknown): value is Readable => has(value, 'once', 'pipe', 'destroy');

/**
 * A result that goes on after the method returned, with a promise of its end; undefined for a plain result. Work
 * inside it runs in the context of the call, so it counts as part of the locked section.
 */
export const asStream = (
  result: unknown,
  where: string,
): { result: unknown; done: Promise<void> } | undefined => {
  if (isFile(result)) return { result, done: closed(result.getStream(), where) };
  if (isNodeStream(result)) return { result, done: closed(result, where) };
  if (isObservable(result)) return heldObservable(result, where);
  if (isAsyncGenerator(result)) return heldGenerator(result, where);
  return undefined;
};

const closed = (stream: Readable, where: string): Promise<void> =>
  new Promise((resolve) => {
    if (stream.destroyed) return resolve();
    const timer = whenUnread(() => {
      if (stream.readableFlowing !== null || stream.readableDidRead) return;
      // Nobody listens, so nobody but a later reader is to hear of it.
      stream.once('error', () => undefined);
      stream.destroy(tooLate(where));
    });
    stream.once('close', () => {
      timers.clearTimer(timer);
      resolve();
    });
  });

const tooLate = (where: string): LockConfigurationError =>
  new LockConfigurationError(
    `${where}: what it returned was read again after its end, or not within ${UNREAD_STREAM_MS} ms, ` +
      `so its lock has been given back. Call the method again.`,
  );

/** The time in which a returned stream is locked: from the first reader to the last, if one comes in time. */
class Reading {
  private over = false;
  private readers = 0;
  private end!: () => void;
  readonly done = new Promise<void>((resolve) => (this.end = resolve));
  private readonly timer = whenUnread(() => this.finish());

  constructor(private readonly where: string) {}

  /** Whoever comes too late gets an error instead of unlocked work. */
  begin(): LockConfigurationError | undefined {
    if (this.over) return tooLate(this.where);
    timers.clearTimer(this.timer);
    this.readers++;
    return undefined;
  }

  leave(): void {
    this.readers--;
    if (this.readers === 0) this.finish();
  }

  private finish(): void {
    this.over = true;
    this.end();
  }
}

const heldObservable = (
  source: Observable<unknown>,
  where: string,
): { result: unknown; done: Promise<void> } => {
  const inContext = AsyncLocalStorage.snapshot();
  const reading = new Reading(where);
  const result = new Observable((subscriber) => {
    const late = reading.begin();
    if (late) return subscriber.error(late);
    subscriber.add(inContext(() => source.subscribe(subscriber)));
    return () => reading.leave();
  });
  return { result, done: reading.done };
};

const heldGenerator = (
  source: AsyncGenerator<unknown, unknown, unknown>,
  where: string,
): { result: unknown; done: Promise<void> } => {
  const inContext = AsyncLocalStorage.snapshot();
  const reading = new Reading(where);
  const result = (async function* () {
    const late = reading.begin();
    if (late) throw late;
    try {
      return yield* iterateIn(inContext, source);
    } finally {
      reading.leave();
    }
  })();
  return { result, done: reading.done };
};

type Snapshot = <R>(fn: () => R) => R;

/** Draws every item in the given context; a generator's body otherwise runs in that of whoever asks for the next. */
export async function* iterateIn<T>(
  inContext: Snapshot,
  source: AsyncIterable<T>,
): AsyncGenerator<T, unknown, unknown> {
  const iterator = inContext(() => source[Symbol.asyncIterator]());
  let finished = false;
  try {
    for (let sent: unknown; ;) {
      const step: IteratorResult<T, unknown> = await inContext(() => iterator.next(sent as undefined));
      if (step.done) {
        finished = true;
        return step.value;
      }
      sent = yield step.value;
    }
  } finally {
    if (!finished) await inContext(() => iterator.return?.());
  }
}
