import { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { LockEvents } from '../../../lib/core/report/lock-events.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { resolveOptions, type RedisLockModuleOptions } from '../../../lib/nest/module/redis-lock.options.js';

export type StoreLocksOptions = Omit<RedisLockModuleOptions, 'redis' | 'store' | 'interceptor'>;

/** A lock service on a store, with what it has logged. */
export interface OpenLocksOn extends AsyncDisposable {
  readonly locks: LockService;
  readonly manager: LockManager;
  readonly log: readonly string[];
  readonly lost: readonly LockEvents['lost'][];
}

/** Makes a lock service on a store, with the checks and defaults of `LockModule`. */
export const openLocksOn = (store: LockStore, options: StoreLocksOptions = {}): OpenLocksOn => {
  const { settings } = resolveOptions({ shutdownGraceMs: 0, ...options, store });
  const log: string[] = [];
  const say = (line: string) => void log.push(line);
  const manager = new LockManager(store, settings, { log: say, warn: say });
  const locks = new LockService(manager, undefined);
  const lost: LockEvents['lost'][] = [];
  locks.on('lost', (event) => void lost.push(event));
  return { locks, manager, log, lost, [Symbol.asyncDispose]: () => manager.close() };
};
