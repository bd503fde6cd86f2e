import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { StoreUnderContract } from '../../support/stores/stores.js';
import { PROPERTY_TIMEOUT_MS, runs } from '../../support/property/runs.js';
import { sequences } from './commands.js';
import { mysqlWorld } from './mysql.world.js';
import { memoryWorld } from './memory.world.js';
import { Model } from './model.js';
import { postgresWorld } from './postgres.world.js';
import { quorumWorld } from './quorum.world.js';
import { redisWorld } from './redis.world.js';
import type { World } from './world.js';
import { zookeeperWorld } from './zookeeper.world.js';

export const WORLDS: Readonly<Record<string, { make: () => Promise<World>; count: number; length: number }>> =
  {
    MemoryStore: { make: memoryWorld, count: 500, length: 60 },
    QuorumStore: { make: quorumWorld, count: 200, length: 60 },
    RedisStore: { make: redisWorld, count: 50, length: 40 },
    MysqlStore: { make: mysqlWorld, count: 30, length: 40 },
    PostgresStore: { make: postgresWorld, count: 30, length: 40 },
    ZooKeeperStore: { make: zookeeperWorld, count: 50, length: 40 },
  };

const describeWorld = ({ make, count, length }: (typeof WORLDS)[string]): void => {
  let world: World;

  beforeAll(async () => {
    world = await make();
  });

  afterAll(() => world.close());

  /** Ends everything that a run has left, as whoever made it would. */
  const cleanUp = async (model: Model): Promise<void> => {
    for (const { name, seats } of model.keys) {
      for (const { watch } of seats) watch?.watch.close();
      await world.stores[0]!.forceUnlock(name);
    }
    await expect
      .poll(() => world.leftovers(), { timeout: 5_000 })
      .toEqual({ holds: 0, watches: 0, grantSubscriptions: 0 });
  };

  it('answers any sequence of requests as a model of a few lines does, and keeps nothing', async () => {
    await fc.assert(
      fc.asyncProperty(sequences(world, length), async (commands) => {
        const model = new Model(world);
        try {
          await fc.asyncModelRun(() => ({ model, real: world }), commands);
        } finally {
          await cleanUp(model);
        }
      }),
      runs(count),
    );
  });
};

/** Random requests to stores, each in its world, and a model that says what they have to answer. */
export const describeSeam = (stores: readonly StoreUnderContract[]): void => {
  for (const { name } of stores)
    describe(name, { timeout: PROPERTY_TIMEOUT_MS }, () => describeWorld(WORLDS[name]!));
};
