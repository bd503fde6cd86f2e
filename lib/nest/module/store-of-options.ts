import { isArray } from '../../core/util/describe.js';
import { LockConfigurationError, LockKeyError } from '../../core/errors/lock.errors.js';
import type { LockStore } from '../../core/seam/lock-store.js';
import type * as redis from '../../entries/redis.js';
import type { ResolvedOptions } from './redis-lock.options.js';
import type { RedisStore } from '../../stores/redis/redis.store.js';
import type { RedisSource } from '../../stores/redis/topology-of.js';

type RedisStores = typeof redis;

/** Loads the stores on Redis. An app with another store need not have ioredis. */
const redisStores = async (): Promise<RedisStores> => {
  try {
    // First by itself: where the stores could not load it, Node 20 would throw a second time, out of reach.
    await import('ioredis');
    return await import('../../entries/redis.js');
  } catch (cause) {
    throw new LockConfigurationError(
      'redis needs the package ioredis, which cannot be loaded: npm install ioredis.',
      { cause },
    );
  }
};

/** Resolves with the store that the module's options describe. It connects at the first request. */
export const storeOf = async (options: ResolvedOptions): Promise<LockStore> =>
  storeOn(options.store ? undefined : await redisStores(), options);

/** @param stores not needed for the options of another store */
export const storeOn = (stores: RedisStores | undefined, options: ResolvedOptions): LockStore => {
  const store = options.store ?? ownStoreOf(stores!, options);
  try {
    checkPrefix(store, options.settings.keyPrefix);
    if (options.settings.fencing === 'redisson' && !store.hasCounters)
      throw new LockConfigurationError(
        `fencing: 'redisson': ${store.name} does not count the tokens of a key, as one Redis does. Leave the option out.`,
      );
  } catch (error) {
    if (!options.store) void store.close();
    throw error;
  }
  return store;
};

const ownStoreOf = (stores: RedisStores, options: ResolvedOptions): LockStore => {
  const { redis, commandTimeoutMs } = options;
  if (isArray(redis)) return quorumOf(stores, redis, options);
  return new stores.RedisStore({ redis: redis as RedisSource, commandTimeoutMs });
};

/** Reports a prefix that makes every key invalid, before the first key. */
const checkPrefix = (store: LockStore, keyPrefix: string): void => {
  try {
    store.checkKey?.(`${keyPrefix}key`);
  } catch (error) {
    if (!(error instanceof LockKeyError)) throw error;
    throw new LockConfigurationError(
      `keyPrefix, or that of redis, makes of every key one that is refused. ${error.message}`,
      { cause: error },
    );
  }
};

const quorumOf = (
  stores: RedisStores,
  sources: readonly RedisSource[],
  options: ResolvedOptions,
): LockStore => {
  const nodes: RedisStore[] = [];
  try {
    for (const [i, source] of sources.entries()) nodes.push(nodeOf(stores, source, i, options));
    return new stores.QuorumStore({ nodes });
  } catch (error) {
    for (const node of nodes) void node.close();
    throw error;
  }
};

const nodeOf = (
  stores: RedisStores,
  source: RedisSource,
  i: number,
  { commandTimeoutMs }: ResolvedOptions,
): RedisStore => {
  try {
    return new stores.RedisStore({ redis: source, commandTimeoutMs });
  } catch (error) {
    if (!(error instanceof LockConfigurationError)) throw error;
    throw new LockConfigurationError(error.message.replace(/^redis\b/, `redis[${i}]`), { cause: error });
  }
};
