import { LockConfigurationError } from './core/lock.errors.js';
import { resolveSettings, type LockSettings, type LockSettingsInput } from './core/lock-settings.js';
import { checkMs, reading, refuse } from './core/option-checks.js';
import type { LockStore } from './core/lock-store.js';
import { isArray } from './core/shown.js';
import type { RedisSource } from './stores/redis/redis-settings.js';

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
   * are the module's own), or a function that makes clients, a new one at each call. Either this or `store`.
   */
  readonly redis?: RedisSource;
  /** Another place for the holds, instead of Redis. The module closes it when the app stops. */
  readonly store?: LockStore;
  /**
   * How long one command may take, connecting included; after that the caller gets a `LockStoreError`.
   * Default: 2,000, or a third of `watchdogMs` where that is less.
   */
  readonly commandTimeoutMs?: number;
  /** False leaves lock errors as they are. Default: true: they are mapped for HTTP, RPC, WebSockets, GraphQL. */
  readonly interceptor?: boolean | LockInterceptorOptions;
  /** Values for `<<$name>>` in key templates, asked at every call, on every transport. */
  readonly context?: () => Record<string, unknown>;
}

/** The same with every default filled in. */
export interface ResolvedOptions {
  readonly settings: LockSettings;
  readonly redis: RedisSource | undefined;
  readonly store: LockStore | undefined;
  readonly commandTimeoutMs: number;
  readonly interceptor: Required<LockInterceptorOptions> | undefined;
  readonly context: (() => Record<string, unknown>) | undefined;
}

const DEFAULT_COMMAND_TIMEOUT_MS = 2_000;

/** The one place where options are checked. Throws `LockConfigurationError` naming the option that is wrong. */
export const resolveOptions = (options: RedisLockModuleOptions): ResolvedOptions => {
  if (typeof options !== 'object' || options === null || isArray(options)) {
    throw new LockConfigurationError('RedisLockModule needs options: forRoot({ redis: "redis://…" }).');
  }
  return reading('The options of RedisLockModule', () => readOptions(options));
};

const readOptions = (options: RedisLockModuleOptions): ResolvedOptions => {
  const { redis, store, context } = options;
  if (redis !== undefined && store !== undefined) {
    throw new LockConfigurationError(
      'Both redis and store are given. Keep the one that shall hold the locks.',
    );
  }
  if (redis === undefined && store === undefined) {
    throw new LockConfigurationError('Neither redis nor store is given: forRoot({ redis: "redis://…" }).');
  }
  if (store !== undefined && !isStore(store)) {
    refuse('store', 'a LockStore, such as new RedisStore({ redis })', store);
  }
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
    settings,
    redis,
    store,
    commandTimeoutMs,
    interceptor:
      interceptor === false ? undefined : resolveInterceptor(interceptor === true ? {} : interceptor),
    context,
  };
};

const STORE_METHODS: readonly (keyof LockStore)[] = [
  'acquire', 'extendMany', 'release', 'watch', 'inspect', 'forceUnlock', 'ping', 'close',
]; // prettier-ignore

/** Whether it has what a store has; one of the other build or of another package is no instance of anything here. */
const isStore = (value: unknown): boolean => {
  try {
    const store = value as LockStore;
    return (
      typeof store.kinds.has === 'function' &&
      STORE_METHODS.every((name) => typeof store[name] === 'function')
    );
  } catch {
    return false;
  }
};

export const resolveInterceptor = (given: LockInterceptorOptions = {}): Required<LockInterceptorOptions> => {
  const { takenStatus = 423, retryAfterSeconds = 1 } = reading('interceptor', () => ({
    takenStatus: given.takenStatus,
    retryAfterSeconds: given.retryAfterSeconds,
  }));
  if (!Number.isInteger(takenStatus) || takenStatus < 400 || takenStatus > 599) {
    refuse('interceptor.takenStatus', 'a status from 400 to 599', takenStatus);
  }
  if (!Number.isInteger(retryAfterSeconds) || retryAfterSeconds < 0) {
    refuse('interceptor.retryAfterSeconds', 'a whole number of seconds', retryAfterSeconds);
  }
  return { takenStatus, retryAfterSeconds };
};
