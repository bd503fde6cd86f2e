import { afterEach, describe, expect, it } from 'vitest';
import type { FairClaim } from '../../../lib/core/seam/claim.js';
import type { Queued } from '../../../lib/core/seam/reply.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { fairFor, fairWaiter } from '../kinds/kind-under-contract.js';
import { within } from '../../support/async.js';
import { holdName, newKey, useLab } from '../../support/redis/lab.js';
import { visitsOf } from '../../support/redis/script-commands.js';

const lab = useLab();
const stores: RedisStore[] = [];
afterEach(async () => {
  for (const store of stores.splice(0)) await store.close();
});

const openStore = (): RedisStore => {
  const store = new RedisStore({ redis: lab.server.url });
  stores.push(store);
  return store;
};

interface Waiter {
  readonly claim: FairClaim;
  readonly reply: Queued;
}

/** A held lock with `count` entries in its wait queue, which no process refreshes. */
const heldWith = async (store: RedisStore, count: number, aliveMs = 8_000) => {
  const name = holdName(newKey());
  const holder = fairFor(name);
  await store.kinds.fair.acquire(holder);
  const waiters: Waiter[] = [];
  const entryTerms = { aliveMs, provisionalLeaseMs: 10_000, tokens: 1 };
  for (let i = 0; i < count; i += 1) {
    const claim = fairWaiter(name, { entryTerms });
    const reply = await store.kinds.fair.acquire(claim);
    if (reply.status === 'queued') waiters.push({ claim, reply });
  }
  expect(waiters).toHaveLength(count);
  return { name, holder, waiters };
};

const commandsOf = (what: () => Promise<unknown>): Promise<string[]> => visitsOf(lab.server, what);

describe('the cost of a fair lock does not depend on the number of waiters:', () => {
  it.each([
    ['a leave at the front', 0],
    ['a leave in the middle', 0.5],
    ['a leave at the end', 1],
  ])('%s', async (_what, at) => {
    const store = openStore();
    const [few, many] = [await heldWith(store, 10), await heldWith(store, 1_000)];
    const leaves = ({ waiters }: typeof few) => {
      const { reply } = waiters[Math.floor(at * (waiters.length - 1))]!;
      return commandsOf(() => reply.entry.leave());
    };
    const commands = await leaves(many);
    expect(commands).toEqual(await leaves(few));
    expect(commands.filter((command) => command.startsWith('lrem'))).toHaveLength(1);
    expect(commands.length).toBeLessThan(12);
  });

  it('a wait that times out: the last request and the leave', async () => {
    const store = openStore();
    const [few, many] = [await heldWith(store, 10), await heldWith(store, 1_000)];
    const timesOut = ({ waiters }: typeof few) => {
      const { claim, reply } = waiters[5]!;
      return commandsOf(async () => {
        expect(await store.kinds.fair.acquire(claim)).toMatchObject({ status: 'queued', position: 5 });
        await reply.entry.leave();
      });
    };
    expect(await timesOut(many)).toEqual(await timesOut(few));
  });

  it('a release, and the acquire of the first waiter', async () => {
    const store = openStore();
    const [few, many] = [await heldWith(store, 10), await heldWith(store, 1_000)];
    const goesOn = ({ holder, waiters }: typeof few) =>
      commandsOf(async () => {
        expect(await store.kinds.fair.release(holder)).toMatchObject({ wasHeld: true });
        expect(await store.kinds.fair.acquire(waiters[0]!.claim)).toMatchObject({ status: 'granted' });
      });
    expect(await goesOn(many)).toEqual(await goesOn(few));
  });

  it('a position: it stays known where only the first entries are read', async () => {
    const store = openStore();
    const { waiters } = await heldWith(store, 100);
    const claims = waiters.map(({ claim }) => claim);
    const kept = await store.kinds.fair.refreshEntries!(claims);
    expect(kept).toMatchObject(claims.map((_, position) => ({ status: 'queued', position })));
    for (const { reply } of waiters.slice(0, 60)) await reply.entry.leave();
    const [last] = await store.kinds.fair.refreshEntries!(claims.slice(-1));
    expect(last).toMatchObject({ position: 39 });
  });

  it('leaves of one tick share requests', async () => {
    const store = openStore();
    const { waiters } = await heldWith(store, 160);
    const scripts = async (): Promise<number> => {
      const stats = await lab.admin.info('commandstats');
      return Number(/cmdstat_evalsha:calls=(\d+)/.exec(stats)![1]);
    };
    const before = await scripts();
    await Promise.all(waiters.map(({ reply }) => reply.entry.leave()));
    expect((await scripts()) - before).toBeLessThanOrEqual(160 / 16 + 1);
  });
});

describe('dead entries of a fair lock', () => {
  it('are all cleared by one caller, however many there are, also by one that does not wait', async () => {
    const store = openStore();
    for (const waitMs of [0, 5_000]) {
      const { name, holder } = await heldWith(store, 1_000, 1);
      await store.kinds.fair.release(holder);
      const key = name.slice(holdName('').length);
      const lease = await within(2_000, lab.open().locks.acquire(key, { mode: 'fair', waitMs }));
      await lease.release();
      const keys = [`redisson_lock_queue:{${name}}`, `redisson_lock_timeout:{${name}}`];
      expect(await lab.admin.exists(...keys)).toBe(0);
    }
  });
});
