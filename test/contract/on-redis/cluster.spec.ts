import { canShard } from '../../support/servers/redis-server.js';
import { redisClusterHarness } from '../../support/stores/redis-cluster.harness.js';
import { describeStoreContract } from '../store.contract.js';

// Before Redis 7 a process cannot be told of its turn in the slot where it waits.
describeStoreContract('RedisStore on a cluster', () => redisClusterHarness(), { hasWaitQueue: canShard() });

describeStoreContract(
  'RedisStore on a cluster without sharded Pub/Sub',
  () => redisClusterHarness({ shardedPubSub: false }),
  { hasWaitQueue: false },
);
