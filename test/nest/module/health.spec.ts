import { getLockServiceToken, LockHealthIndicator, RedisLockModule, type LockService } from 'nest-redis-lock';
import { RedisLockTestingModule } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { freePort } from '../../support/loopback.js';
import { useApps } from '../../support/nest/apps.js';
import { useWorld } from '../../support/nest/world.js';
import { RedisStore } from 'nest-redis-lock/redis';

const world = useWorld();
const apps = useApps();

/** An app with a module that works, and one named `billing` whose Redis is away. */
const appWithBilling = async () => {
  const redis = `redis://app:s3cret@127.0.0.1:${await freePort()}`;
  const app = await apps.context({
    module: class AppModule {},
    imports: [
      RedisLockModule.forRoot(world.options()),
      RedisLockModule.forRoot({ store: new RedisStore({ redis, commandTimeoutMs: 200 }), name: 'billing' }),
    ],
  });
  const locks = app.get<LockService>(getLockServiceToken());
  return { app, locks, billing: app.get<LockService>(getLockServiceToken('billing')) };
};

describe('the health indicator', () => {
  it('reports a store that replies, with the time of the reply and the number of holds', async () => {
    const { app, locks } = await appWithBilling();
    const health = app.get(LockHealthIndicator);
    await using _lease = await locks.acquire('user:7');
    const pingMs = expect.any(Number) as number;
    expect(await health.check()).toEqual({ locks: { status: 'up', holds: 1, pingMs } });
    expect(await health.checkOrThrow('redis')).toEqual({ redis: { status: 'up', holds: 1, pingMs } });
  });

  it('reports a store that fails by its code, without keys, addresses and passwords', async () => {
    const { billing } = await appWithBilling();
    const health = new LockHealthIndicator(billing);
    const down = {
      billing: {
        status: 'down',
        holds: 0,
        code: 'LOCK_STORE_FAILED',
        message: 'The store of the locks does not work. The log has the reason.',
      },
    };
    expect(await health.check('billing')).toEqual(down);
    const failure: unknown = await health.checkOrThrow('billing').catch((error: unknown) => error);
    expect(failure).toMatchObject({ isHealthCheckError: true, causes: down });
    expect(JSON.stringify(failure)).not.toMatch(/s3cret|127\.0\.0\.1/);
  });

  it('is there in tests, too', async () => {
    const app = await apps.context({
      module: class AppModule {},
      imports: [RedisLockTestingModule.forRoot()],
    });
    expect(await app.get(LockHealthIndicator).check()).toMatchObject({ locks: { status: 'up', holds: 0 } });
  });

  it.each(['', 7, null])('refuses %j as a key', async (key) => {
    const { locks } = await appWithBilling();
    await expect(new LockHealthIndicator(locks).check(key as never)).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
    });
  });
});
