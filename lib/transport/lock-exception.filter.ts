import { Catch, Optional, type ArgumentsHost, type HttpServer } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import { LockError } from '../core/lock.errors.js';
import { resolveInterceptor, type LockInterceptorOptions } from '../redis-lock.options.js';
import { httpExceptionOf } from './lock-error-mapping.js';

/**
 * The interceptor's mapping for errors that no interceptor sees: those of guards and of middleware. HTTP only.
 *
 * @example { provide: APP_FILTER, useClass: LockExceptionFilter }
 * @example app.useGlobalFilters(new LockExceptionFilter(app.getHttpAdapter(), { takenStatus: 409 }));
 */
@Catch(LockError)
export class LockExceptionFilter extends BaseExceptionFilter<LockError> {
  private readonly settings: Required<LockInterceptorOptions>;

  constructor(@Optional() adapter?: HttpServer, @Optional() options?: LockInterceptorOptions) {
    super(adapter);
    this.settings = resolveInterceptor(options);
  }

  override catch(error: LockError, host: ArgumentsHost): void {
    super.catch(httpExceptionOf(error, host, this.settings) as never, host);
  }
}
