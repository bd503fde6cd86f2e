import { Catch, type ArgumentsHost, type ExceptionFilter, type Type } from '@nestjs/common';
import type { HttpAdapterHost, ModuleRef } from '@nestjs/core';
import { LockError } from '../../core/errors/lock.errors.js';
import type { ResolvedInterceptor } from '../module/redis-lock.options.js';
import { LockExceptionFilter } from './lock-exception.filter.js';

/** Metadata key under which `@Catch` stores its types. */
const CAUGHT_TYPES = '__filterCatchExceptions__';
// `Symbol.for`: the modules of both builds have to recognize each other's filter.
const OUTSIDE_HANDLERS = Symbol.for('nest-redis-lock:outside-handlers');

const catches = (filter: ExceptionFilter, error: Error): boolean => {
  // Nest 12 writes the types to the prototype as well; its constructor may be another class.
  const types = (Reflect.getMetadata(CAUGHT_TYPES, Object.getPrototypeOf(filter) as object) ??
    Reflect.getMetadata(CAUGHT_TYPES, filter.constructor)) as readonly Type<unknown>[] | undefined;
  return !types?.length || types.some((type) => error instanceof type);
};

/**
 * Maps the lock errors that no interceptor sees, thrown by guards and middleware. The app's global filters get the
 * mapped exception, as for an error of a handler. A filter that catches only `LockError` gets the lock error.
 */
@Catch(LockError)
class OutsideHandlersFilter extends LockExceptionFilter {
  readonly [OUTSIDE_HANDLERS] = true;

  constructor(
    // Not the adapter: an app of a testing module gets it after this.
    protected override readonly httpAdapterHost: HttpAdapterHost,
    settings: ResolvedInterceptor,
    private readonly filtersOfApp: () => readonly ExceptionFilter[],
  ) {
    super(undefined, settings);
  }

  protected override reply(mapped: Error, error: LockError, host: ArgumentsHost): unknown {
    for (const filter of [...this.filtersOfApp()].reverse()) {
      const caught = [mapped, error].find((one) => catches(filter, one));
      if (!caught) continue;
      if (caught === mapped) this.beforeReply(error, host);
      return filter.catch(caught, host);
    }
    return super.reply(mapped, error, host);
  }
}

/**
 * Appends the filter to the app's global filters: Nest tries the last one first. An `APP_FILTER` would come between the
 * app's own filters, after the root module's and before those of `useGlobalFilters`.
 */
export const mapOutsideHandlers = (
  moduleRef: ModuleRef,
  host: HttpAdapterHost,
  settings: ResolvedInterceptor | undefined,
): void => {
  const config = moduleRef['container'].applicationConfig;
  if (!settings || !config) return;
  const getGlobalFilters = config.getGlobalFilters.bind(config);
  const filtersOfApp = (): ExceptionFilter[] =>
    getGlobalFilters().filter((filter) => filter && !(OUTSIDE_HANDLERS in filter));
  const filter = new OutsideHandlersFilter(host, settings, filtersOfApp);
  config.getGlobalFilters = () => [...filtersOfApp(), filter];
};
