import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import {
  holderOf,
  claimFor,
  expectGranted,
  expectTaken,
  WakeUpCounter,
  newKey,
} from '../../support/stores/harness.js';
import { WaitingProcess } from '../../support/stores/waiter.js';
import { TcpProxy } from '../../support/tcp-proxy.js';
import { redisHarness, type RedisHarness } from '../../support/stores/redis.harness.js';

/** Number of owners that the store knows to wait, or to have a grant of which their caller has not heard. */
const queuedOwners = ({ kinds }: RedisStore): number =>
  (kinds.exclusive as unknown as { queue: { entries: { size: number } } }).queue.entries.size;

const failureOf = async (request: Promise<unknown>): Promise<unknown> => {
  const failure = await request.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(StoreFailure);
  return failure;
};

/**
 * What the contract means in Redis, where foreign hands can reach the same keys. Where fencing tokens are kept is in
 * test/integration/fencing.spec.ts, what becomes of wake-ups in wake-up-connection.spec.ts.
 */
describe('RedisStore', () => {
  let harness: RedisHarness;
  let store: RedisStore;

  beforeAll(async () => {
    harness = await redisHarness();
    store = new RedisStore({ redis: harness.server.url });
  });

  afterEach(async () => {
    await harness.admin.flushall();
  });

  afterAll(async () => {
    await store.close();
    await harness.cleanup();
  });

  it('one key of another type in a batch is lost by itself; the others are renewed', async () => {
    const claims = Array.from({ length: 250 }, () => claimFor(newKey()));
    const bad = new Set([0, 99, 150, 249]);
    await Promise.all(
      claims.map((claim, i) =>
        bad.has(i) ? harness.admin.set(claim.finalKey, 'a string') : store.kinds.exclusive.acquire(claim),
      ),
    );
    const replies = await store.kinds.exclusive.extendMany(
      claims.map((claim) => ({ ...claim, leaseMs: 120_000 })),
    );
    expect(replies.map(({ status }) => status)).toEqual(claims.map((_, i) => (bad.has(i) ? 'lost' : 'held')));
    const left = await Promise.all(claims.map(({ finalKey: key }) => harness.admin.pttl(key)));
    left.forEach((ms, i) => (bad.has(i) ? expect(ms).toBe(-1) : expect(ms).toBeGreaterThan(110_000)));
  });

  it('a key of another type is a store failure, never "taken", and is left alone', async () => {
    const claim = claimFor(newKey());
    await harness.admin.set(claim.finalKey, 'a string');
    for (const request of [
      () => store.kinds.exclusive.acquire(claim),
      () => store.inspect(claim.finalKey),
      () => store.forceUnlock(claim.finalKey),
    ]) {
      expect(await failureOf(request())).toMatchObject({ outcome: 'not-executed', keyOnly: true });
    }
    expect(await harness.admin.get(claim.finalKey)).toBe('a string');
  });

  it('a release of a key of another type finds no hold, alone or in a batch, and does not change the key', async () => {
    const claims = Array.from({ length: 3 }, () => claimFor(newKey()));
    await Promise.all(claims.map((claim) => store.kinds.exclusive.acquire(claim)));
    await harness.admin.set(claims[0]!.finalKey, 'a string');
    await harness.admin.set(claims[1]!.finalKey, 'a string');
    expect(await store.kinds.exclusive.release(claims[0]!)).toEqual({ wasHeld: false, othersWaiting: false });
    const replies = await Promise.all(claims.slice(1).map((claim) => store.kinds.exclusive.release(claim)));
    expect(replies.map(({ wasHeld }) => wasHeld)).toEqual([false, true]);
    expect(await harness.admin.get(claims[0]!.finalKey)).toBe('a string');
    expect(await harness.admin.get(claims[1]!.finalKey)).toBe('a string');
  });

  it("a hold is Redisson's: a hash with the owner's field at 1 and a time to live", async () => {
    const claim = claimFor(newKey());
    await store.kinds.exclusive.acquire(claim);
    await store.kinds.exclusive.acquire(claim);
    expect(await harness.admin.hgetall(claim.finalKey)).toEqual({ [claim.owner]: '1' });
    const left = await harness.admin.pttl(claim.finalKey);
    expect(left).toBeGreaterThan(claim.leaseMs - 5_000);
    expect(left).toBeLessThanOrEqual(claim.leaseMs);
  });

  it('a foreign hold, nested and without an end: taken, to be looked at again soon, and shown as it is', async () => {
    const claim = claimFor(newKey());
    await harness.admin.hset(claim.finalKey, 'java:7', '3');
    const reply = await store.kinds.exclusive.acquire(claim);
    expectTaken(reply);
    expect(reply.retryInMs).toBeGreaterThan(0);
    expect(reply.retryInMs).toBeLessThanOrEqual(5_000);
    expect(await store.inspect(claim.finalKey)).toEqual({
      kind: 'exclusive',
      holders: [{ owner: 'java:7', count: 3, remainingMs: Infinity }],
      waiting: [],
    });
    expect((await store.kinds.exclusive.release(claim)).wasHeld).toBe(false);
    expect(await store.forceUnlock(claim.finalKey)).toBe(true);
  });

  it('a hash of 100,000 foreign fields blocks no other request: inspect still answers', async () => {
    const key = newKey();
    const fill = "for i = 1, 100000 do redis.call('hset', KEYS[1], 'field' .. i, 1) end";
    await harness.admin.eval(fill, 1, key);
    expect((await store.inspect(key))?.holders[0]?.owner).toMatch(/^field\d+$/);
    expectTaken(await store.kinds.exclusive.acquire(claimFor(key)));
  });

  it('every request works after SCRIPT FLUSH', async () => {
    const [one, two] = [claimFor(newKey()), claimFor(newKey())];
    for (const claim of [one, two]) {
      await harness.admin.script('FLUSH');
      expectGranted(await store.kinds.exclusive.acquire(claim));
      await harness.admin.script('FLUSH');
      expect((await store.kinds.exclusive.extendMany([claim]))[0]!.status).toBe('held');
      await harness.admin.script('FLUSH');
      expect(await holderOf(store, claim.finalKey)).toMatchObject({ owner: claim.owner });
    }
    await harness.admin.script('FLUSH');
    expect((await store.kinds.exclusive.release(one)).wasHeld).toBe(true);
    await harness.admin.script('FLUSH');
    expect(await store.forceUnlock(two.finalKey)).toBe(true);
  });

  it('an owner whose grant was lost before it was confirmed leaves nothing in the store', async () => {
    const process = new WaitingProcess(store);
    const holder = await process.take(newKey());
    const { finalKey } = holder;
    const waiter = await process.enqueue(finalKey);
    await store.kinds.exclusive.release(holder);
    await waiter.grant();
    await harness.admin.del(finalKey);
    const other = await process.take(finalKey);
    const confirmation = { ...waiter.claim, waits: false, entryTerms: undefined, reacquires: true };
    expectTaken(await store.kinds.exclusive.acquire(confirmation));
    expect(queuedOwners(store)).toBe(0);
    await store.kinds.exclusive.release(other);
  });

  it('a granted owner whose release fails in an outage leaves nothing in the store', async () => {
    const { host, port } = harness.server;
    await using proxy = await TcpProxy.start({ host, port });
    const apart = new RedisStore({ redis: `redis://127.0.0.1:${proxy.port}`, commandTimeoutMs: 200 });
    const holder = claimFor(newKey());
    expectGranted(await store.kinds.exclusive.acquire(holder));
    const waiter = await new WaitingProcess(apart).enqueue(holder.finalKey);
    await store.kinds.exclusive.release(holder);
    await waiter.grant();
    proxy.refuse();
    proxy.cut();
    await failureOf(apart.ping());
    await failureOf(apart.kinds.exclusive.release(waiter.claim));
    expect(queuedOwners(apart)).toBe(0);
    await apart.close();
  });

  it('a message of a foreign client on the channel is a hint', async () => {
    const claim = claimFor(newKey());
    const wakeUps = await WakeUpCounter.live(store, claim.finalKey);
    const seen = wakeUps.count;
    await harness.admin.publish(`redisson_lock__channel:{${claim.finalKey}}`, '0');
    await wakeUps.next(seen);
    wakeUps.watch.close();
    expect(store.subscriptions).toBe(0);
  });
});
