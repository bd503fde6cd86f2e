import { Module, type DynamicModule, Inject, type OnModuleInit } from '@nestjs/common';
import {
  APP_INTERCEPTOR,
  DiscoveryModule,
  DiscoveryService,
  HttpAdapterHost,
  ModuleRef,
  ModulesContainer,
} from '@nestjs/core';
import type { LockManager } from '../core/lock-manager.js';
import { SETTING_NAMES, type LockSettingsInput } from '../core/settings/lock-settings.js';
import { LockConfigurationError } from '../core/errors/lock.errors.js';
import { reading, invalidOption } from '../core/settings/option-checks.js';
import { checkNames, type Names } from '../core/settings/option-names.js';
import { isArray } from '../core/errors/describe.js';
import { LockHealthIndicator } from '../lock-health-indicator.js';
import { LockService } from '../lock.service.js';
import { bindAll } from '../locked/lock-binder.js';
import { resolveInterceptor } from '../redis-lock.options.js';
import { getLockServiceToken } from '../redis-lock.tokens.js';
import { endWithApp, groupOf } from '../shutdown-hooks.js';
import { LockInterceptor } from '../transport/lock.interceptor.js';
import { mapOutsideHandlers } from '../transport/outside-handlers.filter.js';
import { createTestingManager, type TestingMode } from './testing-locks.js';

/** Options of `RedisLockTestingModule.forRoot`. Durations are whole ms; `undefined` keeps the default. */
export interface RedisLockTestingOptions extends LockSettingsInput {
  /**
   * `memory`: locks exclude each other in this process. `off`: every lock and permit is granted at once. Default:
   * `memory`.
   */
  readonly mode?: TestingMode;
  /** Names of further lock modules that this one replaces, beside the unnamed one. Default: none. */
  readonly names?: readonly string[];
  /** Function that returns the values for `<<$name>>` in key templates. */
  readonly context?: () => Record<string, unknown>;
}

const OPTION_NAMES: Names<RedisLockTestingOptions> = {
  ...SETTING_NAMES,
  mode: true,
  names: true,
  context: true,
};

const PLACE = 'RedisLockTestingModule.forRoot()';

const checkOptions = (options: RedisLockTestingOptions): void => {
  if (typeof options !== 'object' || options === null || isArray(options)) {
    invalidOption(`The options of ${PLACE}`, "an object such as { mode: 'memory' }", options);
  }
  checkNames(options, PLACE, OPTION_NAMES);
  const { names, context } = options;
  if (names !== undefined && !(isArray(names) && names.every((name) => typeof name === 'string'))) {
    invalidOption('names', 'an array of names', names);
  }
  if (context !== undefined && typeof context !== 'function') {
    invalidOption('context', 'a function that returns an object', context);
  }
};

const withoutForRoot = (): never => {
  throw new LockConfigurationError(
    'RedisLockTestingModule is imported without forRoot(): write RedisLockTestingModule.forRoot().',
  );
};

const MANAGER = Symbol('nest-redis-lock/testing: manager');
const NAMES = Symbol('nest-redis-lock/testing: names');

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
  // forRoot() overrides these providers.
  providers: [MANAGER, LockService, NAMES].map((provide) => ({ provide, useFactory: withoutForRoot })),
})
export class RedisLockTestingModule implements OnModuleInit {
  constructor(
    @Inject(MANAGER) manager: LockManager,
    @Inject(LockService) private readonly locks: LockService,
    @Inject(NAMES) private readonly names: readonly string[],
    @Inject(DiscoveryService) private readonly discovery: DiscoveryService,
    @Inject(ModulesContainer) modules: ModulesContainer,
    @Inject(ModuleRef) moduleRef: ModuleRef,
    @Inject(HttpAdapterHost) host: HttpAdapterHost,
  ) {
    endWithApp(modules, manager);
    mapOutsideHandlers(moduleRef, host, resolveInterceptor());
  }

  static forRoot(options: RedisLockTestingOptions = {}): DynamicModule {
    reading(`The options of ${PLACE}`, () => checkOptions(options));
    const { mode = 'memory', names = [], context, ...settings } = options;
    const tokens = [getLockServiceToken(), ...names.map((name) => getLockServiceToken(name))];
    return {
      module: RedisLockTestingModule,
      global: true,
      providers: [
        {
          provide: MANAGER,
          useFactory: (modules: ModulesContainer) => createTestingManager(mode, settings, groupOf(modules)),
          inject: [ModulesContainer],
        },
        { provide: NAMES, useValue: names },
        {
          provide: LockService,
          useFactory: (manager: LockManager) => new LockService(manager, context),
          inject: [MANAGER],
        },
        LockHealthIndicator,
        ...tokens.map((token) => ({ provide: token, useExisting: LockService })),
        { provide: APP_INTERCEPTOR, useFactory: () => new LockInterceptor(resolveInterceptor()) },
      ],
      exports: [LockService, LockHealthIndicator, ...tokens],
    };
  }

  onModuleInit(): void {
    const wrappers = [...this.discovery.getProviders(), ...this.discovery.getControllers()];
    for (const name of [undefined, ...this.names])
      bindAll(wrappers, name, this.locks, { warn: () => undefined, log: () => undefined });
  }
}
