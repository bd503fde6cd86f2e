import {
  ConfigurableModuleBuilder,
  Inject,
  Logger,
  Module,
  type DynamicModule,
  type OnApplicationBootstrap,
  type OnModuleInit,
} from '@nestjs/common';
import {
  APP_INTERCEPTOR,
  DiscoveryModule,
  DiscoveryService,
  HttpAdapterHost,
  ModuleRef,
  ModulesContainer,
} from '@nestjs/core';
import { LockManager } from '../../core/service/lock-manager.js';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import { printsOnly } from '../../core/util/printing.js';
import { invalidOption } from '../../core/settings/option-checks.js';
import { leadersIn } from '../leader/leader-methods.js';
import type { FoundLeader } from '../leader/leader.options.js';
import { LockHealthIndicator } from './lock-health-indicator.js';
import { LockService } from '../service/lock.service.js';
import { bindAll, wrappersOf } from '../locked/lock-binder.js';
import {
  checkAsyncOptions,
  checkGiven,
  resolveOptions,
  withoutForRoot,
  type RedisLockModuleExtras,
  type RedisLockModuleOptions,
  type ResolvedOptions,
} from './redis-lock.options.js';
import { getLockServiceToken } from './redis-lock.tokens.js';
import { endWithApp, groupOf } from './shutdown-hooks.js';
import { storeOf } from './store-of-options.js';
import { LockInterceptor } from '../transport/lock.interceptor.js';
import { mapOutsideHandlers } from '../transport/outside-handlers.filter.js';

// `Symbol.for`: the modules of both builds have to recognize each other.
const RESOLVED = Symbol.for('nest-redis-lock:resolved-options');
const MANAGER = Symbol.for('nest-redis-lock:manager');
const SERVICE = Symbol.for('nest-redis-lock:service');
const NAME = Symbol.for('nest-redis-lock:module-name');
/** Key of the static property that marks the module class. */
const MODULE = Symbol.for('nest-redis-lock:module');

const withName = (definition: DynamicModule, name: string | undefined): DynamicModule => {
  if (name !== undefined && typeof name !== 'string') invalidOption('name', 'a string', name);
  const tokens = name === undefined ? [getLockServiceToken(), LockService] : [getLockServiceToken(name)];
  const health = name === undefined ? [LockHealthIndicator] : [];
  return {
    ...definition,
    global: true,
    providers: [
      ...(definition.providers ?? []),
      ...health,
      { provide: NAME, useValue: name ?? null },
      ...tokens.map((token) => ({ provide: token, useExisting: SERVICE })),
    ],
    exports: [...tokens, ...health],
  };
};

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<RedisLockModuleOptions>()
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createRedisLockOptions')
    .setExtras<RedisLockModuleExtras>({ name: undefined }, (definition, { name }) =>
      withName(definition, name),
    )
    .build();

const importedTwice = (name: string | null): LockConfigurationError =>
  new LockConfigurationError(
    `RedisLockModule.forRoot() is imported twice ${name === null ? 'without a name' : `as "${name}"`}. ` +
      `It is global: import it once, in the root module, and give further ones a name of their own.`,
  );

/**
 * Shows how the lock module came into the app. Nest computes a module's distance from the root only when the app
 * starts.
 */
@Module({})
class Arrival {}

/** Returns true when the app has already started. A lazily loaded module gets no hook that would tell it. */
const isLoadedLazily = (modules: ModulesContainer): boolean =>
  [...modules.values()].find(({ metatype }) => metatype === Arrival)?.distance === 0;

/**
 * Registers `LockService`, and makes `@Locked`, `@Limited` and `@Leader` work in the whole app. Import it once, in the root
 * module; it is global.
 *
 * @example
 * `@Module({ imports: [RedisLockModule.forRoot({ redis: 'redis://localhost:6379' })] })`
 * export class AppModule {}
 */
@Module({
  imports: [DiscoveryModule, Arrival],
  providers: [
    // forRoot() overrides these two providers.
    { provide: NAME, useFactory: withoutForRoot },
    { provide: MODULE_OPTIONS_TOKEN, useFactory: withoutForRoot },
    { provide: RESOLVED, useFactory: resolveOptions, inject: [MODULE_OPTIONS_TOKEN] },
    {
      provide: MANAGER,
      useFactory: async (options: ResolvedOptions, modules: ModulesContainer, name: string | null) => {
        const { settings } = options;
        const logger = new Logger('RedisLockModule');
        const manager = new LockManager(
          await storeOf(options),
          settings,
          logger,
          undefined,
          groupOf(modules),
          name ?? undefined,
        );
        // A store passed as an option may be in use already, by the app or by another module.
        if (!options.store && !isLoadedLazily(modules)) manager.startsWithApp();
        return manager;
      },
      inject: [RESOLVED, ModulesContainer, NAME],
    },
    {
      provide: SERVICE,
      useFactory: (manager: LockManager, { context, leaders }: ResolvedOptions, name: string | null) =>
        new LockService(manager, context, name ?? undefined, leaders),
      inject: [MANAGER, RESOLVED, NAME],
    },
    {
      provide: APP_INTERCEPTOR,
      useFactory: ({ interceptor }: ResolvedOptions) => new LockInterceptor(interceptor),
      inject: [RESOLVED],
    },
  ],
})
export class RedisLockModule extends ConfigurableModuleClass implements OnModuleInit, OnApplicationBootstrap {
  static {
    printsOnly(this, ({ name, locks }) => ({ name, locks }));
  }

  /** @internal */
  static readonly [MODULE] = true;

  /**
   * Registers the app's lock service on Redis (`redis`) or another store (`store`), with the defaults of all locks; see
   * {@link RedisLockModuleOptions}. With `name` it registers a further service beside the unnamed one.
   *
   * Options, and the rights of the Redis user, are checked when the app starts, with a `LockConfigurationError` for an
   * invalid one. An unreachable server does not stop the start; put `await locks.ping()` into `main.ts` for that.
   *
   * @example RedisLockModule.forRoot({ redis: 'redis://localhost:6379', waitMs: 2_000 })
   */
  static override forRoot(options: Parameters<typeof ConfigurableModuleClass.forRoot>[0]): DynamicModule {
    checkGiven(options, 'forRoot');
    return super.forRoot(options);
  }

  /**
   * Like {@link forRoot}, with the options from `useFactory`, `useClass` or `useExisting`. Put `name` beside these.
   *
   * @example RedisLockModule.forRootAsync({ inject: [Settings], useFactory: (s: Settings) => ({ redis: s.redisUrl }) })
   */
  static override forRootAsync(
    options: Parameters<typeof ConfigurableModuleClass.forRootAsync>[0],
  ): DynamicModule {
    checkAsyncOptions(options);
    return super.forRootAsync(options);
  }

  private readonly logger = new Logger(RedisLockModule.name);
  private leaders: readonly FoundLeader[] = [];

  constructor(
    @Inject(NAME) private readonly name: string | null,
    @Inject(MANAGER) private readonly manager: LockManager,
    @Inject(SERVICE) private readonly locks: LockService,
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(ModuleRef) moduleRef: ModuleRef,
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
    @Inject(RESOLVED) private readonly options: ResolvedOptions,
  ) {
    super();
    // In the constructor, not in a hook: Nest calls no hooks of a lazily loaded module.
    endWithApp(modules, manager);
    // Microservices read the filters before any hook.
    mapOutsideHandlers(moduleRef, host, options.interceptor);
  }

  async onModuleInit(): Promise<void> {
    const lockModules = [...this.modules.values()].filter(
      ({ metatype }) => (metatype as unknown as Record<symbol, unknown>)[MODULE],
    );
    const ofSameName = lockModules.filter((module) => module.getProviderByKey(NAME)?.instance === this.name);
    try {
      if (ofSameName.length > 1) throw importedTwice(this.name);
      this.bind();
      await this.manager.open();
    } catch (error) {
      // Nest runs no shutdown hooks of an app that failed to start, and the given store may be open.
      const managers = ofSameName.map((module) => module.getProviderByKey<LockManager>(MANAGER).instance);
      await Promise.all(managers.map((manager) => manager.close()));
      throw error;
    }
    this.warnWithoutShutdownHooks();
  }

  onApplicationBootstrap(): void {
    this.manager.started();
    for (const leader of this.leaders) this.locks.leadWith(leader);
  }

  private bind(): void {
    const wrappers = wrappersOf(this.discovery, this.modules);
    bindAll(wrappers, this.name ?? undefined, this.locks, this.logger, this.options.context !== undefined);
    this.leaders = leadersIn(wrappers, this.name ?? undefined, this.locks);
  }

  /** Checks at the first lock: by then the app is up, and has had the chance to enable the hooks. */
  private warnWithoutShutdownHooks(): void {
    const stop = this.manager.on('acquired', () => {
      stop();
      if (process.listenerCount('SIGTERM') > 0) return;
      this.logger.warn(
        'app.enableShutdownHooks() was not called: at SIGTERM held locks stay until their lease is over ' +
          `(${this.manager.settings.watchdogMs} ms), instead of being released.`,
      );
    });
  }
}
