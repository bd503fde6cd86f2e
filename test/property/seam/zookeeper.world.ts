import { zookeeperHarness } from '../../support/stores/zookeeper.harness.js';
import { closeAll, connectAll, type World } from './world.js';

/** Length of a session that no option sets, in ms. */
const SESSION_MS = 30_000;

/** Processes with a session each on one server. What becomes of lost replies, test/integration/zookeeper shows. */
export const zookeeperWorld = async (): Promise<World> => {
  const harness = await zookeeperHarness();
  const stores = await connectAll(() => harness.connect());
  return {
    ...harness,
    stores,
    unitMs: 1_000,
    hasSessions: true,
    promisedMs: () => SESSION_MS,
    close: async () => {
      await closeAll(stores);
      await harness.cleanup();
    },
  };
};
