import type { Redis } from 'ioredis';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { until } from '../../support/async.js';
import { redisHarness } from '../../support/stores/redis.harness.js';
import { serverWorld } from './server.world.js';
import type { World } from './world.js';

/**
 * Brings the end of every hold closer, and gives those that end. The last millisecond passes by itself, so that it is
 * Redis that ends them, as it ends any lease.
 */
const AGE = `
local ended = {}
for _, name in ipairs(redis.call('keys', '*')) do
  local left = redis.call('pttl', name) - ARGV[1]
  if redis.call('type', name).ok == 'hash' then
    if left <= 0 then ended[#ended + 1] = name end
    redis.call('pexpire', name, math.max(left, 1))
  end
end
return ended
`;

const age = async (admin: Redis, ms: number): Promise<void> => {
  const ended = (await admin.eval(AGE, 0, ms)) as string[];
  if (ended.length === 0) return;
  await until(async () => (await admin.exists(...ended)) === 0, { what: 'Redis has ended what was over' });
};

export const redisWorld = async (): Promise<World> => {
  const harness = await redisHarness();
  const { server, admin } = harness;
  return serverWorld({
    harness,
    server,
    open: ({ url }, commandTimeoutMs) => new RedisStore({ redis: url, commandTimeoutMs }),
    age: (ms) => age(admin, ms),
    ask: () => admin.ping(),
  });
};
