import { formatValue, isArray } from './core/errors/describe.js';
import { LockConfigurationError } from './core/errors/lock.errors.js';
import type { KindStore, LockStore } from './core/seam/lock-store.js';
import type { PollTraits } from './core/seam/kind-traits.js';
import { checkChoice, checkMs } from './core/settings/option-checks.js';
import { FOREIGN_HOLDS } from './core/settings/foreign-hold.js';

/** Options of the module that choose the store. */
interface StoreOptions {
  readonly redis?: unknown;
  readonly store?: unknown;
  readonly replicas?: unknown;
  readonly shardedPubSub?: unknown;
  readonly delayAfterRestartMs?: unknown;
  readonly foreignHold?: unknown;
  readonly fencing?: unknown;
}

/**
 * Checks the options that choose the store. Returns `delayAfterRestartMs`.
 *
 * @param call function that takes the options, for messages
 */
export const checkStoreOptions = (options: StoreOptions, call: string): number | undefined => {
  const { redis, store, replicas, shardedPubSub } = options;
  if (redis !== undefined && store !== undefined) {
    throw new LockConfigurationError(
      'Both redis and store are given. Keep the one that shall hold the locks.',
    );
  }
  if (redis === undefined && store === undefined) {
    throw new LockConfigurationError(`Neither redis nor store is given: ${call}({ redis: "redis://…" }).`);
  }
  if (store !== undefined) checkStore(store);
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
  if (options.foreignHold !== undefined && store !== undefined) {
    throw new LockConfigurationError(
      'foreignHold belongs to redis, but store is given. A RedisStore takes it itself: new RedisStore({ redis, foreignHold }).',
    );
  }
  checkChoice('foreignHold', options.foreignHold, FOREIGN_HOLDS);
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

const STORE_METHODS: readonly (keyof LockStore)[] = ['open', 'inspect', 'forceUnlock', 'ping', 'close'];
const KIND_METHODS: readonly (keyof KindStore)[] = ['acquire', 'extendMany', 'release'];
const POLL_TIMES: readonly (keyof PollTraits)[] = ['minMs', 'maxMs', 'liveMaxMs'];

/** `instanceof` would fail for a store of another copy of this package, or of another package. */
const checkStore = (store: unknown): void => {
  const isObject = typeof store === 'object' && store !== null && !isArray(store);
  if (!isObject) throw notAStore(store);
  const missing = missingIn(store);
  if (missing) throw notAStore(store, ` without ${missing}`);
};

const notAStore = (value: unknown, without = ''): LockConfigurationError =>
  new LockConfigurationError(
    `store must be a LockStore, such as new RedisStore({ redis }), but is ${formatValue(value)}${without}.`,
  );

/** Returns the first member of a store that an object lacks. */
const missingIn = (store: object): string | undefined => {
  try {
    return missingInStore(store);
  } catch {
    return 'readable members';
  }
};

const missingInStore = (store: Partial<LockStore>): string | undefined => {
  if (typeof store.name !== 'string') return 'name';
  const { lease } = store;
  if (lease?.type !== 'expiring' && lease?.type !== 'session') return 'lease';
  if (lease.type === 'session' && !(lease.timeoutMs > 0)) return 'lease.timeoutMs';
  if (typeof store.commandTimeoutMs !== 'number') return 'commandTimeoutMs';
  const method = STORE_METHODS.find((name) => typeof store[name] !== 'function');
  if (method) return method;
  if (!store.kinds?.exclusive) return 'kinds.exclusive';
  for (const [name, kind] of Object.entries<Partial<KindStore> | undefined>(store.kinds)) {
    const missing = missingInKind(kind);
    if (missing) return `kinds.${name}.${missing}`;
  }
  return undefined;
};

const missingInKind = (kind: Partial<KindStore> = {}): string | undefined => {
  const poll = kind.traits?.poll;
  const methods = poll ? [...KIND_METHODS, 'peekMany' as const] : KIND_METHODS;
  const method = methods.find((name) => typeof kind[name] !== 'function');
  const time = poll && POLL_TIMES.find((name) => !(poll[name] > 0));
  return method ?? (time && `traits.poll.${time}`);
};
