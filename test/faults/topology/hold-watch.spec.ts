import { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Script } from '../../../lib/stores/redis/connection/script.js';
import {
  EXCLUSIVE_ACQUIRE,
  EXCLUSIVE_FORCE_UNLOCK,
  EXCLUSIVE_RELEASE,
} from '../../../lib/stores/redis/kinds/exclusive/scripts.js';
import type { HistoryEvent } from '../../checker/history.js';
import { until } from '../../support/async.js';
import { ADMIN } from '../../support/redis-configuration.js';
import { RedisServer } from '../../support/redis-server.js';
import { HoldWatch } from './hold-watch.js';
import { RedisMonitor } from './redis-monitor.js';

let server: RedisServer;
let client: Redis;
beforeAll(async () => {
  server = await RedisServer.start();
  client = new Redis({ ...server.clientOptions(), ...ADMIN });
});
afterAll(async () => {
  client.disconnect();
  await server.stop();
});

const LEASE_MS = 60_000;
const CHANNEL = 'channel';

/** How the hold of a key ends, as the watch sees it, when a script is run on it. */
const endBy = async (script: (key: string) => Promise<unknown>): Promise<unknown> => {
  const key = 'lock:a';
  const events: HistoryEvent[] = [];
  const watch = new HoldWatch('lock:', (event) => void events.push(event));
  const monitor = new RedisMonitor(server.port, (command) => watch.take(command, 0));
  try {
    await until(() => monitor.isAttached);
    await client.eval(EXCLUSIVE_ACQUIRE, 1, key, 'me:1', LEASE_MS, 0);
    await script(key);
    await until(() => events.some(({ type }) => type === 'free'));
    return events.find((event) => event.type === 'free')?.how;
  } finally {
    monitor.close();
  }
};

describe('the watch over what a server carries out', () => {
  it('sees a release', async () => {
    const end = endBy((key) => client.eval(EXCLUSIVE_RELEASE, 1, key, 'me:1', CHANNEL, 'PUBLISH'));
    expect(await end).toBe('released');
  });

  it('sees that a hold was forced open, by the hash of the script or by all of it', async () => {
    const bySource = (key: string) => client.eval(EXCLUSIVE_FORCE_UNLOCK, 1, key, CHANNEL, 'PUBLISH');
    const { sha } = new Script(EXCLUSIVE_FORCE_UNLOCK);
    const byHash = (key: string) => client.evalsha(sha, 1, key, CHANNEL, 'PUBLISH');
    expect(await endBy(bySource)).toBe('forced');
    expect(await endBy(byHash)).toBe('forced');
  });
});
