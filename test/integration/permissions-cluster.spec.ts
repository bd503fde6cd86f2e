import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { PATIENCE_MS, TEST_MS, useCluster } from '../support/redis/cluster-lab.js';
import {
  CLUSTER_RULES,
  documentedLogin,
  DOCUMENTED_RULES,
  FAIR_RULES,
  giveRules,
  QUEUE_RULES,
  OBJECT_RULES,
  PERMIT_RULES,
  READ_WRITE_RULES,
  refusedBy,
} from '../support/redis/documented-user.js';
import { newKey } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

const lab = useCluster({ replicas: false });

const ALL = [
  ...DOCUMENTED_RULES,
  ...QUEUE_RULES,
  ...PERMIT_RULES,
  ...FAIR_RULES,
  ...READ_WRITE_RULES,
  ...OBJECT_RULES,
  ...CLUSTER_RULES,
];

describe('the documented user of Redis, in a cluster,', { timeout: TEST_MS }, () => {
  const setUser = (rules: readonly string[]) => giveRules(lab.redis.servers, rules);
  const refused = () => refusedBy(...lab.redis.servers);
  const open = (options = {}): OpenLocks => lab.open(options, { ...lab.redis.options, ...documentedLogin });

  const everything = async (a: OpenLocks, b: OpenLocks): Promise<void> => {
    for (const options of [{}, { mode: 'fair' }, { mode: 'read' }, { mode: 'write' }] as const) {
      const key = newKey();
      const lease = await a.locks.acquire(key, options.mode ? { mode: 'write' } : options);
      const waiting = b.locks.acquire(key, { waitMs: PATIENCE_MS, ...options });
      await until(
        async () => (await a.locks.inspect(key))?.waiting.length === 1 || b.store.subscriptions > 0,
      );
      expect(await lease.verify()).toBe(true);
      await lease.release();
      await (await waiting).release();
    }
    const permit = await a.locks.permits(newKey(), { permits: 2 }).acquire();
    await permit.release();
    const semaphore = a.locks.semaphore(newKey());
    await semaphore.trySetPermits(1);
    await semaphore.acquire();
    const requested = b.locks.semaphore(semaphore.key).acquire(1, { waitMs: PATIENCE_MS });
    await semaphore.release();
    await requested;
    const latch = a.locks.countDownLatch(newKey());
    await latch.trySetCount(1);
    const open = b.locks.countDownLatch(latch.key).wait({ waitMs: PATIENCE_MS });
    await latch.countDown();
    await open;
    await a.locks.ping();
  };

  it.each([
    ['with sharded messages', {}],
    ['without', { shardedPubSub: false }],
  ])('is enough for everything, %s, and is refused nothing', async (_, options) => {
    await setUser(ALL);
    await everything(open(options), open(options));
    // Whether messages can be sharded is asked for in any case.
    expect(await refused()).toEqual([]);
  });

  it('without the rights for the wait queue on one server is told that before any lock', async () => {
    await setUser(ALL);
    const [server] = lab.redis.servers;
    await server!.cli('ACL', 'SETUSER', documentedLogin.username, '-hget');
    const at = `${server!.host}:${server!.port}`;
    await expect(open().store.diagnose()).rejects.toThrow(`lacks these ACL rules on ${at}: +hget. `);
  });

  it('without the rights for the wait queue is told nothing where messages are not sharded', async () => {
    await setUser(ALL.filter((rule) => !QUEUE_RULES.includes(rule)));
    const { locks, store } = open({ shardedPubSub: false });
    expect(await store.diagnose()).toEqual([]);
    expect(await locks.withLock(newKey(), () => 'ran')).toBe('ran');
  });

  it('without +cluster|slots takes no lock, and is told so', async () => {
    await setUser(ALL.filter((rule) => rule !== '+cluster|slots'));
    await expect(open().locks.acquire(newKey())).rejects.toThrow(/which one has which slots.*NOPERM/s);
  });
});
