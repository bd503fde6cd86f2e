import { Redis } from 'ioredis';
import type { LockService } from 'nest-redis-lock';
import { CHARGES } from '../../payment/payment.client.js';
import { onPath, PROBE_TIMEOUT_MS, startServer } from '../backends.js';
import { given } from '../given.js';
import { openLocks, type StoreOfDemo } from './lock-desk.js';

/** Keys in which the library keeps the last fencing token of each hash slot. */
const FENCE_KEYS = 'nest_redis_lock:fence:*';
const SCAN_COUNT = 1_000;

export const redis: StoreOfDemo = {
  title: 'Redis',
  async findServer(parts) {
    const server = await given({
      title: 'Redis',
      variable: 'REDIS_URL',
      example: 'redis://localhost:6379',
      probe,
    });
    if (server) return server;
    const program = onPath('redis-server') ?? onPath('valkey-server');
    if (program) return startServer(parts, 'Redis server', './parts/redis-server.part.js', program);
    const name = 'embedded Valkey (no redis-server on the PATH)';
    return startServer(parts, name, './parts/embedded-valkey.part.js');
  },
  /** All locks of `keyPrefix` must be in one hash slot, so it has to contain a hash tag. */
  async open(place, resources, keyPrefix) {
    const locks = await openLocks(place, resources, keyPrefix);
    const client = new Redis(place.url, { maxRetriesPerRequest: 1 });
    // Every command that fails reports that itself.
    client.on('error', () => undefined);
    resources.defer(() => client.disconnect());
    const before = await fenceKeys(client);
    resources.defer(() => removeTraces(client, locks, before));
    return locks;
  },
};

/** Sends one command. The reason of a failure is in the events of the client, not in its error. */
const probe = async (url: string): Promise<void> => {
  const timeouts = { connectTimeout: PROBE_TIMEOUT_MS, commandTimeout: PROBE_TIMEOUT_MS };
  const client = new Redis(url, { ...timeouts, lazyConnect: true, retryStrategy: () => null });
  let cause: unknown;
  client.on('error', (error) => (cause = error));
  try {
    await client.connect();
    await client.ping();
  } catch (error) {
    throw cause ?? error;
  } finally {
    client.disconnect();
  }
};

/** Removes the fence key of this run, and the number of permits. Holds have been released or have expired by then. */
const removeTraces = async (
  client: Redis,
  locks: LockService,
  fenceKeysBefore: ReadonlySet<string>,
): Promise<void> => {
  await locks.forceUnlock(CHARGES);
  const lease = await locks.acquire('closing');
  const token = String(lease.fencingToken);
  await lease.release();
  // Its name is internal to the library. It is the key that is new in this run and has the token just granted.
  for (const key of await fenceKeys(client)) {
    if (fenceKeysBefore.has(key)) continue;
    if ((await client.get(key)) === token) await client.del(key);
  }
};

const fenceKeys = async (client: Redis): Promise<Set<string>> => {
  const found = new Set<string>();
  for await (const keys of client.scanStream({ match: FENCE_KEYS, count: SCAN_COUNT })) {
    for (const key of keys as string[]) found.add(key);
  }
  return found;
};
