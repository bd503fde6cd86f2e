import { LockConfigurationError } from '../../core/errors/lock.errors.js';
import type { Runtime } from '../../core/util/runtime.js';
import { invalidOption } from '../../core/settings/option-checks.js';
import { resolveCluster, type ClusterLike, type RedisClusterOptions } from './cluster/cluster-settings.js';
import { RedisCluster } from './cluster/redis-cluster.js';
import { OneServer } from './connection/one-server.js';
import type { BatchPart } from './connection/script-batch.js';
import type { Script } from './connection/script.js';
import type { RedisTopology } from './connection/redis-topology.js';
import { createClients, resolveEndpoint, type ServerSource } from './connection/redis-settings.js';
import type { StartingClients } from './connection/starting-clients.js';
import type { NodeAddress } from './cluster/slots.js';
import { RedisKeys } from './redis-keys.js';

/**
 * Address of Redis. One server: a URL, ioredis options, an ioredis client, or a function that creates clients. A
 * cluster: an ioredis `Cluster`, or ioredis options with some of its servers in `cluster`. Of an existing client only
 * the address and the credentials are used.
 */
export type RedisSource = ServerSource | RedisClusterOptions | ClusterLike;

interface TopologyOptions {
  readonly timeoutMs: number;
  readonly runtime: Runtime;
  readonly shardedPubSub: unknown;
  /** Scripts of all kinds, also of rare ones: a script that is sent again in full would come after later requests. */
  readonly scripts: readonly Script[];
  readonly batchParts: readonly BatchPart[];
  /** Whether to wait for replicas. Then requests are sent only to the server that has the slot. */
  readonly waitsForReplicas: boolean;
  readonly starting: StartingClients;
}

/** Creates the topology of one server or a cluster, and the names of keys there. Connects to nothing yet. */
export const topologyOf = (
  source: RedisSource,
  { timeoutMs, runtime, shardedPubSub, scripts, batchParts, waitsForReplicas, starting }: TopologyOptions,
): {
  readonly topology: RedisTopology;
  readonly keys: RedisKeys;
  /** Warning about options that have no effect. */
  readonly warning: string | undefined;
} => {
  const cluster = resolveCluster(source, timeoutMs);
  if (cluster) {
    const keys = new RedisKeys(cluster.keyPrefix);
    const sharding = checkSharding(shardedPubSub);
    const options = { timeoutMs, runtime, scripts, shardedPubSub: sharding };
    const connect = (at: NodeAddress) => starting.add(cluster.connect(at));
    const watched = { ...cluster, connect, forChecks: cluster };
    const topology = new RedisCluster(watched, { ...options, followsAsk: !waitsForReplicas });
    return { topology, keys, warning: cluster.warning };
  }
  if (shardedPubSub !== undefined) {
    throw new LockConfigurationError(
      'shardedPubSub belongs to a Redis Cluster, but redis is one server: there messages are not sharded.',
    );
  }
  const endpoint = resolveEndpoint(source as ServerSource, timeoutMs);
  const keys = new RedisKeys(endpoint.keyPrefix);
  const options = { timeoutMs, runtime, scripts, batchParts };
  const [commands, subscriber] = createClients(endpoint);
  const topology = new OneServer(starting.add(commands), starting.add(subscriber), options, starting);
  return { topology, keys, warning: endpoint.warning };
};

const checkSharding = (given: unknown): boolean | undefined =>
  given === undefined || typeof given === 'boolean'
    ? given
    : invalidOption('shardedPubSub', 'true or false', given);
