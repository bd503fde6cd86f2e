import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { claimFor, expectGranted } from '../../support/stores/harness.js';
import { redisHarness, type RedisHarness } from '../../support/stores/redis.harness.js';
import { WaitingProcess } from '../../support/stores/waiter.js';
import { fairWaiter, permitFor, readFor } from '../kinds/kind-under-contract.js';
import { listAll } from '../parts/listing.js';

const PREFIX = 'lock:';

/** What other hands have put among the locks, and what a list of locks finds in Redis besides. */
describe('the list of holds in Redis', () => {
  let harness: RedisHarness;
  let store: RedisStore;

  beforeAll(async () => {
    harness = await redisHarness();
  });
  afterEach(async () => {
    await store.close();
    await harness.admin.flushall();
  });
  afterAll(() => harness.cleanup());

  /** A store that has taken no lock yet: to a process, kinds that it does not use are foreign. */
  const open = (redis: ConstructorParameters<typeof RedisStore>[0]['redis'] = harness.server.url) =>
    (store = new RedisStore({ redis }));

  const namesIn = async (prefix: string): Promise<readonly string[]> =>
    (await listAll(store, prefix)).map(({ finalKey }) => finalKey).sort();

  it.each([{ uses: 'no other kind' }, { uses: 'each kind' }])(
    'passes over values that are no lock, in a process that uses $uses',
    async ({ uses }) => {
      open();
      if (uses === 'each kind') {
        for (const claim of [permitFor('other:1'), readFor('other:2')]) {
          expectGranted(await store.kinds[claim.kind].acquire(claim as never));
        }
      }
      const { admin } = harness;
      await admin.set(`${PREFIX}text`, 'a string');
      await admin.set(`${PREFIX}semaphore`, '3');
      await admin.set(`${PREFIX}huge`, 'x'.repeat(100_000));
      await admin.rpush(`${PREFIX}list`, 'a');
      await admin.sadd(`${PREFIX}set`, 'a');
      await admin.zadd(`${PREFIX}zset`, 1, 'a');
      await admin.xadd(`${PREFIX}stream`, '*', 'a', '1');
      await admin.set(Buffer.from([...Buffer.from(PREFIX), 0xff, 0xfe]), 'bytes');
      expectGranted(await store.kinds.exclusive.acquire(claimFor(`${PREFIX}held`)));
      expect(await namesIn(PREFIX)).toEqual([`${PREFIX}held`]);
    },
  );

  it.each(['', '{', 'a'])(
    'has no name that the library keeps beside the locks, with the prefix %j',
    async (of) => {
      open();
      const keys = of === '{' ? ['{a}:x', '{b}:y', '{c}:z', '{d}:w'] : ['ax', 'ay', 'az', 'aw'];
      const process = new WaitingProcess(store);
      const holder = await process.take(keys[0]!);
      await process.enqueue(holder.finalKey);
      expectGranted(await store.kinds.permit.acquire(permitFor(keys[1]!)));
      expectGranted(await store.kinds.read.acquire(readFor(keys[2]!)));
      expectGranted(await store.kinds.fair.acquire(fairWaiter(keys[3]!)));
      await store.kinds.fair.acquire(fairWaiter(keys[3]!));
      expect((await harness.admin.keys('*')).length).toBeGreaterThan(keys.length + 4);
      expect(await namesIn(of)).toEqual(keys.sort());
    },
  );

  it('has the holds under the keyPrefix of the client, and no others', async () => {
    open({ host: harness.server.host, port: harness.server.port, keyPrefix: 'app[1]:' });
    expectGranted(await store.kinds.exclusive.acquire(claimFor(`${PREFIX}mine`)));
    await harness.admin.hset(`${PREFIX}theirs`, 'p:1', 1);
    await harness.admin.hset(`app1:${PREFIX}other`, 'p:1', 1);
    expect(await namesIn(PREFIX)).toEqual([`${PREFIX}mine`]);
  });

  it('has each of 3,000 keys among 3,000 others once, and looks at about 500 of them for a page', async () => {
    open();
    const fill = `for i = 1, 3000 do
      redis.call('hset', 'lock:' .. i, 'p:' .. i, 1) redis.call('set', 'other:' .. i, 1) end`;
    await harness.admin.eval(fill, 0);
    let pages = 0;
    const found: string[] = [];
    for (let cursor: string | undefined; pages === 0 || cursor !== undefined; pages += 1) {
      const page = await store.list({ prefix: PREFIX, cursor });
      expect(page.keys.length).toBeLessThan(600);
      found.push(...page.keys.map(({ finalKey }) => finalKey));
      ({ cursor } = page);
    }
    expect(pages).toBeGreaterThan(5);
    expect(found).toHaveLength(3_000);
    expect(new Set(found).size).toBe(3_000);
  });
});
