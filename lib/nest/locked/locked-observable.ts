import { defer, Observable, takeUntil, throwError } from 'rxjs';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { LockSection } from '../../core/service/lock-manager.js';
import type { KeyOfCall } from '../../core/settings/acquire-options.js';
import type { LockService } from '../service/lock.service.js';
import {
  withTakenHandled,
  isBusy,
  notRun,
  optionsNow,
  type CallLocked,
  type CallOptions,
  type LockedMethodSpec,
} from './locked-method.js';
import { isObservable, isStream } from './streams.js';

/** Wraps a method that returns an Observable: each subscriber holds the lock until its stream has ended. */
export const lockedObservable =
  (spec: LockedMethodSpec): CallLocked =>
  (self, args, inside) => {
    const { onBusy } = spec.options;
    let locks: LockService;
    let keys: readonly KeyOfCall[];
    let options: CallOptions;
    try {
      locks = spec.serviceOf(self);
      keys = spec.keysOf(locks, args, self);
      options = optionsNow(spec, self, args, inside);
    } catch (error) {
      return throwError(() => error);
    }
    return new Observable((subscriber) => {
      const gone = new AbortController();
      const signal = options.signal ? AbortSignal.any([options.signal, gone.signal]) : gone.signal;
      let started = false;
      const body: LockSection<void> = () => {
        started = true;
        const streamEnds = spec.streamBegins();
        if (streamEnds) subscriber.add(streamEnds);
        if (subscriber.closed) return Promise.resolve();
        const returned: unknown = spec.original.apply(self, args);
        return isObservable(returned) ? relay(returned) : valueOf(returned);
      };
      /** Its work goes on when the subscriber has left, and so does the section. */
      const valueOf = async (returned: unknown): Promise<void> => {
        const value = isStream(returned) ? returned : await returned;
        if (isStream(value)) throw notObservable(spec);
        subscriber.next(value);
      };
      const relay = (source: Observable<unknown>): Promise<void> =>
        new Promise((done) => {
          // Ends the section when the source completes, fails, or is unsubscribed from.
          subscriber.add(done);
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
      Promise.resolve(spec.run(locks, keys, withTakenHandled(spec, { ...options, signal }), body))
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
            () => onBusy.apply(self as never, [error, ...args] as never) as Observable<unknown>,
          );
          subscriber.add(fallback.subscribe(subscriber));
        });
      return () => gone.abort();
    });
  };

const notObservable = ({ where }: LockedMethodSpec): LockConfigurationError =>
  new LockConfigurationError(
    `${where} returned a stream that is no Observable, and its caller subscribed to it. Read it with for await, or return ` +
      'an Observable.',
  );
