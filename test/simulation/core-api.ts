import { detached } from '../../lib/core/nesting/section.js';
import { MemorySpace } from '../../lib/stores/memory/memory-space.js';
import { LockManager } from '../../lib/core/lock-manager.js';
import { defaultCall } from '../../lib/core/settings/lock-call.js';
import { DEFAULT_SETTINGS } from '../../lib/core/settings/lock-settings.js';

/** What the simulation takes from lib/core and lib/stores; a copy of them with a mistake has the same. */
export interface Core {
  readonly LockManager: typeof LockManager;
  readonly MemorySpace: typeof MemorySpace;
  readonly detached: typeof detached;
  readonly defaultCall: typeof defaultCall;
  readonly DEFAULT_SETTINGS: typeof DEFAULT_SETTINGS;
}

/** The core of the library as it is. */
export const CORE: Core = { LockManager, MemorySpace, detached, defaultCall, DEFAULT_SETTINGS };
