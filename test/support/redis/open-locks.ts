import { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { LockEvents } from '../../../lib/core/report/lock-events.js';
import type { Runtime } from '../../../lib/core/util/runtime.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { resolveOptions, type RedisLockModuleOptions } from '../../../lib/nest/module/redis-lock.options.js';
import * as redisStores from '../../../lib/entries/redis.js';
import { storeOn } from '../../../lib/nest/module/store-of-options.js';
import type { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { redisStoreOf, type OfRedisStore } from './redis-store-of.js';
import type { RedisSource } from '../../../lib/stores/redis/topology-of.js';

/** Options of the service, and of its store on Redis. */
export type LocksOptions = Omit<RedisLockModuleOptions, 'redis' | 'store' | 'interceptor'> & OfRedisStore;

type EventName = keyof LockEvents;
const EVENTS = Object.keys({
  acquired: true,
  busy: true,
  waiting: true,
  'slow-hold': true,
  released: true,
  lost: true,
  'revocation-requested': true,
  'leader-elected': true,
  'leader-lost': true,
  'store-down': true,
  'store-up': true,
} satisfies Record<EventName, true>) as EventName[];

/** A lock service as `RedisLockModule` makes it, with what it said so far. */
export interface OpenLocks extends AsyncDisposable {
  readonly locks: LockService;
  readonly store: RedisStore;
  /** The lines it logged. */
  readonly log: readonly string[];
  /** The events of one name, oldest first. */
  events<E extends EventName>(name: E): readonly LockEvents[E][];
  /** Shuts down as an app does: what is held gets `shutdownGraceMs` (here 0 unless told otherwise). */
  close(): Promise<void>;
}

/** Makes a lock service the way `RedisLockModule` does: same checks, same defaults, a store of its own. */
export const openLocks = (
  redis: RedisSource | readonly RedisSource[],
  options: LocksOptions = {},
  runtime?: Runtime,
): OpenLocks => {
  const { commandTimeoutMs, replicas, shardedPubSub, foreignHold, delayAfterRestartMs, ...ofService } =
    options;
  const ofStore = { commandTimeoutMs, replicas, shardedPubSub, foreignHold, delayAfterRestartMs };
  const isPlain = Object.values(ofStore).every((value) => value === undefined);
  const resolved = resolveOptions({
    ...{ shutdownGraceMs: 0, ...ofService },
    ...(isPlain ? { redis } : { store: redisStoreOf(redis, ofStore) }),
  });
  const { settings } = resolved;
  const log: string[] = [];
  const say = (line: string) => void log.push(line);
  // Of one server, unless the test asks for a quorum.
  const store = storeOn(redisStores, resolved) as RedisStore;
  const manager = new LockManager(store, settings, { log: say, warn: say }, runtime);
  const locks = new LockService(manager, ofService.context);
  const seen = new Map<EventName, unknown[]>(EVENTS.map((name) => [name, []]));
  for (const name of EVENTS) locks.on(name, (event) => void seen.get(name)!.push(event));
  return {
    locks,
    store,
    log,
    events: <E extends EventName>(name: E) => seen.get(name) as LockEvents[E][],
    close: () => manager.close(),
    [Symbol.asyncDispose]: () => manager.close(),
  };
};
