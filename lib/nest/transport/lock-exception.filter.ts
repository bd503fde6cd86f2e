import { checkObject } from '../../core/settings/option-checks.js';
import { Catch, Logger, Optional, type ArgumentsHost, type HttpServer } from '@nestjs/common';
import { BaseExceptionFilter } from '@nestjs/core';
import type { RpcException } from '@nestjs/microservices';
import { throwError } from 'rxjs';
import { LockError } from '../../core/errors/lock.errors.js';
import {
  resolveInterceptor,
  type LockInterceptorOptions,
  type ResolvedInterceptor,
} from '../module/redis-lock.options.js';
import { adviseRetry, httpExceptionOf, mapLockError } from './lock-error-mapping.js';
import { MistakeLog } from './mistake-log.js';

interface HttpRequest {
  readonly method?: string;
  /** Express. */
  readonly route?: { readonly path?: string | RegExp };
  /** Fastify. */
  readonly routeOptions?: { readonly url?: string };
}

/**
 * Maps lock errors like the interceptor, for errors that no interceptor sees. `RedisLockModule` does this for guards
 * and middleware. Use the filter for gateways, with `interceptor: false`, or with a different mapping.
 *
 * @example `@UseFilters(LockExceptionFilter)`
 * @example { provide: APP_FILTER, useClass: LockExceptionFilter }
 * @example app.useGlobalFilters(new LockExceptionFilter(app.getHttpAdapter(), { takenStatus: 409 }));
 */
@Catch(LockError)
export class LockExceptionFilter extends BaseExceptionFilter<LockError> {
  private readonly settings: ResolvedInterceptor;
  private readonly mistakes = new MistakeLog();
  private readonly logger = new Logger('RedisLockModule');

  constructor(@Optional() adapter?: HttpServer, @Optional() options?: LockInterceptorOptions) {
    super(adapter);
    // Nest gives null to an app without HTTP.
    if ((adapter ?? undefined) !== undefined)
      checkObject('The adapter of LockExceptionFilter', 'app.getHttpAdapter()', adapter);
    this.settings = resolveInterceptor(options);
  }

  override catch(error: LockError, host: ArgumentsHost): unknown {
    const type = host.getType<string>();
    if (type !== 'rpc' && type !== 'ws')
      return this.reply(httpExceptionOf(error, host, this.settings), error, host);
    const replied = mapLockError(error, host, this.settings).then((mapped) =>
      this.reply(mapped, error, host),
    );
    if (type === 'rpc') return replied;
    // Nest does not await a filter of a gateway.
    replied.catch((failure: unknown) => this.logger.error('No client was sent a lock error.', failure));
    return undefined;
  }

  /** Replies as Nest does when a handler throws `mapped`, unless a filter of the app catches it. */
  protected reply(mapped: Error, error: LockError, host: ArgumentsHost): unknown {
    this.beforeReply(error, host);
    switch (host.getType<string>()) {
      case 'rpc':
        return throwError(() => (mapped as RpcException).getError());
      case 'ws':
        return import('@nestjs/websockets').then(({ BaseWsExceptionFilter }) =>
          new BaseWsExceptionFilter().catch(mapped, host),
        );
      case 'graphql':
        return mapped;
      default:
        return super.catch(mapped as never, host);
    }
  }

  protected beforeReply(error: LockError, host: ArgumentsHost): void {
    this.mistakes.notify(error, entryOf(host));
    adviseRetry(error, host, this.settings);
  }
}

/** Returns the route: a filter does not know which code threw. Express middleware has no route yet. */
const entryOf = (host: ArgumentsHost): string => {
  if (host.getType() !== 'http') return `A guard (${host.getType<string>()})`;
  const { method, route, routeOptions } = host.switchToHttp().getRequest<HttpRequest | undefined>() ?? {};
  const path = route?.path ?? routeOptions?.url;
  return path === undefined ? 'A guard or middleware' : `${method} ${String(path)}`;
};
