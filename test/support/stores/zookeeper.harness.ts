import { ZooKeeperStore } from '../../../lib/stores/zookeeper/zookeeper.store.js';
import { ZooKeeperServer } from '../servers/zookeeper-server.js';
import type { FullStore, StoreHarness } from './harness.js';

/** The kinds that a store on ZooKeeper has. */
export const openZooKeeper = (connect = '127.0.0.1:1'): FullStore =>
  new ZooKeeperStore({ connect }) as unknown as FullStore;

const numberIn = (reply: string, pattern: RegExp): number => Number(pattern.exec(reply)![1]);

/** The ZooKeeper store on a real server of its own. */
export async function zookeeperHarness(): Promise<StoreHarness> {
  const server = await ZooKeeperServer.start();
  return {
    virtualTime: false,
    entriesExpire: false,
    address: server.address,
    connect: () => Promise.resolve(openZooKeeper(server.address)),
    pass: () => Promise.reject(new Error('nothing ends by itself while its session lives')),
    leftovers: async () => ({
      // Each lock and each waiter is an ephemeral node.
      holds: numberIn(await server.command('mntr'), /zk_ephemerals_count\s+(\d+)/),
      watches: numberIn(await server.command('wchs'), /Total watches:(\d+)/),
      grantSubscriptions: 0,
    }),
    cleanup: () => server.stop(),
  };
}
