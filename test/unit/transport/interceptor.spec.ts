import 'reflect-metadata';
import { EventEmitter } from 'node:events';
import { ExecutionContextHost } from '@nestjs/core/helpers/execution-context-host.js';
import {
  defer,
  firstValueFrom,
  from,
  isObservable,
  lastValueFrom,
  mergeMap,
  NEVER,
  of,
  Subject,
  throwError,
  Observable,
} from 'rxjs';
import { describe, expect, it } from 'vitest';
import { Locked, LockHttpException, LockNotAcquiredError } from 'nest-redis-lock';
import { LockInterceptor } from '../../../lib/nest/transport/lock.interceptor.js';
import { resolveInterceptor } from '../../../lib/nest/module/redis-lock.options.js';
import { requestContext, type RequestContext } from '../../../lib/nest/transport/request-context.js';
import { deferred, until } from '../../support/async.js';
import { isIdle, lockedInstance } from '../locked/fixture.js';

const taken = new LockNotAcquiredError('LOCK_TAKEN', '"x" is taken', { key: 'x' });
const interceptor = new LockInterceptor(resolveInterceptor());

class Response extends EventEmitter {
  writableEnded = false;
  destroyed = false;
}

const intercept = (
  response: object,
  handler: () => Observable<unknown>,
  { type = 'http', using = interceptor } = {},
): Observable<unknown> => {
  const host = new ExecutionContextHost([{}, response]);
  host.setType(type);
  return using.intercept(host, { handle: () => defer(handler) });
};

describe('LockInterceptor', () => {
  it.each(['http', 'graphql'])('offers what it knows of a request: %s', async (type) => {
    const seen = intercept(new Response(), () => of({ ...requestContext.getStore() }), { type });
    expect(await firstValueFrom(seen)).toMatchObject({ transport: type, signal: expect.any(AbortSignal) });
    expect(requestContext.getStore()).toBeUndefined();
  });

  it.each(['rpc', 'ws'])('offers no request where there is none: %s', async (type) => {
    const seen = intercept(new Response(), () => of(requestContext.getStore()), { type });
    await expect(firstValueFrom(seen)).resolves.toBeUndefined();
  });

  it('leaves no listener behind, whether the handler ends, fails or is given up', async () => {
    const response = new Response();
    await lastValueFrom(intercept(response, () => of(1)));
    await expect(lastValueFrom(intercept(response, () => throwError(() => taken)))).rejects.toThrow(
      LockHttpException,
    );
    intercept(response, () => NEVER)
      .subscribe()
      .unsubscribe();
    expect(response.listenerCount('close')).toBe(0);
  });

  it('passes unsubscribing on to the handler', () => {
    const handled = new Subject();
    const subscription = intercept(new Response(), () => handled).subscribe();
    expect(handled.observed).toBe(true);
    subscription.unsubscribe();
    expect(handled.observed).toBe(false);
  });

  it('aborts the signal when the connection closes, but not when the response has been sent', () => {
    const signals: AbortSignal[] = [];
    const handler = (): Observable<never> => {
      signals.push(requestContext.getStore()!.signal!);
      return NEVER;
    };
    const [left, served] = [new Response(), new Response()];
    intercept(left, handler).subscribe();
    intercept(served, handler).subscribe();
    left.emit('close');
    served.writableEnded = true;
    served.emit('close');
    expect(signals.map(({ aborted }) => aborted)).toEqual([true, false]);
  });

  it('keeps no signal for what begins after the request', () => {
    const handled = new Subject<void>();
    let call: RequestContext | undefined;
    intercept(new Response(), () => ((call = requestContext.getStore()), handled)).subscribe();
    expect(call?.signal?.aborted).toBe(false);
    handled.complete();
    expect(call).toMatchObject({ signal: undefined });
  });

  it('aborts from the start when the client left before the handler was reached', () => {
    let call: RequestContext | undefined;
    const gone = Object.assign(new Response(), { destroyed: true });
    intercept(gone, () => ((call = requestContext.getStore()), NEVER)).subscribe();
    expect(call?.signal?.aborted).toBe(true);
  });

  it('does not touch other errors', async () => {
    const own = new Error('own');
    await expect(lastValueFrom(intercept(new Response(), () => throwError(() => own)))).rejects.toBe(own);
  });

  it('without settings leaves lock errors as they are', async () => {
    const using = new LockInterceptor(undefined);
    const handled = intercept(new Response(), () => throwError(() => taken), { using });
    await expect(lastValueFrom(handled)).rejects.toBe(taken);
  });

  describe('when the client leaves, and Nest goes on reading for it, as it did before version 11.2', () => {
    class Feeds {
      readonly source = new Subject<number>();

      @Locked('feed')
      live(): Observable<number> {
        return this.source;
      }

      @Locked('feed')
      async liveLater(): Promise<Observable<number>> {
        return this.source;
      }
    }

    it.each(['live', 'liveLater'] as const)(
      'the lock of an endless Observable is given back: %s',
      async (name) => {
        const { instance, locks } = lockedInstance(Feeds);
        const response = new Response();
        const sent = lastValueFrom(
          intercept(response, () =>
            from(instance[name]()).pipe(mergeMap((v) => (isObservable(v) ? v : of(v)))),
          ),
        );
        await until(() => instance.source.observed);
        expect(await locks.isLocked('feed')).toBe(true);
        response.emit('close');
        await expect(sent).rejects.toMatchObject({ code: 'LOCK_ABORTED', status: 499 });
        await until(() => isIdle(locks));
        expect(instance.source.observed).toBe(false);
      },
    );

    it('also when it left before the Observable was subscribed to', async () => {
      const { instance, locks } = lockedInstance(Feeds);
      const response = new Response();
      const late = deferred();
      const sent = lastValueFrom(
        intercept(response, () =>
          from(instance.liveLater()).pipe(mergeMap((feed) => from(late.promise).pipe(mergeMap(() => feed)))),
        ),
      );
      await until(() => locks.isLocked('feed'));
      response.emit('close');
      late.resolve();
      await expect(sent).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
      await until(() => isIdle(locks));
    });

    it('work inside the handler that reads a locked Observable goes on, with its lock', async () => {
      const { instance, locks } = lockedInstance(Feeds);
      const response = new Response();
      let work: Promise<number> | undefined;
      const sent = lastValueFrom(intercept(response, () => from((work = lastValueFrom(instance.live())))));
      await until(() => instance.source.observed);
      response.emit('close');
      await expect(sent).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
      expect(await locks.isLocked('feed')).toBe(true);
      instance.source.next(1);
      instance.source.complete();
      await expect(work).resolves.toBe(1);
      await until(() => isIdle(locks));
    });

    it('an Observable that was made in the context of another request ends with the client that reads it', async () => {
      const { instance, locks } = lockedInstance(Feeds);
      let ofAlice: RequestContext | undefined;
      const alice = new Response();
      const handledForAlice = new Subject();
      intercept(alice, () => ((ofAlice = requestContext.getStore()), handledForAlice)).subscribe();
      const bob = new Response();
      const sent = lastValueFrom(
        intercept(bob, () =>
          from(requestContext.run(ofAlice!, () => instance.liveLater())).pipe(mergeMap((feed) => feed)),
        ),
      );
      await until(() => instance.source.observed);
      alice.emit('close');
      expect(handledForAlice.observed).toBe(true);
      expect(await locks.isLocked('feed')).toBe(true);
      bob.emit('close');
      await expect(sent).rejects.toMatchObject({ code: 'LOCK_ABORTED' });
      await until(() => isIdle(locks));
    });

    it('an Observable without a lock is left to Nest', () => {
      const handled = new Subject();
      const response = new Response();
      intercept(response, () => handled).subscribe();
      response.emit('close');
      expect(handled.observed).toBe(true);
    });
  });
});
