import { Redis } from 'ioredis';
import { beforeAll, expect } from 'vitest';
import { LockNotAcquiredError, type RedisLockModuleOptions } from 'nest-redis-lock';
import { RedisServer } from '../servers/redis-server.js';

/** What the body of a locked method saw when it ran. */
export interface Run {
  readonly key: string;
  /** Whether Redis had the lock at that moment. */
  readonly locked: boolean;
}

/**
 * One Redis for a spec file, with a client that plays another process. Bodies of the locked methods under test
 * call `work`, so that a test sees whether they ran, and whether Redis had the lock while they did.
 */
export class World implements AsyncDisposable {
  server!: RedisServer;
  redis!: Redis;
  private readonly seen: Run[] = [];

  async begin(): Promise<void> {
    this.server = await RedisServer.start();
    this.redis = new Redis(this.server.url);
  }

  /** Options for `forRoot`: this Redis, and no patience, so that a taken lock is answered at once. */
  options(more: Partial<RedisLockModuleOptions> = {}): RedisLockModuleOptions {
    return { redis: this.server.url, waitMs: 0, ...more };
  }

  /** The body of a locked method. */
  async work(key: string): Promise<'done'> {
    this.seen.push({ key, locked: await this.isTaken(key) });
    return 'done';
  }

  /** What ran since the last call. */
  takeRuns(): Run[] {
    return this.seen.splice(0);
  }

  async isTaken(key: string): Promise<boolean> {
    return (await this.redis.exists(`lock:${key}`)) === 1;
  }

  /** The holds that Redis has now. */
  async holds(): Promise<string[]> {
    return (await this.redis.keys('lock:*')).sort();
  }

  /** The ids of the connections that Redis has now. */
  async connections(): Promise<string[]> {
    const list = (await this.redis.client('LIST')) as string;
    return [...list.matchAll(/^id=(\d+) /gm)].map(([, id]) => id!);
  }

  /** Takes the lock as another process would, until the returned function is called. */
  async takeElsewhere(key: string): Promise<() => Promise<void>> {
    const name = `lock:${key}`;
    await this.redis.multi().hset(name, 'another-process:1', '1').pexpire(name, 60_000).exec();
    return async () => {
      await this.redis.del(name);
      await this.redis.publish(`redisson_lock__channel:{${name}}`, '0');
    };
  }

  /**
   * The promise of `@Locked` for one method: while somebody else has the lock it does not run, and when the lock
   * is free it runs once, with the lock in Redis, and gives it back.
   *
   * @param refused what has to come out of a call while the lock is taken; default: it rejects
   */
  async expectLocked(
    key: string,
    call: () => unknown,
    refused: (outcome: Promise<unknown>) => Promise<unknown> = rejectsAsTaken,
  ): Promise<void> {
    this.takeRuns();
    const free = await this.takeElsewhere(key);
    try {
      await refused(Promise.resolve(call()));
    } finally {
      await free();
    }
    expect(this.takeRuns(), 'runs while the lock was taken').toEqual([]);
    await call();
    expect(this.takeRuns(), 'runs while the lock was free').toEqual([{ key, locked: true }]);
    expect(await this.isTaken(key), 'the lock is free afterwards').toBe(false);
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.redis.disconnect();
    await this.server.stop();
  }
}

const rejectsAsTaken = async (outcome: Promise<unknown>): Promise<void> => {
  await expect(outcome).rejects.toThrow(LockNotAcquiredError);
};

/** A world for all tests of a file. */
export const useWorld = (): World => {
  const world = new World();
  beforeAll(async () => {
    await world.begin();
    return () => world[Symbol.asyncDispose]();
  });
  return world;
};
