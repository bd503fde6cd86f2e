import { memoryHarness } from '../../support/stores/memory.harness.js';
import { closeAll, connectAll, type World } from './world.js';

/** Stores that share one space, on a clock that stands still between the commands. */
export const memoryWorld = async (): Promise<World> => {
  const harness = await memoryHarness();
  const stores = await connectAll(() => harness.connect());
  return { ...harness, stores, unitMs: 1, close: () => closeAll(stores) };
};
