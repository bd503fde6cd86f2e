import { detached } from '../../lib/core/nesting/section.js';
import { LockManager } from '../../lib/core/service/lock-manager.js';
import { defaultCall } from '../../lib/core/settings/lock-call.js';
import { DEFAULT_SETTINGS } from '../../lib/core/settings/lock-settings.js';
import { RedisStore } from '../../lib/stores/redis/redis.store.js';
import { FORCING, type ForcingScripts } from '../faults/topology/hold-watch.js';

/** What the simulation takes from the library; a copy of it with a mistake has the same. */
export interface Core extends ForcingScripts {
  readonly LockManager: typeof LockManager;
  readonly RedisStore: typeof RedisStore;
  readonly detached: typeof detached;
  readonly defaultCall: typeof defaultCall;
  readonly DEFAULT_SETTINGS: typeof DEFAULT_SETTINGS;
}

/** The library as it is. */
export const CORE: Core = {
  LockManager,
  RedisStore,
  detached,
  defaultCall,
  DEFAULT_SETTINGS,
  ...FORCING,
};
