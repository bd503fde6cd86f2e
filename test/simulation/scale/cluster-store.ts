import { EXPIRING } from '../../../lib/core/seam/lease-model.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { RedisCluster } from '../../../lib/stores/redis/cluster/redis-cluster.js';
import { textOfAddress, type NodeAddress } from '../../../lib/stores/redis/cluster/slots.js';
import { RedisExclusive } from '../../../lib/stores/redis/kinds/exclusive/redis-exclusive.js';
import { RedisLink } from '../../../lib/stores/redis/kinds/redis-link.js';
import { whenReady } from '../../../lib/stores/redis/connection/redis-topology.js';
import { RedisKeys } from '../../../lib/stores/redis/redis-keys.js';
import { SCRIPTS } from '../../../lib/stores/redis/redis-kinds.js';
import { TIMEOUT_MS, type MakeStore } from './crowd.js';
import type { Replying } from './scale-server.js';

export const MASTERS = 100;
const SLOTS = 16_384;
/** Masters that the options of the store name. */
const SEEDS = 3;

const addressOf = (master: number): NodeAddress => ({ host: `10.0.0.${master + 1}`, port: 6379 });

const CLUSTER_SLOTS = Array.from({ length: MASTERS }, (_none, i) => {
  const { host, port } = addressOf(i);
  const [from, to] = [i, i + 1].map((at) => Math.floor((SLOTS * at) / MASTERS));
  return [from!, to! - 1, [host, port]] as const;
});

/** The replies of a cluster's master about its cluster. One server executes everything else for all masters. */
export const asMaster: Replying = (_session, [name, what]) => {
  if (name !== 'cluster') return undefined;
  return what === 'slots' ? CLUSTER_SLOTS : 'cluster_state:ok\r\ncluster_current_epoch:1\r\n';
};

const METHODS = ['acquire', 'extendMany', 'refreshEntries', 'commit', 'release'] as const;

/**
 * Creates a store with the exclusive lock on the real cluster code: `RedisStore` makes the clients for masters itself,
 * so its parts are put together here.
 */
export const ofCluster: MakeStore = (runtime, connect) => {
  const keys = new RedisKeys('');
  const endpoint = {
    keyPrefix: '',
    seeds: Array.from({ length: SEEDS }, (_none, i) => addressOf(i)),
    connect: (at: NodeAddress) => {
      const client = connect(textOfAddress(at), {});
      // A client of ioredis has another event for the messages of sharded channels.
      client.on('message', (channel, text) => client.emit('smessage', channel, text));
      return client;
    },
  };
  const topology = new RedisCluster(endpoint, { timeoutMs: TIMEOUT_MS, runtime, scripts: SCRIPTS });
  const exclusive = whenReady(topology, new RedisExclusive(new RedisLink(topology, keys, runtime)), METHODS);
  const unused = (): never => {
    throw new Error('not needed here');
  };
  const store: LockStore = {
    name: 'Redis',
    lease: EXPIRING,
    commandTimeoutMs: TIMEOUT_MS,
    open: () => Promise.resolve(),
    kinds: { exclusive },
    inspect: unused,
    forceUnlock: unused,
    ping: unused,
    close: () => Promise.resolve(topology.close()),
  };
  return store;
};
