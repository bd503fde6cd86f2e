import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import {
  documentedLogin,
  DOCUMENTED_RULES,
  giveRules,
  refusedBy,
  REPLICAS_RULES,
  SENTINEL_RULES,
} from '../support/redis/documented-user.js';
import { newKey } from '../support/redis/lab.js';
import { openLocks } from '../support/redis/open-locks.js';
import { RedisSentinels } from '../support/servers/redis-sentinels.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

const PATIENCE_MS = 60_000;

describe('the documented users of Redis and of its sentinels', { timeout: 120_000 }, () => {
  let redis: RedisSentinels;

  beforeAll(async () => {
    redis = await RedisSentinels.start();
  }, 120_000);
  afterAll(() => redis[Symbol.asyncDispose]());

  it('are enough, before and after a promotion, and are refused nothing', async () => {
    const { username, password } = documentedLogin;
    await giveRules(redis.servers, [...DOCUMENTED_RULES, ...REPLICAS_RULES]);
    await giveRules(redis.sentinels, ['on', `>${password}`, 'resetchannels', '-@all', ...SENTINEL_RULES]);
    const source = {
      ...{ ...redis.options, username, password },
      ...{ sentinelUsername: username, sentinelPassword: password },
    };
    await using opened = openLocks(source, { replicas: { min: 1, timeoutMs: 1_000 }, waitMs: PATIENCE_MS });
    const { locks } = opened;
    await (await locks.acquire(newKey())).release();
    await redis.inStep();
    await redis.promote();
    await until(() => locks.ping().then(() => true), {
      timeoutMs: PATIENCE_MS,
      what: 'there is a master again',
    });
    await until(
      async () => {
        const lease = await locks.acquire(newKey()).catch(() => undefined);
        await lease?.release();
        return lease;
      },
      { timeoutMs: PATIENCE_MS, what: 'the old master is a replica of the new one' },
    );
    expect(await refusedBy(...redis.servers, ...redis.sentinels)).toEqual([]);
  });
});
