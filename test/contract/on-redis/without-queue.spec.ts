import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import {
  documentedLogin,
  FAIR_RULES,
  OBJECT_RULES,
  PERMIT_RULES,
  READ_WRITE_RULES,
  RULES_WITHOUT_QUEUE,
} from '../../support/redis/documented-user.js';
import { redisHarness, type RedisHarness } from '../../support/stores/redis.harness.js';
import { describeStoreContract } from '../store.contract.js';

/** The user as the documents had it before there were lines, for all keys: the contract has other ones than an app. */
const RULES = [
  ...[...RULES_WITHOUT_QUEUE, ...PERMIT_RULES, ...FAIR_RULES, ...READ_WRITE_RULES, ...OBJECT_RULES].filter(
    (rule) => !/^[~&]/.test(rule),
  ),
  // These are for the line alone, and for read-write locks.
  ...['+hget', '+hdel'],
  ...['~*', '&redisson_lock__channel:*', '&redisson_sc:*', '&redisson_rwlock:*'],
  ...['&redisson_countdownlatch__channel__*'],
];

const withoutQueue = async (): Promise<RedisHarness> => {
  const harness = await redisHarness();
  await harness.admin.call('ACL', 'SETUSER', documentedLogin.username, 'reset', ...RULES);
  const user = { ...harness.server.clientOptions(), ...documentedLogin };
  return { ...harness, connect: () => Promise.resolve(new RedisStore({ redis: user })) };
};

describeStoreContract('RedisStore for a user without the rights for a line', withoutQueue, {
  hasWaitQueue: false,
});
