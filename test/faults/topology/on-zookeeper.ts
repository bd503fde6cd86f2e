import type { Fitness } from './topology.js';

/** What an ensemble of ZooKeeper is fit for. */
export const ON_ZOOKEEPER: Fitness = {
  shape: 'zookeeper',
  seats: 3,
  nodes: 3,
  sound: 3,
  links: 3,
  keepsData: true,
  settableClock: false,
};
