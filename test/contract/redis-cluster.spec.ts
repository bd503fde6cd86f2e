import { redisClusterHarness } from '../support/stores/redis-cluster.harness.js';
import { describeStoreContract } from './store.contract.js';

describeStoreContract('RedisStore on a cluster', () => redisClusterHarness());

describeStoreContract(
  'RedisStore on a cluster without sharded Pub/Sub',
  () => redisClusterHarness({ shardedPubSub: false }),
  { keepsLines: false },
);
