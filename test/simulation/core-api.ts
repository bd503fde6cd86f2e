import { detached } from '../../lib/core/nesting/section.js';
import { LockManager } from '../../lib/core/lock-manager.js';
import { defaultCall, DEFAULT_SETTINGS } from '../../lib/core/settings/lock-settings.js';

/** What the simulation takes from lib/core; a copy of it with a mistake has the same. */
export interface Core {
  readonly LockManager: typeof LockManager;
  readonly detached: typeof detached;
  readonly defaultCall: typeof defaultCall;
  readonly DEFAULT_SETTINGS: typeof DEFAULT_SETTINGS;
}

/** The core of the library as it is. */
export const CORE: Core = { LockManager, detached, defaultCall, DEFAULT_SETTINGS };
