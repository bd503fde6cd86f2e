import { Catch, Optional, type ArgumentsHost, type HttpServer } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { LockError } from '../core/errors/lock.errors.js';
import { resolveInterceptor, type LockInterceptorOptions } from '../redis-lock.options.js';
import { httpExceptionOf } from './lock-error-mapping.js';
import { MistakeLog } from './mistake-log.js';

interface HttpRequest {
  readonly method?: string;
  /** Of Express. */
  readonly route?: { readonly path?: string | RegExp };
  /** Of Fastify. */
  readonly routeOptions?: { readonly url?: string };
}

/**
 * The interceptor's mapping for errors that no interceptor sees: those of guards and of middleware. HTTP only.
 *
 * @example { provide: APP_FILTER, useClass: LockExceptionFilter }
 * @example app.useGlobalFilters(new LockExceptionFilter(app.getHttpAdapter(), { takenStatus: 409 }));
 */
@Catch(LockError)
export class LockExceptionFilter extends BaseExceptionFilter<LockError> {
  private readonly settings: Required<LockInterceptorOptions>;
  private readonly mistakes = new MistakeLog();

  constructor(@Optional() adapter?: HttpServer, @Optional() options?: LockInterceptorOptions) {
    super(adapter);
    this.settings = resolveInterceptor(options);
  }

  override catch(error: LockError, host: ArgumentsHost): void {
    this.mistakes.tell(error, routeOf(host));
    super.catch(httpExceptionOf(error, host, this.settings) as never, host);
  }
}

/** A filter is not told what threw, so the route stands for it. Middleware of Express has none yet. */
const routeOf = (host: ArgumentsHost): string => {
  const { method, route, routeOptions } = host.switchToHttp().getRequest<HttpRequest | undefined>() ?? {};
  const path = route?.path ?? routeOptions?.url;
  return path === undefined ? 'A guard or middleware' : `${method} ${String(path)}`;
};
