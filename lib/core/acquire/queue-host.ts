import type { Hold } from '../lease/hold.js';
import type { Outages } from '../outage/outages.js';
import type { Portions } from '../util/portions.js';
import type { Runtime } from '../util/runtime.js';
import type { Claim } from '../seam/claim.js';
import type { Watch, WatchListener } from '../seam/lock-store.js';
import type { ShowKey } from '../util/shown-key.js';
import type { StoreQueueEntry } from '../seam/store-queue-entry.js';
import type { SlowWaits } from '../wait/slow-waits.js';

/** What the local queues of one kind need of the service instance. */
export interface QueueHost<Queue> {
  readonly runtime: Runtime;
  /** Maximum number of callers that wait. */
  readonly maxWaiters: number;
  /** Returns a key as errors show it. */
  readonly shown: ShowKey;
  /** Whether there is one owner at a time; see `Kind.singleHolder`. */
  readonly singleHolder: boolean;
  /** Whether each caller has its own queue; see `KindTraits.eachQueued`. */
  readonly ofOneCaller?: boolean;
  /** Renews a hold during its local hand-off. */
  keepAlive(hold: Hold): void;
  /** Checks a hold that another process may have ended. */
  lookAt(hold: Hold): void;
  /** See `KindStore.watch`. */
  readonly watch: (claim: Claim, listener: WatchListener) => Watch;
  /** See `KeyOutage`. */
  readonly outages: Outages;
  /** Rejects callers of a crowd in portions when their time is over. */
  readonly portions: Portions;
  /** Notices callers that wait for long. */
  readonly slowWaits: SlowWaits;
  /** Removes a queue entry in the store. */
  leaveQueue(entry: StoreQueueEntry): void;
  /** Whether more callers of the key wait than may. */
  isFull(queue: Queue): boolean;
  /** Called when no caller of the queue wants the key any more. */
  onIdle(queue: Queue): void;
}
