import type { StoreFailure } from '../seam/store-failure.js';
import type { KeyOutage } from './key-outage.js';

/** How soon to ask again a store that asks for another try, in ms. */
export const ANOTHER_TRY_MS = 50;

/** For how long a caller that has never had a reply asks again, in ms: as long as one request may take by default. */
const PATIENCE_MS = 2_000;

/** The caller whose request failed. */
interface Caller {
  /** Whether it waits since before the store failed; see `KeyOutage.hasWaited`. */
  readonly hasWaited: boolean;
  readonly waitedMs: number;
}

/** Whether a store that asks for another try gets one soon. It does not in an outage, in which `Outages` sets the pace. */
export const getsAnotherTry = (
  failure: StoreFailure,
  outage: KeyOutage,
  { hasWaited, waitedMs }: Caller,
): boolean =>
  failure.outcome !== 'unknown' && failure.transient && !outage.isOn && (hasWaited || waitedMs < PATIENCE_MS);
