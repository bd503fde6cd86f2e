import {
  Catch,
  Controller,
  Get,
  HttpException,
  Injectable,
  Module,
  Param,
  UseFilters,
  UseGuards,
  type ArgumentsHost,
  type ExceptionFilter,
  type MiddlewareConsumer,
  type NestModule,
  type PipeTransform,
  type Type,
} from '@nestjs/common';
import { APP_FILTER, BaseExceptionFilter } from '@nestjs/core';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { LockError, LockHttpException, LockService, Locked, RedisLockModule } from 'nest-redis-lock';
import { RedisLockTestingModule } from 'nest-redis-lock/testing';
import { rootModule, useApps } from '../../support/nest/apps.js';
import { createHttpApp, listen, PLATFORMS, startHttp, type HttpClient } from '../../support/nest/http.js';
import { QuotaGuard } from '../../support/nest/quota-guard.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
const apps = useApps();

@Injectable()
class Quota extends QuotaGuard implements PipeTransform {
  async transform(value: string): Promise<string> {
    await this.spend('bob');
    return value;
  }
}

@Controller()
class ShopController {
  @Get('guard')
  @UseGuards(Quota)
  guard(): string {
    return 'done';
  }

  @Get('pipe/:id')
  pipe(@Param('id', Quota) id: string): string {
    return id;
  }

  @Get('middleware')
  middleware(): string {
    return 'done';
  }

  @Get('handler')
  @Locked('quota:bob', { waitMs: 0 })
  async handler(): Promise<string> {
    return 'done';
  }
}

@Module({ controllers: [ShopController], providers: [Quota] })
class ShopModule implements NestModule {
  constructor(private readonly quota: Quota) {}

  configure(consumer: MiddlewareConsumer): void {
    consumer
      .apply(async (_request: unknown, _response: unknown, next: (error?: unknown) => void) => {
        await this.quota.spend('bob');
        next();
      })
      .forRoutes('middleware');
  }
}

const PLACES = ['guard', 'pipe/1', 'middleware', 'handler'] as const;

/** What the filters of the app were given. */
const given: unknown[] = [];
afterEach(() => {
  given.length = 0;
});

const answerOf = async (http: HttpClient, place: string): Promise<unknown> => {
  const answer = await http.get(`/${place}`);
  return [answer.status, answer.headers.get('retry-after'), await answer.json()];
};

const answersOf = (http: HttpClient): Promise<unknown[]> =>
  Promise.all(PLACES.map((place) => answerOf(http, place)));

/** All places give the same answer. */
const everywhere = (answer: unknown): unknown[] => PLACES.map(() => answer);

const TAKEN = { code: 'LOCK_TAKEN', message: 'The resource is busy. Try again shortly.' };

@Catch()
class CatchAll extends BaseExceptionFilter {
  override catch(exception: unknown, host: ArgumentsHost): void {
    given.push(exception);
    super.catch(exception, host);
  }
}

@Catch(HttpException)
class HttpFormat extends BaseExceptionFilter {
  override catch(exception: HttpException, host: ArgumentsHost): void {
    given.push(exception);
    super.catch(new HttpException({ error: exception.getStatus() }, 400), host);
  }
}

@Catch(LockError)
class OnlyLockErrors extends BaseExceptionFilter {
  override catch(error: LockError, host: ArgumentsHost): void {
    given.push(error);
    super.catch(new HttpException({ own: error.code }, 418), host);
  }
}

describe.each(PLATFORMS)('on %s a lock error of a guard, a pipe or middleware', (platform) => {
  let free: () => Promise<void>;
  beforeEach(async () => {
    free = await world.takeElsewhere('quota:bob');
  });
  afterEach(() => free());

  const appWith = (filters: readonly Type<ExceptionFilter>[] = [], options = {}) =>
    rootModule(world.options(options), {
      imports: [ShopModule],
      providers: filters.map((useClass) => ({ provide: APP_FILTER, useClass })),
    });

  it('is answered as one of a handler, and the next request passes', async () => {
    const http = await startHttp(apps, platform, appWith());
    expect(await answersOf(http)).toEqual(everywhere([423, '1', { statusCode: 423, ...TAKEN }]));
    await free();
    for (const place of PLACES) expect((await http.get(`/${place}`)).status).toBe(200);
  });

  it('is answered with the options of the interceptor', async () => {
    const interceptor = { takenStatus: 409, retryAfterSeconds: 7 };
    const http = await startHttp(apps, platform, appWith([], { interceptor }));
    expect(await answersOf(http)).toEqual(everywhere([409, '7', { statusCode: 409, ...TAKEN }]));
  });

  it('stays as it is with interceptor: false', async () => {
    const http = await startHttp(apps, platform, appWith([], { interceptor: false }));
    expect(await answersOf(http)).toEqual(
      everywhere([500, null, { statusCode: 500, message: 'Internal server error' }]),
    );
  });

  it.each(['APP_FILTER', 'useGlobalFilters'] as const)(
    'reaches a filter for everything, and one for HTTP exceptions, as a LockHttpException (%s)',
    async (how) => {
      const start = async (filter: Type<ExceptionFilter>): Promise<HttpClient> => {
        const app = await createHttpApp(apps, platform, appWith(how === 'APP_FILTER' ? [filter] : []));
        if (how === 'useGlobalFilters') app.useGlobalFilters(new filter(app.getHttpAdapter()));
        return listen(app);
      };
      expect(await answersOf(await start(CatchAll))).toEqual(
        everywhere([423, '1', { statusCode: 423, ...TAKEN }]),
      );
      expect(await answersOf(await start(HttpFormat))).toEqual(everywhere([400, '1', { error: 423 }]));
      expect(given).toEqual(Array(2 * PLACES.length).fill(expect.any(LockHttpException)));
    },
  );

  it.each(['APP_FILTER', 'useGlobalFilters'] as const)(
    'reaches a filter for lock errors as the error itself (%s)',
    async (how) => {
      const app = await createHttpApp(apps, platform, appWith(how === 'APP_FILTER' ? [OnlyLockErrors] : []));
      if (how === 'useGlobalFilters') app.useGlobalFilters(new OnlyLockErrors(app.getHttpAdapter()));
      const http = await listen(app);
      for (const place of ['guard', 'middleware'])
        expect(await answerOf(http, place)).toEqual([418, null, { own: 'LOCK_TAKEN' }]);
      expect(given).toEqual([expect.any(LockError), expect.any(LockError)]);
    },
  );

  it('reaches a filter of the controller first', async () => {
    @Controller()
    @UseFilters(OnlyLockErrors)
    class OwnFilterController {
      @Get('own')
      @UseGuards(Quota)
      own(): string {
        return 'done';
      }
    }
    const module = rootModule(world.options(), { controllers: [OwnFilterController], providers: [Quota] });
    const http = await startHttp(apps, platform, module);
    expect(await answerOf(http, 'own')).toEqual([418, null, { own: 'LOCK_TAKEN' }]);
  });

  it('is answered as the module that comes last says, as one of a handler', async () => {
    const http = await startHttp(apps, platform, {
      module: class AppModule {},
      imports: [
        RedisLockModule.forRoot(world.options()),
        RedisLockModule.forRoot({ ...world.options({ interceptor: { takenStatus: 409 } }), name: 'more' }),
        ShopModule,
      ],
    });
    expect(await answersOf(http)).toEqual(everywhere([409, '1', { statusCode: 409, ...TAKEN }]));
  });

  it('is answered with the testing module, too', async () => {
    const http = await startHttp(apps, platform, {
      module: class AppModule {},
      imports: [RedisLockTestingModule.forRoot(), ShopModule],
    });
    await using lease = await http.app.get(LockService).acquire('quota:bob');
    expect(lease.signal.aborted).toBe(false);
    expect(await answersOf(http)).toEqual(everywhere([423, '1', { statusCode: 423, ...TAKEN }]));
  });
});
