import {
  Controller,
  Get,
  Global,
  Inject,
  Injectable,
  Module,
  type ModuleMetadata,
  type OnModuleDestroy,
} from '@nestjs/common';
import { ApolloDriver, type ApolloDriverConfig } from '@nestjs/apollo';
import { LazyModuleLoader } from '@nestjs/core';
import { GraphQLModule, Query, Resolver } from '@nestjs/graphql';
import { beforeEach, describe, expect, it } from 'vitest';
import { Locked, LockService, RedisLockModule } from 'nest-redis-lock';
import { deferred, until, within, type Deferred } from '../../support/async.js';
import { Apps, rootModule } from '../../support/nest/apps.js';
import { createHttpApp, listen, PLATFORMS, type Platform } from '../../support/nest/http.js';
import { useWorld } from '../../support/nest/world.js';

const world = useWorld();
let work: Deferred<string>;
let running: Deferred<void>;
/** What a module waits for when it is destroyed, as one does that drains requests or jobs. */
let drained: Deferred<void>;
let draining: Deferred<void>;
beforeEach(async () => {
  [work, running, drained, draining] = [deferred(), deferred(), deferred(), deferred()];
  await world.redis.flushall();
});

@Injectable()
@Controller()
class Orders {
  @Get('pay')
  @Locked('order', { waitMs: 60_000 })
  async pay(): Promise<string> {
    return 'paid';
  }

  @Get('run')
  @Locked('section')
  async run(): Promise<string> {
    running.resolve();
    const done = await work.promise;
    return `${done}, ${await this.nested()}`;
  }

  @Locked('nested')
  async nested(): Promise<string> {
    return world.isTaken('nested').then(String);
  }
}

@Resolver()
class Schema {
  @Query(() => String)
  hello(): string {
    return 'hello';
  }
}

const drain = async (): Promise<void> => {
  draining.resolve();
  await drained.promise;
};

@Injectable()
class Drain implements OnModuleDestroy {
  onModuleDestroy(): Promise<void> {
    return drain();
  }
}

/** Has what others wait for, so that Nest calls it before them. */
@Injectable()
class DeepDrain extends Drain {
  constructor(@Inject('deeper') readonly deeper: unknown) {
    super();
  }
}
const deep = [
  { provide: 'deepest', useFactory: () => 'deepest' },
  { provide: 'deeper', inject: ['deepest'], useFactory: (deepest: string) => deepest },
  DeepDrain,
];

@Module({ providers: [Drain] })
class DrainModule {}
@Module({})
class DrainingItself implements OnModuleDestroy {
  onModuleDestroy(): Promise<void> {
    return drain();
  }
}
@Global()
@Module({ imports: [DrainModule], providers: [Drain] })
class GlobalDrain {}

const start = async (platform: Platform, metadata: ModuleMetadata, first: ModuleMetadata['imports'] = []) => {
  const { imports = [], ...root } = rootModule(world.options(), { controllers: [Orders], ...metadata });
  const module = { ...root, imports: [...first, ...imports] };
  const app = await createHttpApp(new Apps(), platform, module, { forceCloseConnections: false });
  const http = await listen(app);
  return { app, get: (path: string) => http.get(path, { headers: { connection: 'close' } }) };
};

type Started = Awaited<ReturnType<typeof start>>;

/** One request waits for a lock, one runs; the app closes. */
const expectRefusedAtOnce = async ({ app, get }: Started): Promise<void> => {
  const free = await world.takeElsewhere('order');
  const waiting = get('/pay');
  const section = get('/run');
  await running.promise;
  const locks = app.get(LockService);
  await until(() => locks.usage.keys === 2, { what: 'one runs and one waits' });
  const closing = app.close();
  const refused = await within(5_000, waiting, 'the answer of the one that waits');
  expect(refused.status).toBe(503);
  expect(await refused.json()).toMatchObject({ code: 'LOCK_SHUTDOWN' });
  await expect(locks.tryAcquire('free')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
  expect(await world.isTaken('section')).toBe(true);
  work.resolve('done');
  expect(await (await section).text()).toBe('done, true');
  drained.resolve();
  await free();
  await within(5_000, closing, 'closing the app');
  expect(await world.holds()).toEqual([]);
};

describe('an app with GraphQL, which drains requests when its module is destroyed', () => {
  it.each(['before', 'after'])('refuses waiting callers at once, imported %s the locks', async (when) => {
    const graphql = GraphQLModule.forRoot<ApolloDriverConfig>({ driver: ApolloDriver, autoSchemaFile: true });
    const [first, imports] = when === 'before' ? [[graphql], []] : [[], [graphql]];
    await expectRefusedAtOnce(await start('express', { providers: [Schema], imports }, first));
  });
});

describe.each(PLATFORMS)('an app on %s that waits for its requests in onModuleDestroy', (platform) => {
  const places: Record<string, () => Promise<Started>> = {
    'a provider of the root module': () => start(platform, { providers: [Drain] }),
    'a provider of the root module that depends on others': () => start(platform, { providers: deep }),
    'an imported module': () => start(platform, { imports: [DrainModule] }),
    'a module itself': () => start(platform, { imports: [DrainingItself] }),
    'a global module that is imported first': () => start(platform, {}, [GlobalDrain]),
    'a global module that is imported last': () => start(platform, { imports: [GlobalDrain] }),
  };

  it.each(Object.keys(places))('of %s refuses waiting callers at once', async (place) => {
    await expectRefusedAtOnce(await places[place]!());
    await draining.promise;
  });
});

describe('a lock module that is loaded lazily', () => {
  const connections = async (): Promise<number> =>
    ((await world.redis.client('LIST')) as string).trim().split('\n').length;

  it('refuses waiting callers when the app closes, and leaves no connection', async () => {
    const before = await connections();
    const apps = new Apps();
    const app = await apps.context({ module: class AppModule {}, providers: [Drain] });
    const loaded = await app.get(LazyModuleLoader).load(() => RedisLockModule.forRoot(world.options()));
    const locks = loaded.get(LockService);
    const lease = await locks.acquire('held');
    const free = await world.takeElsewhere('order');
    const waiting = locks.acquire('order', { waitMs: 60_000 });
    await until(() => locks.usage.keys === 2, { what: 'one holds and one waits' });
    const closing = app.close();
    await expect(within(5_000, waiting, 'the answer')).rejects.toMatchObject({ code: 'LOCK_SHUTDOWN' });
    drained.resolve();
    await lease.release();
    await within(5_000, closing, 'closing the app');
    await until(async () => (await connections()) === before, { what: 'its connections are closed' });
    await free();
  });
});
