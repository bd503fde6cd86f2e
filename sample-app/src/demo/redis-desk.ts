import { NestFactory } from '@nestjs/core';
import { Redis } from 'ioredis';
import { LockService, RedisLockModule } from 'nest-redis-lock';
import { CHARGES } from '../payment/payment.client.js';

/** Where the library keeps the last fencing token of each hash slot. */
const FENCE_KEYS = 'nest_redis_lock_fence:*';
const SCAN_COUNT = 1_000;

/** The demo's own view of Redis: who holds a lock, and what has to go when the demo is over. */
export class RedisDesk implements AsyncDisposable {
  private constructor(
    private readonly redis: Redis,
    private readonly locks: LockService,
    private readonly fenceKeysBefore: ReadonlySet<string>,
    private readonly close: () => Promise<void>,
  ) {}

  /** All locks of `keyPrefix` must be in one hash slot, that is, it has to contain a hash tag. */
  static async open(url: string, keyPrefix: string): Promise<RedisDesk> {
    const redis = new Redis(url, { maxRetriesPerRequest: 1 });
    // Every command that fails says so itself.
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

  /** The owner of the key's hold; undefined when nobody holds it. */
  async owner(key: string): Promise<string | undefined> {
    return (await this.locks.inspect(key))?.holders[0]?.owner;
  }

  /**
   * Removes the fence key that this run has made, and how many permits there were. Holds are gone by then: they were
   * released or have expired.
   */
  async [Symbol.asyncDispose](): Promise<void> {
    await this.locks.forceUnlock(CHARGES);
    const lease = await this.locks.acquire('closing');
    const token = String(lease.fencingToken);
    await lease.release();
    // Its name is the library's business. It is the one that was not there before and has the token just given.
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
