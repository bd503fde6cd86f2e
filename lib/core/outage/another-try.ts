import type { StoreFailure } from '../seam/store-failure.js';
import type { KeyOutage } from './key-outage.js';

/** Pause in ms before the next request to a store that asks for a retry. */
export const ANOTHER_TRY_MS = 50;

/** How long a caller without any reply retries, in ms: the default time-out of one request. */
const PATIENCE_MS = 2_000;

interface Caller {
  /** Whether it has waited since before the store failed; see `KeyOutage.hasWaited`. */
  readonly hasWaited: boolean;
  readonly waitedMs: number;
}

/**
 * Returns whether a store that asks for a retry gets one soon. It does not in an outage, in which `Outages` sets the
 * pace.
 */
export const getsAnotherTry = (
  failure: StoreFailure,
  outage: KeyOutage,
  { hasWaited, waitedMs }: Caller,
): boolean =>
  failure.outcome !== 'unknown' && failure.transient && !outage.isOn && (hasWaited || waitedMs < PATIENCE_MS);
