import type { CallHandler, ExecutionContext, NestInterceptor } from '@nestjs/common';
import { catchError, from, mergeMap, Observable, throwError } from 'rxjs';
import { LockAbortedError, LockError } from '../../core/errors/lock.errors.js';
import type { ResolvedInterceptor } from '../module/redis-lock.options.js';
import { adviseRetry, mapLockError } from './lock-error-mapping.js';
import { MistakeLog } from './mistake-log.js';
import { requestContext, type RequestContext } from './request-context.js';

interface HttpResponse {
  /** Fastify's reply wraps the Node response. */
  readonly raw?: HttpResponse;
  readonly writableEnded?: boolean;
  readonly destroyed?: boolean;
  once(event: 'close', listener: () => void): unknown;
  off(event: 'close', listener: () => void): unknown;
}

/**
 * Wraps every handler; it never locks. It ends the wait of a locked handler when the client disconnects, and maps lock
 * errors to exceptions of the transport.
 */
export class LockInterceptor implements NestInterceptor {
  private readonly mistakes = new MistakeLog();

  /** @param settings undefined: the interceptor does nothing */
  constructor(private readonly settings: ResolvedInterceptor | undefined) {}

  intercept(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const { settings } = this;
    if (!settings) return next.handle();
    return this.inRequest(context, next).pipe(
      catchError((error: unknown) => {
        if (!(error instanceof LockError)) return throwError(() => error);
        this.mistakes.notify(error, handlerOf(context), context.getHandler());
        adviseRetry(error, context, settings);
        return from(mapLockError(error, context, settings)).pipe(
          mergeMap((mapped) => throwError(() => mapped)),
        );
      }),
    );
  }

  private inRequest(context: ExecutionContext, next: CallHandler): Observable<unknown> {
    const transport = context.getType<string>();
    if (transport !== 'http' && transport !== 'graphql') return next.handle();
    return new Observable((subscriber) => {
      const gone = new AbortController();
      const response = transport === 'http' ? responseOf(context) : undefined;
      let lockedStreams = 0;
      // Before version 11.2, Nest goes on reading an Observable after its client has left, so the lock stays held. Only
      // the returned Observable is ended; work that the handler has started goes on.
      const endStreams = (): void => {
        if (gone.signal.aborted && lockedStreams > 0) subscriber.error(clientLeft(gone.signal));
      };
      gone.signal.addEventListener('abort', endStreams);
      const streamBegins = (): (() => void) => {
        lockedStreams++;
        endStreams();
        return () => void lockedStreams--;
      };
      const call: RequestContext = {
        transport,
        handler: context.getHandler(),
        signal: gone.signal,
        streamBegins,
      };
      const onClose = (): void => {
        if (!response?.writableEnded) gone.abort(new Error('the client closed the connection'));
      };
      response?.once('close', onClose);
      // The client may have left while guards ran. No event follows then, and the handler need not run.
      if (response?.destroyed) onClose();
      const handled = requestContext.run(call, () => next.handle().subscribe(subscriber));
      return () => {
        call.signal = undefined;
        response?.off('close', onClose);
        handled.unsubscribe();
      };
    });
  }
}

const clientLeft = ({ reason }: AbortSignal): LockAbortedError =>
  new LockAbortedError(
    'LOCK_ABORTED',
    'The client left while it was sent a locked Observable, which was ended.',
    {
      cause: reason,
    },
  );
/** Returns `Class.method` of the handler. Contexts made by hand have neither. */
const handlerOf = (context: ExecutionContext): string => {
  const { name: className } = (context.getClass() as { name: string } | null) ?? { name: '(no class)' };
  const { name: method } = (context.getHandler() as { name: string } | null) ?? { name: '(no handler)' };
  return `${className}.${method}`;
};

/** Returns the response of an HTTP request, if the end of its connection can be seen. */
const responseOf = (context: ExecutionContext): HttpResponse | undefined => {
  const response = context.switchToHttp().getResponse<HttpResponse>();
  return socketOf(response.raw ?? response);
};

const socketOf = (response: HttpResponse): HttpResponse | undefined =>
  typeof response.once === 'function' && typeof response.off === 'function' ? response : undefined;
