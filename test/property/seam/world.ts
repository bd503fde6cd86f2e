import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { FullStore, StoreHarness } from '../../support/stores/harness.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';

export const ACTORS = 3;

/** Where an acquire can get lost: on its way there, on its way back, or it arrives when nobody expects it any more. */
export type Loss = 'request' | 'reply' | 'late';

/** Several processes on one store, in a time that can be made to pass. */
export interface World extends Pick<StoreHarness, 'virtualTime' | 'pass' | 'leftovers'> {
  /** One for each actor, as each process has its own. */
  readonly stores: readonly FullStore[];
  /**
   * All durations are multiples of this. Where time cannot be stopped, it is so long that no run takes as long: what
   * has time left according to the model then also has time left in the store.
   */
  readonly unitMs: number;
  /** How much of a lease the store promises, where it is less. */
  promisedMs?(leaseMs: number): number;
  /** See `ContractContext.polled`. */
  readonly polled?: true;
  /** See `ContractContext.hasSessions`. Then no hold ends by itself, and its token is that of its node. */
  readonly hasSessions?: true;
  /** Sends an acquire that gets no answer; gives the failure. Undefined where there is no network to lose it. */
  readonly acquireWithoutReply?: (actor: number, claim: ExclusiveClaim, loss: Loss) => Promise<StoreFailure>;
  /**
   * How long an acquire whose reply got lost holds its key, in ms; 0: it does not. Undefined: it took the key, because it
   * is one request.
   */
  leftMs?(claim: ExclusiveClaim): Promise<number>;
  close(): Promise<void>;
}

export const connectAll = (connect: (actor: number) => Promise<FullStore>): Promise<readonly FullStore[]> =>
  Promise.all(Array.from({ length: ACTORS }, (_, actor) => connect(actor)));

export const closeAll = async (stores: readonly FullStore[]): Promise<void> => {
  await Promise.all(stores.map((store) => store.close()));
};
