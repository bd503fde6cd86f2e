import {
  ConfigurableModuleBuilder,
  Inject,
  Module,
  type DynamicModule,
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
import { printsOnly } from '../core/util/printing.js';
import { leadersIn } from '../nest/leader/leader-methods.js';
import { LockHealthIndicator } from '../nest/module/lock-health-indicator.js';
import { LockService } from '../nest/service/lock.service.js';
import { bindAll, wrappersOf } from '../nest/locked/lock-binder.js';
import { checkAsyncOptions, resolveInterceptor } from '../nest/module/redis-lock.options.js';
import { getLockServiceToken } from '../nest/module/redis-lock.tokens.js';
import { endWithApp, groupOf } from '../nest/module/shutdown-hooks.js';
import { LockInterceptor } from '../nest/transport/lock.interceptor.js';
import { mapOutsideHandlers } from '../nest/transport/outside-handlers.filter.js';
import { TestingLockService, TestingProcesses } from './testing-lock.service.js';
import {
  checkModuleNames,
  checkTestingOptions,
  resolveTestingOptions,
  TESTING_MODULE,
  withoutForRoot,
  type RedisLockTestingAsyncOptions,
  type RedisLockTestingOptions,
} from './testing-options.js';

const PROCESSES = Symbol('nest-redis-lock/testing: processes');
const NAMES = Symbol('nest-redis-lock/testing: names');

/** Options of the module that stand beside a factory. */
interface Extras {
  /** Names of further lock modules that this one replaces, beside the unnamed one. Default: none. */
  names?: readonly string[] | undefined;
}

const withNames = (definition: DynamicModule, names: readonly string[] = []): DynamicModule => {
  const tokens = [LockService, getLockServiceToken(), ...names.map((name) => getLockServiceToken(name))];
  return {
    ...definition,
    global: true,
    providers: [
      ...(definition.providers ?? []),
      { provide: NAMES, useValue: names },
      LockHealthIndicator,
      ...tokens.map((token) => ({ provide: token, useExisting: TestingLockService })),
    ],
    exports: [TestingLockService, LockHealthIndicator, ...tokens],
  };
};

const { ConfigurableModuleClass, MODULE_OPTIONS_TOKEN } =
  new ConfigurableModuleBuilder<RedisLockTestingAsyncOptions>()
    .setClassMethodName('forRoot')
    .setFactoryMethodName('createRedisLockOptions')
    .setExtras<Extras>({ names: undefined }, (definition, { names }) => withNames(definition, names))
    .build();

/**
 * Replaces `RedisLockModule` in tests: the same behaviour without Redis.
 *
 * @example
 * const app = await Test.createTestingModule({
 *   imports: [RedisLockTestingModule.forRoot({ mode: 'memory' })],
 *   providers: [OrderService],
 * }).compile();
 */
@Module({
  imports: [DiscoveryModule],
  providers: [
    // forRoot() overrides these two providers.
    { provide: NAMES, useFactory: withoutForRoot },
    { provide: MODULE_OPTIONS_TOKEN, useFactory: withoutForRoot },
    {
      provide: PROCESSES,
      useFactory: (options: RedisLockTestingAsyncOptions, modules: ModulesContainer) =>
        new TestingProcesses(resolveTestingOptions(options), groupOf(modules)),
      inject: [MODULE_OPTIONS_TOKEN, ModulesContainer],
    },
    {
      provide: TestingLockService,
      useFactory: (processes: TestingProcesses) => new TestingLockService(processes),
      inject: [PROCESSES],
    },
    { provide: APP_INTERCEPTOR, useFactory: () => new LockInterceptor(resolveInterceptor()) },
  ],
})
export class RedisLockTestingModule extends ConfigurableModuleClass implements OnModuleInit {
  static {
    printsOnly(this, ({ names, locks }) => ({ names, locks }));
  }

  /**
   * Registers locks in memory; see {@link RedisLockTestingOptions}. All options have defaults.
   *
   * @throws LockConfigurationError for an invalid option
   */
  static override forRoot(options: RedisLockTestingOptions = {}): DynamicModule {
    checkTestingOptions(options);
    return super.forRoot(options);
  }

  /**
   * Like {@link forRoot}, with the options from `useFactory`, `useClass` or `useExisting`. Put `names` beside these.
   *
   * @throws LockConfigurationError for an invalid option beside the factory, and at the start for one that it returns
   *
   * @example RedisLockTestingModule.forRootAsync({ inject: [Cls], useFactory: (cls: Cls) => ({ context: () => cls.get() }) })
   */
  static override forRootAsync(
    options: Parameters<typeof ConfigurableModuleClass.forRootAsync>[0],
  ): DynamicModule {
    checkAsyncOptions(options, TESTING_MODULE);
    checkModuleNames(options.names);
    return super.forRootAsync(options);
  }

  constructor(
    @Inject(PROCESSES) processes: TestingProcesses,
    @Inject(TestingLockService) private readonly locks: TestingLockService,
    @Inject(NAMES) private readonly names: readonly string[],
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(ModulesContainer) private readonly modules: ModulesContainer,
    @Inject(ModuleRef) moduleRef: ModuleRef,
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
  ) {
    super();
    endWithApp(modules, processes);
    mapOutsideHandlers(moduleRef, host, resolveInterceptor());
  }

  onModuleInit(): void {
    const wrappers = wrappersOf(this.discovery, this.modules);
    for (const name of [undefined, ...this.names]) {
      bindAll(wrappers, name, this.locks, { warn: () => undefined, log: () => undefined });
      for (const leader of leadersIn(wrappers, name, this.locks)) this.locks.leadWith(leader);
    }
  }
}
