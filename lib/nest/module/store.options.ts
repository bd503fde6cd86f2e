import { formatValue, isArray } from '../../core/util/describe.js';
import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { KindStore, LockStore } from '../../core/seam/lock-store.js';
import type { PollTraits } from '../../core/seam/kind-traits.js';

/** Options of the module that choose the store. */
interface StoreOptions {
  readonly redis?: unknown;
  readonly store?: unknown;
}

/**
 * Checks the options that choose the store.
 *
 * @param call function that takes the options, for messages
 */
export const checkStoreOptions = ({ redis, store }: StoreOptions, call: string): void => {
  if (redis !== undefined && store !== undefined) {
    throw new LockConfigurationError(
      'Both redis and store are given. Keep the one that shall hold the locks.',
    );
  }
  if (redis === undefined && store === undefined) {
    throw new LockConfigurationError(`Neither redis nor store is given: ${call}({ redis: "redis://…" }).`);
  }
  if (store !== undefined) checkStore(store);
  if (!isArray(redis)) return;
  if (redis.length < 2) {
    throw new LockConfigurationError(
      `redis is a list of ${redis.length}: a quorum needs at least 2 servers, better 3 or 5. For one server give it by itself.`,
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
