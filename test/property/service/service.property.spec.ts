import fc from 'fast-check';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { runs } from '../../support/property/runs.js';
import { endAll, settle } from './agreement.js';
import { sequences } from './commands.js';
import { Model } from './model.js';
import { memoryWorld, redisWorlds, UNUSED, type RedisWorlds, type World } from './world.js';

/** Runs one sequence, and sees to it that nothing is left of it. */
const runOne = async (world: World, commands: Iterable<fc.AsyncCommand<Model, World>>): Promise<void> => {
  const model = new Model(world);
  try {
    await fc.asyncModelRun(() => ({ model, real: world }), commands);
  } catch (error) {
    // What was found is what matters, not what that leaves.
    await endAll(model).catch(() => undefined);
    throw error;
  }
  await endAll(model);
  await settle(model);
  for (const { usage } of world.services) expect(usage).toEqual(UNUSED);
  await until(async () => {
    const { holds, watches } = await world.leftovers();
    return holds === 0 && watches === 0;
  });
};

describe('any sequence of calls of several services does what a simple model says, and leaves nothing', () => {
  it('on the memory store, while time passes', async () => {
    await fc.assert(
      fc.asyncProperty(sequences(true, 60), async (commands) => runOne(await memoryWorld(), commands)),
      runs(300),
    );
  });

  describe('on the Redis store', () => {
    let worlds: RedisWorlds;

    beforeAll(async () => {
      worlds = await redisWorlds();
    });

    afterAll(() => worlds.close());

    it('in real time', async () => {
      await fc.assert(
        fc.asyncProperty(sequences(false, 40), async (commands) => runOne(await worlds.open(), commands)),
        runs(60),
      );
    });
  });
});
