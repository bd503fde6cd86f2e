import { RedisStore, QuorumStore } from 'nest-redis-lock/redis';
import { describe, expect, it } from 'vitest';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { DEFAULT_SETTINGS } from '../../../lib/core/settings/lock-settings.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import type { RedisStoreOptions } from '../../../lib/stores/redis/redis.store.js';
import { RecordingLogger } from '../../support/nest/recording-logger.js';

/** No server is there. */
const NOWHERE = { host: '127.0.0.1', port: 1 };

const storeOn = (options: Partial<RedisStoreOptions> = {}): RedisStore =>
  new RedisStore({ redis: NOWHERE, commandTimeoutMs: 20, foreignHold: 'taken', ...options });

/** What a service logs about names when it starts. */
const loggedBy = async (store: LockStore, keyPrefix = DEFAULT_SETTINGS.keyPrefix): Promise<string[]> => {
  const logger = new RecordingLogger();
  const manager = new LockManager(store, { ...DEFAULT_SETTINGS, keyPrefix }, logger);
  await manager.open();
  await manager.close();
  return logger.lines.filter((line) => line.includes('foreignHold'));
};

describe("foreignHold: 'taken'", () => {
  it('logs at the start which names it looks at, because another library has other names', async () => {
    expect(await loggedBy(storeOn())).toEqual([
      expect.stringContaining('looks only at names that begin with "lock:" (keyPrefix).'),
    ]);
  });

  it('counts the prefix of the Redis client, too', async () => {
    const prefixed = storeOn({ redis: { ...NOWHERE, keyPrefix: 'app:' } });
    expect(await loggedBy(prefixed, '')).toEqual([expect.stringContaining('begin with "app:" (keyPrefix)')]);
  });

  it('logs one line for all nodes of a quorum', async () => {
    const nodes = [1, 2, 3].map((port) => storeOn({ redis: { ...NOWHERE, port } }));
    expect(await loggedBy(new QuorumStore({ nodes }))).toHaveLength(1);
  });

  it.each([
    ['without a prefix', storeOn(), ''],
    ['without the option', storeOn({ foreignHold: undefined }), 'lock:'],
  ])('logs nothing %s', async (_case, store, keyPrefix) => {
    expect(await loggedBy(store, keyPrefix)).toEqual([]);
  });
});
