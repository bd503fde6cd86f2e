import { AssertionError } from 'node:assert';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { defaultCall } from '../../../lib/core/settings/lock-call.js';
import { DEFAULT_SETTINGS } from '../../../lib/core/settings/lock-settings.js';
import {
  QUEUE_ACQUIRE,
  QUEUE_FORCE_UNLOCK,
  QUEUE_KEEP,
  QUEUE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/queue-scripts.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { RedisServer } from '../../support/servers/redis-server.js';
import { ON_REDIS } from '../../mistakes/index.js';
import { breakLibrary } from '../../mistakes/source/broken-library.js';
import { RedisStage, type OnRedis } from './redis-stage.js';

const INTACT: OnRedis = {
  QUEUE_ACQUIRE,
  QUEUE_RELEASE,
  QUEUE_KEEP,
  QUEUE_FORCE_UNLOCK,
  RedisStore,
  LockManager,
  defaultCall,
  DEFAULT_SETTINGS,
};
const NAMES = Object.keys(INTACT) as (keyof OnRedis)[];

let server: RedisServer;
beforeAll(async () => {
  server = await RedisServer.start();
});
afterAll(() => server.stop());

let keys = 0;
const play = async (library: OnRedis, mistake: (typeof ON_REDIS)[number]): Promise<void> => {
  await using stage = await RedisStage.open(library, server, `key-${++keys}`);
  await mistake.onRedis.play(stage);
};

describe('on a real server, a mistake is noticed in a copy of the library', () => {
  it.each(ON_REDIS)('$name', async (mistake) => {
    using library = breakLibrary(mistake.name, mistake.edits);
    await expect(play(await library.load<OnRedis>(...NAMES), mistake)).rejects.toThrow(AssertionError);
  });
});

describe('and nothing in the library as it is, when the same is done to it', () => {
  it.each(ON_REDIS)('$name', async (mistake) => {
    await play(INTACT, mistake);
  });
});
