import { isArray } from './core/errors/describe.js';
import { LockConfigurationError } from './core/errors/lock.errors.js';
import type { KindStore, LockStore } from './core/seam/lock-store.js';
import { checkMs, invalidOption } from './core/settings/option-checks.js';

/** Options of the module that choose the store. */
interface StoreOptions {
  readonly redis?: unknown;
  readonly store?: unknown;
  readonly replicas?: unknown;
  readonly shardedPubSub?: unknown;
  readonly delayAfterRestartMs?: unknown;
  readonly fencing?: unknown;
}

/** Checks the options that choose the store. Returns `delayAfterRestartMs`. */
export const checkStoreOptions = (options: StoreOptions): number | undefined => {
  const { redis, store, replicas, shardedPubSub } = options;
  if (redis !== undefined && store !== undefined) {
    throw new LockConfigurationError(
      'Both redis and store are given. Keep the one that shall hold the locks.',
    );
  }
  if (redis === undefined && store === undefined) {
    throw new LockConfigurationError('Neither redis nor store is given: forRoot({ redis: "redis://…" }).');
  }
  if (store !== undefined && !isStore(store)) {
    invalidOption('store', 'a LockStore, such as new RedisStore({ redis })', store);
  }
  if (store !== undefined && replicas !== undefined) {
    throw new LockConfigurationError(
      'replicas goes with redis, but store is given. A store of your own waits for what it needs by itself.',
    );
  }
  if (shardedPubSub !== undefined && (store !== undefined || isArray(redis))) {
    throw new LockConfigurationError(
      'shardedPubSub belongs to a Redis Cluster in redis. Leave it out for anything else.',
    );
  }
  const delayAfterRestartMs = checkMs('delayAfterRestartMs', options.delayAfterRestartMs);
  if (isArray(redis)) checkQuorum(options, redis);
  else if (delayAfterRestartMs !== undefined) {
    throw new LockConfigurationError(
      'delayAfterRestartMs belongs to a quorum, where redis is a list of servers. One server that restarts is everything there is.',
    );
  }
  return delayAfterRestartMs;
};

const checkQuorum = ({ replicas, fencing }: StoreOptions, redis: readonly unknown[]): void => {
  if (redis.length < 2) {
    throw new LockConfigurationError(
      `redis is a list of ${redis.length}: a quorum needs at least 2 servers, better 3 or 5. For one server give it by itself.`,
    );
  }
  if (replicas !== undefined) {
    throw new LockConfigurationError(
      'replicas goes with one Redis, but redis is a list: the servers of a quorum have no replicas that could take over.',
    );
  }
  if (fencing === 'redisson') {
    throw new LockConfigurationError(
      "fencing: 'redisson' goes with one Redis: Java counts its tokens on one server, and redis is a list of several.",
    );
  }
};

const STORE_METHODS: readonly (keyof LockStore)[] = ['inspect', 'forceUnlock', 'ping', 'close'];
const KIND_METHODS: readonly (keyof KindStore)[] = ['acquire', 'extendMany', 'release', 'watch'];

const hasMethods = <T extends object>(value: T, names: readonly (keyof T)[]): boolean =>
  names.every((name) => typeof value[name] === 'function');

/**
 * Returns true for an object with the methods of a store. `instanceof` fails for a store of another copy of this
 * package, or of another package.
 */
const isStore = (value: unknown): boolean => {
  try {
    const store = value as LockStore;
    const kinds = Object.values(store.kinds) as KindStore[];
    return (
      kinds.length > 0 &&
      kinds.every((kind) => hasMethods(kind, KIND_METHODS)) &&
      hasMethods(store, STORE_METHODS)
    );
  } catch {
    return false;
  }
};
