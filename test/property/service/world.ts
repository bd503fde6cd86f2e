import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { eventLoopTurn } from '../../support/stores/harness.js';
import { redisHarness } from '../../support/stores/redis.harness.js';
import { Log } from '../../support/core/core-under-test.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

export const SERVICES = 2;

/** What `usage` is when nobody holds anything and nobody waits. */
export const UNUSED = { leases: 0, keys: 0, holds: 0, undoing: 0 };

/** The lease that the watchdog renews. */
export const WATCHDOG_MS = 30_000;

/** The watchdog renews at least this often, so after so long it has noticed whatever there is to notice. */
export const RENEWAL_MS = 10_000;

/** For so long at most a process hands a lock from one of its callers to the next without asking the store. */
export const BATCH_MS = 50;

/** Longer than anything that is still to happen once nothing but time is missing: a turn, or sitting out for 25 ms. */
const TO_REST_MS = BATCH_MS + 10;

/** Several lock services on one store, as several processes have them. */
export interface World {
  readonly services: readonly LockService[];
  now(): number;
  /** Lets time pass; undefined where it cannot be made to. There no lease ends by itself within a run. */
  readonly pass?: (ms: number) => Promise<void>;
  /** Lets everything go as far as it can by itself. Where that cannot be told, `settle` is asked again and again. */
  rest(): Promise<void>;
  readonly isVirtual: boolean;
  leftovers(): Promise<{ readonly holds: number; readonly watches: number }>;
}

export const serviceOn = (store: LockStore, runtime = systemRuntime()): LockService =>
  new LockService(new LockManager(store, resolveSettings({}), new Log(), runtime));

/** All services in one process and one time, which stands still between the commands. */
export const memoryWorld = (): Promise<World> => {
  const runtime = new VirtualRuntime();
  const space = new MemorySpace({ now: () => runtime.now() });
  const open = () => serviceOn(new MemoryStore({ shared: space }), runtime);
  return Promise.resolve({
    services: Array.from({ length: SERVICES }, open),
    now: () => runtime.now(),
    pass: (ms) => runtime.pass(ms),
    rest: () => runtime.pass(TO_REST_MS),
    isVirtual: true,
    leftovers: () => Promise.resolve(space.size),
  });
};

/** A real server, and for each service connections of its own. */
export interface RedisWorlds {
  /** New services, for one run, which find an empty server: not what a run before may have left that failed. */
  open(): Promise<World>;
  close(): Promise<void>;
}

export const redisWorlds = async (): Promise<RedisWorlds> => {
  const harness = await redisHarness();
  const stores = await Promise.all(Array.from({ length: SERVICES }, () => harness.connect()));
  return {
    open: async () => {
      await harness.admin.flushall();
      return {
        services: stores.map((store) => serviceOn(store)),
        now: () => performance.now(),
        rest: () => eventLoopTurn(),
        isVirtual: false,
        leftovers: () => harness.leftovers(),
      };
    },
    close: async () => {
      await Promise.all(stores.map((store) => store.close()));
      await harness.cleanup();
    },
  };
};
