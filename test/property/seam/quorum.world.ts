import { quorumHarness } from '../../support/stores/quorum.harness.js';
import { closeAll, connectAll, type World } from './world.js';

/** Processes with the same three nodes in memory, on a clock that stands still between the commands. */
export const quorumWorld = async (): Promise<World> => {
  const harness = await quorumHarness();
  const stores = await connectAll(() => harness.connect());
  return {
    ...harness,
    stores,
    // Of each lease a hundredth and 2 ms are not promised.
    virtualTime: false,
    unitMs: 1_000,
    promisedMs: (leaseMs) => Math.floor(leaseMs * 0.99) - 2,
    close: () => closeAll(stores),
  };
};
