import fc from 'fast-check';
import { afterAll, beforeAll, describe, it } from 'vitest';
import { PROPERTY_TIMEOUT_MS, runs } from '../../../support/property/runs.js';
import { sequences } from '../commands.js';
import { runOne } from '../run-one.js';
import { redisWorlds, type RedisWorlds } from '../world.js';

describe('any sequence of calls of several services does what a simple model says, and leaves nothing', () => {
  let worlds: RedisWorlds;

  beforeAll(async () => {
    worlds = await redisWorlds();
  });

  afterAll(() => worlds.close());

  it(
    'on the Redis store, in real time',
    async () => {
      await fc.assert(
        fc.asyncProperty(sequences(false, 40), async (commands) => runOne(await worlds.open(), commands)),
        runs(60),
      );
    },
    PROPERTY_TIMEOUT_MS,
  );
});
