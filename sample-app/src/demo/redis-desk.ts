import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { CHARGES } from '../payment/payment.client.js';

/** Keys in which the library keeps the last fencing token of each hash slot. */
const FENCE_KEYS = 'nest_redis_lock:fence:*';
const SCAN_COUNT = 1_000;

/** The demo's own access to Redis: it inspects locks, and removes the demo's keys at the end. */
export class RedisDesk implements AsyncDisposable {
  private constructor(
    private readonly redis: Redis,
    private readonly locks: LockService,
    private readonly fenceKeysBefore: ReadonlySet<string>,
    private readonly close: () => Promise<void>,
  ) {}

  /** Opens the desk. All locks of `keyPrefix` must be in one hash slot, so it has to contain a hash tag. */
  static async open(url: string, keyPrefix: string): Promise<RedisDesk> {
    const redis = new Redis(url, { maxRetriesPerRequest: 1 });
    // Every command that fails reports that itself.
    redis.on('error', () => undefined);
    try {
      const before = await fenceKeys(redis);
      const module = RedisLockModule.forRoot({ redis: url, keyPrefix });
      const app = await NestFactory.createApplicationContext(module, {
        abortOnError: false,
        logger: ['error', 'fatal'],
      });
      return new RedisDesk(redis, app.get(LockService), before, () => app.close());
    } catch (error) {
      redis.disconnect();
      throw error;
    }
  }

  /** Resolves with the owner of the key's hold; undefined when the key is free. */
  async owner(key: string): Promise<string | undefined> {
    return (await this.locks.inspect(key))?.holders[0]?.owner;
  }

  /** Removes the fence key of this run, and the number of permits. Holds have been released or have expired by then. */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.locks.forceUnlock(CHARGES);
    const lease = await this.locks.acquire('closing');
    const token = String(lease.fencingToken);
    await lease.release();
    // Its name is internal to the library. It is the key that is new in this run and has the token just granted.
    for (const key of await fenceKeys(this.redis)) {
      if (this.fenceKeysBefore.has(key)) continue;
      if ((await this.redis.get(key)) === token) await this.redis.del(key);
    }
    await this.close();
    this.redis.disconnect();
  }
}

const fenceKeys = async (redis: Redis): Promise<Set<string>> => {
  const found = new Set<string>();
  for await (const keys of redis.scanStream({ match: FENCE_KEYS, count: SCAN_COUNT })) {
    for (const key of keys as string[]) found.add(key);
  }
  return found;
};
