import { LockConfigurationError } from './core/errors/lock.errors.js';
import {
  DEFAULT_SETTINGS,
  resolveSettings,
  SETTING_NAMES,
  type LockSettings,
  type LockSettingsInput,
} from './core/settings/lock-settings.js';
import { checkMs, reading, refuse } from './core/settings/option-checks.js';
import { checkNames, type Names } from './core/settings/option-names.js';
import type { LockStore } from './core/seam/lock-store.js';
import { isArray } from './core/errors/describe.js';
import type { RedisSource } from './stores/redis/topology-of.js';
import { checkStoreOptions } from './store.options.js';
import type { ReplicasOptions } from './stores/redis/replicas/replicas.js';

/** How lock errors are answered over HTTP. */
export interface LockInterceptorOptions {
  /** The status for "taken". Default: 423 (Locked). */
  readonly takenStatus?: number;
  /** The `Retry-After` header for "taken", in seconds. Default: 1. */
  readonly retryAfterSeconds?: number;
}

/** Options of `RedisLockModule.forRoot`. Durations are whole milliseconds; `undefined` keeps a default. */
export interface RedisLockModuleOptions extends LockSettingsInput {
  /**
   * Where Redis is: a URL, ioredis options, an ioredis `Redis` client (of which the address is taken; the connections
   * are the module's own), or a function that makes clients, a new one at each call. For a Redis Cluster an ioredis
   * `Cluster`, or options with some of its servers in `cluster`. A list of servers that know nothing of each other is a
   * quorum: a majority of them has to give each lock. Either this or `store`.
   */
  readonly redis?: RedisSource | readonly RedisSource[];
  /** Another place for the holds, instead of Redis. The module closes it when the app stops. */
  readonly store?: LockStore;
  /**
   * With `redis` only: how long one command may take, in ms, and as long for connecting before it; after that the caller
   * gets a `LockStoreError`. Default: 2,000, or a third of `watchdogMs` where that is less. Another `store` has a time-out of
   * its own, on which this has no effect.
   */
  readonly commandTimeoutMs?: number;
  /**
   * With `redis` only: a lock counts as taken, and as renewed, once so many replicas have it (`min`), which are waited for
   * `timeoutMs` (default: 100). Else it is given back, and the caller gets a `LockStoreError`. Default: replicas are not
   * waited for.
   */
  readonly replicas?: ReplicasOptions;
  /**
   * With a Redis Cluster only: whether messages are sharded, as Redisson calls it. All that share locks have to do the
   * same. Default: where the servers can, from Redis 7 on, as Redisson 4 does unless told otherwise.
   */
  readonly shardedPubSub?: boolean;
  /**
   * With a list in `redis` only: for how long a server that was started counts as failed, in ms, since it may have forgotten
   * locks. 0: not at all, for servers that have all on disk before they answer. Default: the longest lease that this process
   * asked for before the start and that had not ended then, and at least `watchdogMs`.
   */
  readonly delayAfterRestartMs?: number;
  /**
   * Default: true: lock errors are mapped for HTTP, RPC, WebSockets and GraphQL, waits end when the HTTP client leaves,
   * and keys may have `<<$request…>>`. False: none of that. An object is true with other answers.
   */
  readonly interceptor?: boolean | LockInterceptorOptions;
  /** Values for `<<$name>>` in key templates, asked at every call, on every transport. */
  readonly context?: () => Record<string, unknown>;
}

/** What a module has to know before its options are there. */
export interface RedisLockModuleExtras {
  /** More instances beside the unnamed one: `@InjectLockService(name)`, `@Locked(key, { service: name })`. */
  name?: string;
}

/** The same with every default filled in. */
export interface ResolvedOptions {
  readonly settings: LockSettings;
  /** Several are the nodes of a quorum. */
  readonly redis: RedisSource | readonly RedisSource[] | undefined;
  readonly store: LockStore | undefined;
  readonly commandTimeoutMs: number;
  readonly replicas: ReplicasOptions | undefined;
  readonly shardedPubSub: boolean | undefined;
  readonly delayAfterRestartMs: number | undefined;
  readonly interceptor: Required<LockInterceptorOptions> | undefined;
  readonly context: (() => Record<string, unknown>) | undefined;
}

const DEFAULT_COMMAND_TIMEOUT_MS = 2_000;

const MODULE_NAMES: Names<RedisLockModuleOptions> = {
  ...SETTING_NAMES,
  redis: true,
  store: true,
  commandTimeoutMs: true,
  replicas: true,
  shardedPubSub: true,
  delayAfterRestartMs: true,
  interceptor: true,
  context: true,
};

const INTERCEPTOR_NAMES: Names<LockInterceptorOptions> = { takenStatus: true, retryAfterSeconds: true };

const ASYNC_NAMES: Readonly<Record<string, true>> = {
  useFactory: true,
  useClass: true,
  useExisting: true,
  inject: true,
  imports: true,
  provideInjectionTokensFrom: true,
  name: true,
};

/** Code without types can leave them out. */
export const checkGiven = (options: unknown, method: 'forRoot' | 'forRootAsync'): void => {
  if (typeof options === 'object' && options !== null && !isArray(options)) return;
  const example =
    method === 'forRoot' ? '{ redis: "redis://…" }' : '{ useFactory: () => ({ redis: "redis://…" }) }';
  throw new LockConfigurationError(`RedisLockModule.${method}() needs options: ${method}(${example}).`);
};

/** What stands beside the factory; what it gives is checked when it has run. */
export const checkAsyncOptions = (options: object): void => {
  checkGiven(options, 'forRootAsync');
  const own =
    'the options come from what its factory returns: forRootAsync({ useFactory: () => ({ redis: "redis://…" }) })';
  reading('The options of RedisLockModule.forRootAsync()', () => {
    const misplaced = Object.keys(options).find((name) => Object.hasOwn(MODULE_NAMES, name));
    if (misplaced !== undefined) {
      throw new LockConfigurationError(
        `${misplaced} is no option of RedisLockModule.forRootAsync() itself; ${own}.`,
      );
    }
    checkNames(options, 'RedisLockModule.forRootAsync()', ASYNC_NAMES);
    const { useFactory, useClass, useExisting } = options as Record<string, unknown>;
    if (useFactory === undefined && useClass === undefined && useExisting === undefined) {
      throw new LockConfigurationError(
        `RedisLockModule.forRootAsync() has no useFactory, useClass or useExisting; ${own}.`,
      );
    }
  });
};

/** Stands where `forRoot()` puts what it was given. */
export const withoutForRoot = (): never => {
  throw new LockConfigurationError(
    'RedisLockModule is imported without forRoot(): write RedisLockModule.forRoot({ redis: "redis://…" }) in the ' +
      'root module. It is global, so other modules need not import it.',
  );
};

/**
 * Checks the options of the module, wherever they come from, and fills in the defaults. Throws `LockConfigurationError`
 * naming the option that is wrong. What stands beside a factory is checked by {@link checkAsyncOptions}, what `redis`
 * leads to by the store, and the options of a call by `resolveCall`.
 */
export const resolveOptions = (options: RedisLockModuleOptions): ResolvedOptions => {
  if (typeof options !== 'object' || options === null || isArray(options)) {
    throw new LockConfigurationError('RedisLockModule needs options: forRoot({ redis: "redis://…" }).');
  }
  return reading('The options of RedisLockModule', () => readOptions(options));
};

const readOptions = (options: RedisLockModuleOptions): ResolvedOptions => {
  checkNames(options, 'RedisLockModule', MODULE_NAMES);
  const { redis, store, context, replicas, shardedPubSub } = options;
  const delayAfterRestartMs = checkStoreOptions(options);
  if (context !== undefined && typeof context !== 'function') {
    refuse('context', 'a function that returns an object', context);
  }
  const settings = resolveSettings(options);
  const commandTimeoutMs =
    checkMs('commandTimeoutMs', options.commandTimeoutMs, { min: 1, max: settings.watchdogMs - 1 }) ??
    Math.min(DEFAULT_COMMAND_TIMEOUT_MS, Math.floor(settings.watchdogMs / 3));
  const { interceptor = true } = options;
  if (
    typeof interceptor !== 'boolean' &&
    (typeof interceptor !== 'object' || interceptor === null || isArray(interceptor))
  ) {
    refuse('interceptor', 'true, false, or an object with its options', interceptor);
  }
  return {
    settings: redis === undefined ? settings : { ...settings, leastWatchdogMs: leastFor(commandTimeoutMs) },
    redis,
    store,
    commandTimeoutMs,
    replicas,
    shardedPubSub,
    delayAfterRestartMs,
    interceptor:
      interceptor === false ? undefined : resolveInterceptor(interceptor === true ? {} : interceptor),
    context,
  };
};

const leastFor = (commandTimeoutMs: number): number =>
  Math.max(DEFAULT_SETTINGS.leastWatchdogMs, commandTimeoutMs + 1);

export const resolveInterceptor = (given: LockInterceptorOptions = {}): Required<LockInterceptorOptions> => {
  const { takenStatus = 423, retryAfterSeconds = 1 } = reading('interceptor', () => {
    checkNames(given, 'interceptor', INTERCEPTOR_NAMES);
    return { takenStatus: given.takenStatus, retryAfterSeconds: given.retryAfterSeconds };
  });
  if (!Number.isInteger(takenStatus) || takenStatus < 400 || takenStatus > 599) {
    refuse('interceptor.takenStatus', 'a status from 400 to 599', takenStatus);
  }
  if (!Number.isInteger(retryAfterSeconds) || retryAfterSeconds < 0) {
    refuse('interceptor.retryAfterSeconds', 'a whole number of seconds', retryAfterSeconds);
  }
  return { takenStatus, retryAfterSeconds };
};
