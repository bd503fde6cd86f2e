// Locks in ZooKeeper. Needs no package.
export { ZooKeeperStore, type ZooKeeperStoreOptions } from '../stores/zookeeper/zookeeper.store.js';
