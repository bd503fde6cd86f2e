import type { StoreFailure } from '../seam/store-failure.js';
import { DEFAULT_COMMAND_TIMEOUT_MS } from '../settings/lock-settings.js';
import type { KeyOutage } from './key-outage.js';

/** Pause in ms before the next request to a store that asks for a retry. */
export const ANOTHER_TRY_MS = 50;

interface Caller {
  /** Whether it has waited since before the store failed; see `KeyOutage.keepsWaiting`. */
  readonly keepsWaiting: boolean;
  /** Whether it has a queue entry. A request about that has the store's time, not its caller's, and gets another try. */
  readonly hasEntry?: boolean;
  readonly waitedMs: number;
}

/**
 * Returns whether a store that asks for a retry gets one soon. It does not in an outage, in which `Outages` sets the
 * pace. A caller without any reply yet retries for no longer than one request may take, unless only its key is concerned.
 */
export const getsAnotherTry = (
  failure: StoreFailure,
  outage: KeyOutage,
  { keepsWaiting, hasEntry, waitedMs }: Caller,
): boolean =>
  (failure.overloaded && hasEntry === true) ||
  (failure.outcome !== 'unknown' &&
    failure.transient &&
    !outage.isOn &&
    (keepsWaiting || failure.keyOnly || waitedMs < DEFAULT_COMMAND_TIMEOUT_MS));
