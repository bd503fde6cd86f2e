import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import {
  DEFAULT_COMMAND_TIMEOUT_MS,
  DEFAULT_SETTINGS,
  resolveSettings,
  type LockSettings,
  type LockSettingsInput,
} from '../../core/settings/lock-settings.js';
import { checkChoice, checkObject, reading, invalidOption } from '../../core/settings/option-checks.js';
import { checkNames, type Names } from '../../core/settings/option-names.js';
import { namesOf } from '../../core/settings/option-table.js';
import type { LockStore } from '../../core/seam/lock-store.js';
import { isArray } from '../../core/util/describe.js';
import type { RedisSource } from '../../stores/redis/topology-of.js';
import { checkStoreOptions } from './store.options.js';

/** Options of the HTTP replies for lock errors. */
export interface LockInterceptorOptions {
  /** HTTP status for "taken". Default: 423 (Locked). */
  readonly takenStatus?: number | undefined;
  /**
   * `Retry-After` header for "taken", in whole seconds. Default: `retryAfterMs` of the error, from 1 to 60 s; 1 if
   * nothing was measured.
   */
  readonly retryAfterSeconds?: number | undefined;
}

/** Options of `RedisLockModule.forRoot`. Durations are whole ms; `undefined` keeps the default. */
export interface RedisLockModuleOptions extends LockSettingsInput {
  /**
   * Address of Redis: a URL, ioredis options, an ioredis `Redis` client, or a function that creates a new client at
   * each call. Only the address of a given client is used; the module opens its own connections. For a Redis Cluster,
   * pass an ioredis `Cluster`, or options that list some of its servers in `cluster`. A list of independent servers is
   * a quorum: a majority of them has to grant each lock. Further options of Redis are those of a `RedisStore`. Give either
   * `redis` or `store`.
   */
  readonly redis?: RedisSource | readonly RedisSource[] | undefined;
  /** Store that keeps the holds instead of Redis. The module closes it when the app stops. */
  readonly store?: LockStore | undefined;
  /**
   * True: lock errors are mapped for HTTP, RPC, WebSockets and GraphQL, and the wait of a locked HTTP handler ends when
   * its client disconnects. An object means true, with other HTTP replies. False: none of that. Default: true.
   */
  readonly interceptor?: boolean | LockInterceptorOptions | undefined;
  /**
   * Function that returns the values for `<<$name>>` in key templates. It is called at every call, on every transport.
   * In a task of a shared queue the asynchronous context may be that of another request, and so may its values.
   */
  readonly context?: (() => Record<string, unknown>) | undefined;
  /**
   * Whether this process contends for leaderships: methods with `@Leader`, and `locks.lead`. False is for scripts and
   * migrations that load the whole app. Default: true.
   */
  readonly leaders?: boolean | undefined;
}

/** Options that the module needs before its other options are resolved. */
export interface RedisLockModuleExtras {
  /**
   * Name of a further instance: `@InjectLockService(name)`, `@Locked(key, { service: name })`. Default: the unnamed
   * one.
   */
  name?: string | undefined;
}

/** Options of the HTTP replies with every default filled in. */
export interface ResolvedInterceptor {
  readonly takenStatus: number;
  /** Undefined: as measured. */
  readonly retryAfterSeconds: number | undefined;
}

/** Options of the module with every default filled in. */
export interface ResolvedOptions {
  readonly settings: LockSettings;
  /** A list is the nodes of a quorum. */
  readonly redis: RedisSource | readonly RedisSource[] | undefined;
  readonly store: LockStore | undefined;
  /** Time-out of the store that is made for `redis`. */
  readonly commandTimeoutMs: number;
  readonly interceptor: ResolvedInterceptor | undefined;
  readonly context: (() => Record<string, unknown>) | undefined;
  readonly leaders: boolean;
}

const MODULE_NAMES = namesOf('settings', 'service', 'module') satisfies Names<RedisLockModuleOptions>;

/** Place where the options of a service are given, for messages. */
export interface OptionsPlace {
  readonly owner: string;
  readonly call: string;
  readonly names: Readonly<Record<string, true>>;
}

const IN_MODULE: OptionsPlace = { owner: 'RedisLockModule', call: 'forRoot', names: MODULE_NAMES };

/** Options of a service without Nest: it has neither handlers nor decorated methods. */
export const WITHOUT_NEST: OptionsPlace = {
  owner: 'createLockService',
  call: 'createLockService',
  names: namesOf('settings', 'service'),
};

const INTERCEPTOR_NAMES = namesOf('interceptor') satisfies Names<LockInterceptorOptions>;

const ASYNC_NAMES: Readonly<Record<string, true>> = {
  useFactory: true,
  useClass: true,
  useExisting: true,
  inject: true,
  imports: true,
  provideInjectionTokensFrom: true,
};

/** Module with `forRoot` and `forRootAsync`, for messages and checks. */
export interface ModulePlace {
  readonly owner: string;
  /** Options of `forRoot` in an example. */
  readonly example: string;
  /** Names of the options that a factory returns. */
  readonly names: Readonly<Record<string, true>>;
  /** Name of the option that stands beside the factory. */
  readonly beside: string;
}

const MODULE: ModulePlace = {
  owner: 'RedisLockModule',
  example: '{ redis: "redis://…" }',
  names: MODULE_NAMES,
  beside: 'name',
};

/** Checks that options were passed: plain JavaScript can leave them out. */
export const checkGiven = (
  options: unknown,
  method: 'forRoot' | 'forRootAsync',
  { owner, example }: ModulePlace = MODULE,
): void => {
  if (typeof options === 'object' && options !== null && !isArray(options)) return;
  const given = method === 'forRoot' ? example : `{ useFactory: () => (${example}) }`;
  throw new LockConfigurationError(`${owner}.${method}() needs options: ${method}(${given}).`);
};

/** Checks what stands beside the factory. The options that the factory returns are checked after it has run. */
export const checkAsyncOptions = (options: object, place: ModulePlace = MODULE): void => {
  checkGiven(options, 'forRootAsync', place);
  const { owner, example, names, beside } = place;
  const own = `the options come from what its factory returns: forRootAsync({ useFactory: () => (${example}) })`;
  reading(`The options of ${owner}.forRootAsync()`, () => {
    const misplaced = Object.keys(options).find((name) => Object.hasOwn(names, name));
    if (misplaced !== undefined)
      throw new LockConfigurationError(
        `${misplaced} is no option of ${owner}.forRootAsync() itself; ${own}.`,
      );
    checkNames(options, `${owner}.forRootAsync()`, { ...ASYNC_NAMES, [beside]: true });
    const { useFactory, useClass, useExisting } = options as Record<string, unknown>;
    if (useFactory === undefined && useClass === undefined && useExisting === undefined) {
      throw new LockConfigurationError(
        `${owner}.forRootAsync() has no useFactory, useClass or useExisting; ${own}.`,
      );
    }
  });
};

/** Factory of a module that was imported without `forRoot()`, which would override it. */
export const withoutForRoot = (): never => {
  throw new LockConfigurationError(
    'RedisLockModule is imported without forRoot(): write RedisLockModule.forRoot({ redis: "redis://…" }) in the ' +
      'root module. It is global, so other modules need not import it.',
  );
};

/**
 * Checks the options of the module and fills in the defaults. Other checks are elsewhere: what stands beside a factory
 * in {@link checkAsyncOptions}, the contents of `redis` in the store, the options of a call in `resolveCall`.
 *
 * @throws LockConfigurationError naming the invalid option
 */
export const resolveOptions = (
  options: RedisLockModuleOptions,
  place: OptionsPlace = IN_MODULE,
): ResolvedOptions => {
  const { owner, call } = place;
  if (typeof options !== 'object' || options === null || isArray(options)) {
    throw new LockConfigurationError(`${owner} needs options: ${call}({ redis: "redis://…" }).`);
  }
  return reading(`The options of ${owner}`, () => readOptions(options, place));
};

const readOptions = (
  options: RedisLockModuleOptions,
  { owner, call, names }: OptionsPlace,
): ResolvedOptions => {
  checkNames(options, owner, names);
  const { redis, store, context } = options;
  checkStoreOptions(options, call);
  if (context !== undefined && typeof context !== 'function') {
    invalidOption('context', 'a function that returns an object', context);
  }
  const settings = resolveSettings(options);
  const commandTimeoutMs = Math.min(DEFAULT_COMMAND_TIMEOUT_MS, Math.floor(settings.watchdogMs / 3));
  const { interceptor = true } = options;
  return {
    settings: {
      ...settings,
      minWatchdogMs: store ? minWatchdogOver(store, settings) : minWatchdogFor(commandTimeoutMs),
    },
    redis,
    store,
    commandTimeoutMs,
    interceptor:
      interceptor === false ? undefined : resolveInterceptor(interceptor === true ? {} : interceptor),
    context,
    leaders: checkChoice('leaders', options.leaders, [true, false]) ?? true,
  };
};

const minWatchdogFor = (commandTimeoutMs: number): number =>
  Math.max(DEFAULT_SETTINGS.minWatchdogMs, commandTimeoutMs + 1);

/** Checks that a renewal is answered, or fails, before its lease is over. */
const minWatchdogOver = (
  { name, commandTimeoutMs = 0 }: Partial<LockStore>,
  settings: LockSettings,
): number => {
  if (settings.watchdogMs > commandTimeoutMs) return minWatchdogFor(commandTimeoutMs);
  throw new LockConfigurationError(
    `watchdogMs must be more than the time-out of a command of ${name}, ${commandTimeoutMs} ms, but is ${settings.watchdogMs}.`,
  );
};

export const resolveInterceptor = (given: LockInterceptorOptions = {}): ResolvedInterceptor => {
  const { takenStatus = 423, retryAfterSeconds } = reading('interceptor', () => {
    checkObject('interceptor', 'true, false, or an object with its options', given);
    checkNames(given, 'interceptor', INTERCEPTOR_NAMES);
    return { takenStatus: given.takenStatus, retryAfterSeconds: given.retryAfterSeconds };
  });
  if (!Number.isInteger(takenStatus) || takenStatus < 400 || takenStatus > 599) {
    invalidOption('interceptor.takenStatus', 'a status from 400 to 599', takenStatus);
  }
  if (retryAfterSeconds !== undefined && (!Number.isInteger(retryAfterSeconds) || retryAfterSeconds < 0)) {
    invalidOption('interceptor.retryAfterSeconds', 'a whole number of seconds', retryAfterSeconds);
  }
  return { takenStatus, retryAfterSeconds };
};
