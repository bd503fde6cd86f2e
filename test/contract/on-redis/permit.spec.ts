import { randomBytes } from 'node:crypto';
import fc from 'fast-check';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { PermitClaim } from '../../../lib/core/seam/claim.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { RedisStore } from '../../../lib/stores/redis/redis.store.js';
import { expectGranted, expectTaken, WakeUpCounter, newKey } from '../../support/stores/harness.js';
import { newPermitOwner, permitFor } from '../kinds/kind-under-contract.js';
import { redisHarness, type RedisHarness } from '../../support/stores/redis.harness.js';

/** The score of a permit of Java that never ends. */
const NEVER = '922337203685477';

/** Whether two values end in the same ms. Redis 6.2 tells only what is left, which counts while its clock stands still. */
const SAME_END = `
local ends = {}
for i = 1, 2 do
  local clock, left
  repeat
    clock = redis.call('time')
    left = redis.call('pttl', KEYS[i])
    local after = redis.call('time')
  until clock[1] == after[1] and math.floor(clock[2] / 1000) == math.floor(after[2] / 1000)
  ends[i] = clock[1] * 1000 + math.floor(clock[2] / 1000) + left
end
return ends[1] == ends[2] and 1 or 0
`;

const setOf = (key: string): string => (key.includes('{') ? `${key}:timeout` : `{${key}}:timeout`);
const memberOf = ({ owner }: PermitClaim): Buffer => Buffer.from(owner, 'hex');

/** What permits are in Redis, where Java's RPermitExpirableSemaphore reaches the same keys. */
describe('permits of RedisStore', () => {
  let harness: RedisHarness;
  let store: RedisStore;

  beforeAll(async () => {
    harness = await redisHarness();
    store = new RedisStore({ redis: harness.server.url });
  });

  afterEach(async () => {
    await harness.admin.config('SET', 'maxmemory', '0');
    await harness.admin.flushall();
  });

  afterAll(async () => {
    await store.close();
    await harness.cleanup();
  });

  const serverNow = async (): Promise<number> => {
    const [seconds, micros] = await harness.admin.time();
    return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
  };

  /** Between which two moments a value ends. Redis 6.2 tells only what is left, not the moment itself. */
  const expiryOf = async (name: string): Promise<[number, number]> => {
    const before = await serverNow();
    const left = await harness.admin.pttl(name);
    return [before + left, (await serverNow()) + left];
  };

  /** Counter and members: the number of permits. */
  const totalOf = async (key: string): Promise<number> =>
    Number(await harness.admin.get(key)) + (await harness.admin.zcard(setOf(key)));

  const take = async (key: string, overrides: Partial<PermitClaim> = {}): Promise<PermitClaim> => {
    const claim = permitFor(key, overrides);
    expectGranted(await store.kinds.permit.acquire(claim));
    return claim;
  };

  /** A permit as Java takes it from its own counter. */
  const takeAsJava = async (key: string, score: number | string): Promise<Buffer> => {
    const member = randomBytes(16);
    await harness.admin.decr(key);
    await harness.admin.zadd(setOf(key), String(score), member);
    return member;
  };

  it.each([newKey('plain'), `lock:{slot}:${newKey()}`])(
    "are Redisson's: a counter, and a set of 16 bytes each with a whole number of ms of the server's clock: %s",
    async (key) => {
      const before = await serverNow();
      const claims = [await take(key, { of: 3 }), await take(key, { of: 3, leaseMs: 60_000 })];
      const after = await serverNow();
      expect(await harness.admin.get(key)).toBe('1');
      const found = await harness.admin.zrangeBuffer(setOf(key), '0', '-1', 'WITHSCORES');
      expect(found.filter((_, i) => i % 2 === 0)).toEqual(claims.map(memberOf));
      claims.forEach(({ leaseMs }, i) => {
        const score = found[2 * i + 1]!.toString();
        expect(score).toMatch(/^\d{13}$/);
        expect(Number(score)).toBeGreaterThanOrEqual(before + leaseMs);
        expect(Number(score)).toBeLessThanOrEqual(after + leaseMs);
      });
      // Both live as long as the longest lease, to the same ms.
      const last = Number(found[3]);
      for (const name of [key, setOf(key)]) {
        const [from, to] = await expiryOf(name);
        expect(last).toBeGreaterThanOrEqual(from);
        expect(last).toBeLessThanOrEqual(to);
      }
    },
  );

  it('are announced on the channel of Redisson whenever more of them are free', async () => {
    const key = newKey();
    const listener = harness.admin.duplicate();
    const messages: string[] = [];
    listener.on('message', (_, message: string) => messages.push(message));
    await listener.subscribe(`redisson_sc:{${key}}`);
    const next = async (count: number): Promise<void> => {
      await expect.poll(() => messages.length, { timeout: 5_000 }).toBe(count);
    };
    const claim = await take(key, { of: 2 });
    await next(1);
    await store.kinds.permit.release(claim);
    await next(2);
    await take(key, { of: 5 });
    await next(3);
    await store.forceUnlock(key);
    await next(4);
    expect(messages).toEqual(['1', '2', '4', '5']);
    listener.disconnect();
  });

  it('expire in the same ms as their counter, however many keys there are', async () => {
    const keys = Array.from({ length: 300 }, () => newKey());
    await Promise.all(keys.map((key) => take(key, { of: 2 })));
    const both = harness.admin.pipeline();
    for (const key of keys) both.eval(SAME_END, 2, key, setOf(key));
    const found = (await both.exec())!.map(([, same]) => same);
    expect(found).toEqual(keys.map(() => 1));
  });

  it('live as long as the longest lease, and a lengthening and a stay lengthen that', async () => {
    const key = newKey();
    const one = await take(key, { leaseMs: 20_000 });
    const two = await take(key, { leaseMs: 60_000 });
    const ttl = (): Promise<number[]> =>
      Promise.all([harness.admin.pttl(key), harness.admin.pttl(setOf(key))]);
    for (const left of await ttl()) expect(left).toBeGreaterThan(55_000);
    await store.kinds.permit.extendMany([{ ...one, leaseMs: 120_000 }]);
    for (const left of await ttl()) expect(left).toBeGreaterThan(110_000);
    await store.kinds.permit.release(two, { keepForMs: 300_000 });
    for (const left of await ttl()) expect(left).toBeGreaterThan(290_000);
    expect(await totalOf(key)).toBe(2);
  });

  it('leave a counter that Java made without a time to live, and take it off a set that has one', async () => {
    const key = newKey();
    await harness.admin.set(key, '2');
    const claim = await take(key, { of: undefined });
    expect([await harness.admin.pttl(key), await harness.admin.pttl(setOf(key))]).toEqual([-1, -1]);
    await store.kinds.permit.extendMany([{ ...claim, leaseMs: 90_000 }]);
    expect([await harness.admin.pttl(key), await harness.admin.pttl(setOf(key))]).toEqual([-1, -1]);
    // What Java's addPermits does to a counter of ours: the counter stays, and must not lose its set.
    const ours = newKey();
    await take(ours);
    await harness.admin.set(ours, '3');
    await take(ours, { of: undefined });
    expect([await harness.admin.pttl(ours), await harness.admin.pttl(setOf(ours))]).toEqual([-1, -1]);
  });

  it('count those of Java: an endless one stays taken, an expired one is free again', async () => {
    const key = newKey();
    await harness.admin.set(key, '2');
    const endless = await takeAsJava(key, NEVER);
    await takeAsJava(key, (await serverNow()) + 20_000);
    const refused = await store.kinds.permit.acquire(permitFor(key));
    expectTaken(refused);
    expect(refused.retryInMs).toBeLessThanOrEqual(20_000);
    expect(refused.retryInMs).toBeGreaterThan(15_000);
    expect((await store.inspect(key))?.holders).toContainEqual({
      owner: endless.toString('hex'),
      count: 1,
      remainingMs: Infinity,
    });
    await harness.admin.zremrangebyrank(setOf(key), 0, 0);
    await harness.admin.zadd(setOf(key), (await serverNow()) - 5, randomBytes(16));
    expectGranted(await store.kinds.permit.acquire(permitFor(key)));
    expect(await totalOf(key)).toBe(2);
    const last = await store.kinds.permit.acquire(permitFor(key));
    expectTaken(last);
  });

  it('of which only endless ones are taken are looked for again soon', async () => {
    const key = newKey();
    await harness.admin.set(key, '1');
    await takeAsJava(key, NEVER);
    const reply = await store.kinds.permit.acquire(permitFor(key, { of: 1 }));
    expectTaken(reply);
    expect(reply.retryInMs).toBeGreaterThan(0);
    expect(reply.retryInMs).toBeLessThanOrEqual(5_000);
  });

  it('keep a counter of ours alive for a permit of Java that lasts longer', async () => {
    const key = newKey();
    await take(key, { of: 3 });
    await takeAsJava(key, (await serverNow()) + 600_000);
    await take(key, { of: 3 });
    expect(await harness.admin.pttl(key)).toBeGreaterThan(590_000);
    expect(await harness.admin.pttl(setOf(key))).toBeGreaterThan(590_000);
  });

  it('that are held still count after their counter is deleted', async () => {
    const key = newKey();
    const claims = [await take(key), await take(key, { leaseMs: 60_000 })];
    await harness.admin.del(key);
    expectTaken(await store.kinds.permit.acquire(permitFor(key)));
    expect(await totalOf(key)).toBe(2);
    expect(await harness.admin.pttl(key)).toBeGreaterThan(55_000);
    await harness.admin.del(key);
    // Nothing can be given back to a counter that is not there: the next limit counts what is taken.
    expect((await store.kinds.permit.release(claims[0]!)).wasHeld).toBe(true);
    expect(await harness.admin.exists(key)).toBe(0);
    await take(key);
    expectTaken(await store.kinds.permit.acquire(permitFor(key)));
    expect(await totalOf(key)).toBe(2);
  });

  it('last as long as a renewal says although their counter has gone', async () => {
    const key = newKey();
    const claim = await take(key, { of: 1, leaseMs: 5_000 });
    await harness.admin.del(key);
    const longer = { ...claim, leaseMs: 60_000 };
    expect(await store.kinds.permit.extendMany([longer])).toEqual([{ status: 'held', validForMs: 60_000 }]);
    expect(await harness.admin.pttl(setOf(key))).toBeGreaterThan(55_000);
    await store.kinds.permit.release(claim, { keepForMs: 120_000 });
    expect(await harness.admin.pttl(setOf(key))).toBeGreaterThan(115_000);
  });

  it('leave alone what has taken the place of their counter', async () => {
    const key = newKey();
    const claim = await take(key, { of: 1, leaseMs: 5_000 });
    await harness.admin.del(key);
    await harness.admin.hset(key, 'someone:1', 1);
    await harness.admin.pexpire(key, 4_000);
    const longer = { ...claim, leaseMs: 60_000 };
    expect(await store.kinds.permit.extendMany([longer])).toEqual([{ status: 'held', validForMs: 60_000 }]);
    expect(await harness.admin.pttl(setOf(key))).toBeGreaterThan(55_000);
    await store.kinds.permit.release(claim, { keepForMs: 120_000 });
    expect(await harness.admin.pttl(setOf(key))).toBeGreaterThan(115_000);
    expect(await harness.admin.pttl(key)).toBeLessThanOrEqual(4_000);
  });

  it('of a new counter leave none behind when the next command is refused', async () => {
    const key = newKey();
    await harness.admin.zadd(setOf(key), 5, randomBytes(16));
    await harness.admin.call(
      'ACL',
      'SETUSER',
      'few',
      'on',
      '>pass',
      '~*',
      '&*',
      '+@all',
      '-zremrangebyscore',
    );
    const limited = new RedisStore({ redis: harness.server.url.replace('://', '://few:pass@') });
    const failure = await limited.kinds.permit
      .acquire(permitFor(key, { of: 5 }))
      .catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StoreFailure);
    await limited.close();
    expect(await harness.admin.exists(key)).toBe(0);
  });

  it('wake waiters although their counter is deleted', async () => {
    const key = newKey();
    const released = await take(key, { of: 2 });
    await take(key, { of: 2 });
    const wakeUps = await WakeUpCounter.live(store, permitFor(key));
    await harness.admin.del(key);
    let seen = wakeUps.count;
    await store.kinds.permit.release(released);
    await wakeUps.next(seen);
    seen = wakeUps.count;
    expect(await store.forceUnlock(key)).toBe(true);
    await wakeUps.next(seen);
    wakeUps.watch.close();
  });

  it.each(['a string', '1.5', '1e3', '007', '-0', '+1', ' 1', '', '9999999999999999'])(
    'a value %j where the counter belongs is a failure of that key only, and is left alone',
    async (value) => {
      const key = newKey();
      await harness.admin.set(key, value);
      await harness.admin.zadd(setOf(key), 5, randomBytes(16));
      for (const request of [
        () => store.kinds.permit.acquire(permitFor(key)),
        () => store.inspect(key),
        () => store.forceUnlock(key),
      ]) {
        const failure = await request().catch((error: unknown) => error);
        expect(failure).toBeInstanceOf(StoreFailure);
        expect(failure).toMatchObject({ outcome: 'not-executed', keyOnly: true });
      }
      expect(await harness.admin.get(key)).toBe(value);
      expect(await harness.admin.zcard(setOf(key))).toBe(1);
    },
  );

  it('a foreign value where the set belongs is refused before anything is written', async () => {
    const key = newKey();
    await harness.admin.set(setOf(key), 'a string');
    const failure = await store.kinds.permit.acquire(permitFor(key)).catch((error: unknown) => error);
    expect(failure).toMatchObject({ outcome: 'not-executed', keyOnly: true });
    expect(await harness.admin.exists(key)).toBe(0);
    expect((await store.kinds.permit.release(permitFor(key))).wasHeld).toBe(false);
    expect(await store.kinds.permit.extendMany([permitFor(key)])).toEqual([{ status: 'lost' }]);
  });

  it('are renewed, kept and given back when the memory is full; a new one is refused and nothing taken', async () => {
    const key = newKey();
    const [one, two, foreign] = [await take(key, { of: 3 }), await take(key, { of: 3 }), newKey()];
    await harness.admin.set(foreign, '1');
    const ofJava = await take(foreign, { of: undefined });
    await harness.admin.config('SET', 'maxmemory', '1');
    const longer = [one, two, ofJava].map((claim) => ({ ...claim, leaseMs: 90_000 }));
    expect((await store.kinds.permit.extendMany(longer)).map(({ status }) => status)).toEqual([
      'held',
      'held',
      'held',
    ]);
    const failure = await store.kinds.permit
      .acquire(permitFor(key, { of: 3 }))
      .catch((error: unknown) => error);
    expect(failure).toMatchObject({ outcome: 'not-executed' });
    expect(await totalOf(key)).toBe(3);
    expect((await store.kinds.permit.release(one, { keepForMs: 200_000 })).wasHeld).toBe(true);
    expect((await store.kinds.permit.release(two)).wasHeld).toBe(true);
    expect(await totalOf(key)).toBe(3);
  });

  it('without the permission for their time to live no caller gets or keeps one, and none is lost', async () => {
    const key = newKey();
    const held = await take(key);
    await harness.admin.call('ACL', 'SETUSER', 'half', 'on', '>pass', '~*', '&*', '+@all', '-pexpireat');
    const limited = new RedisStore({ redis: harness.server.url.replace('://', '://half:pass@') });
    const failure = await limited.kinds.permit.acquire(permitFor(key)).catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(StoreFailure);
    const score = await harness.admin.zscore(setOf(key), memberOf(held));
    const [renewal] = await limited.kinds.permit.extendMany([{ ...held, leaseMs: 90_000 }]);
    expect(renewal).toMatchObject({ status: 'failed' });
    expect(await harness.admin.zscore(setOf(key), memberOf(held))).toBe(score);
    await limited.close();
    expect(await totalOf(key)).toBe(2);
    expect(await harness.admin.zcard(setOf(key))).toBe(1);
  });

  it('wake who waits on a message of Java', async () => {
    const key = newKey();
    const wakeUps = await WakeUpCounter.live(store, permitFor(key));
    const seen = wakeUps.count;
    await harness.admin.publish(`redisson_sc:{${key}}`, '1');
    await wakeUps.next(seen);
    wakeUps.watch.close();
  });

  it('every request works after SCRIPT FLUSH', async () => {
    const claim = permitFor(newKey());
    await harness.admin.script('FLUSH');
    expectGranted(await store.kinds.permit.acquire(claim));
    await harness.admin.script('FLUSH');
    expect(await store.kinds.permit.extendMany([claim])).toMatchObject([{ status: 'held' }]);
    await harness.admin.script('FLUSH');
    expect(await store.inspect(claim.finalKey)).toMatchObject({ kind: 'permit' });
    await harness.admin.script('FLUSH');
    expect((await store.kinds.permit.release(claim)).wasHeld).toBe(true);
    await take(claim.finalKey);
    await harness.admin.script('FLUSH');
    expect(await store.forceUnlock(claim.finalKey)).toBe(true);
  });

  describe('whatever happens', () => {
    const OWNERS = 5;
    type Step =
      | { op: 'acquire'; who: number; of: number | undefined; leaseMs: number }
      | { op: 'release'; who: number; keepForMs: number | undefined }
      | { op: 'extend'; who: number; leaseMs: number }
      | { op: 'end'; who: number }
      | { op: 'java'; give: boolean }
      | { op: 'force' };

    const who = fc.nat(OWNERS - 1);
    const leaseMs = fc.constantFrom(30_000, 60_000, 120_000);
    const step: fc.Arbitrary<Step> = fc.oneof(
      {
        weight: 6,
        arbitrary: fc.record({
          op: fc.constant('acquire' as const),
          who,
          of: fc.option(fc.integer({ min: 1, max: 4 }), { nil: undefined }),
          leaseMs,
        }),
      },
      {
        weight: 4,
        arbitrary: fc.record({
          op: fc.constant('release' as const),
          who,
          keepForMs: fc.option(leaseMs, { nil: undefined }),
        }),
      },
      { weight: 2, arbitrary: fc.record({ op: fc.constant('extend' as const), who, leaseMs }) },
      { weight: 2, arbitrary: fc.record({ op: fc.constant('end' as const), who }) },
      { weight: 2, arbitrary: fc.record({ op: fc.constant('java' as const), give: fc.boolean() }) },
      { weight: 1, arbitrary: fc.record({ op: fc.constant('force' as const) }) },
    );

    it('counter and members together are the limit, and the answers are those of a model', async () => {
      await fc.assert(
        fc.asyncProperty(fc.array(step, { minLength: 1, maxLength: 40 }), async (steps) => {
          const key = newKey('model');
          const claims = Array.from({ length: OWNERS }, () => permitFor(key, { owner: newPermitOwner() }));
          /** The owners of permits, and the owners of expired permits that are still in Redis. */
          const [living, ended] = [new Set<string>(), new Set<string>()];
          const java: Buffer[] = [];
          let limit: number | undefined;
          for (const one of steps) {
            const claim = 'who' in one ? claims[one.who]! : permitFor(key);
            const { owner } = claim;
            switch (one.op) {
              case 'acquire': {
                const requested = store.kinds.permit.acquire({ ...claim, of: one.of, leaseMs: one.leaseMs });
                if (limit === undefined && one.of === undefined) {
                  await expect(requested).rejects.toMatchObject({ keyOnly: true });
                  break;
                }
                const reply = await requested;
                expect('limitBefore' in reply ? reply.limitBefore : undefined).toBe(
                  one.of === undefined || one.of === limit ? undefined : limit,
                );
                limit = one.of ?? limit!;
                ended.clear();
                const fits = living.has(owner) || living.size + java.length < limit;
                expect(reply.status).toBe(fits ? 'granted' : 'taken');
                if (fits) living.add(owner);
                break;
              }
              case 'release': {
                const { keepForMs } = one;
                const reply = await store.kinds.permit.release(claim, { keepForMs });
                expect(reply.wasHeld).toBe(living.has(owner));
                if (keepForMs === undefined || !living.has(owner)) ended.delete(owner);
                if (keepForMs === undefined) living.delete(owner);
                break;
              }
              case 'extend': {
                const [reply] = await store.kinds.permit.extendMany([{ ...claim, leaseMs: one.leaseMs }]);
                expect(reply!.status).toBe(living.has(owner) ? 'held' : 'lost');
                break;
              }
              case 'end':
                // Its time is over: the server's clock is set to it, by way of the score.
                if (!living.delete(owner)) break;
                ended.add(owner);
                await harness.admin.zadd(setOf(key), 'XX', 1, memberOf(claim));
                break;
              case 'java':
                if (one.give && java.length > 0) {
                  await harness.admin.zrem(setOf(key), java.pop()!);
                  await harness.admin.incr(key);
                } else if (!one.give && Number(await harness.admin.get(key)) >= 1) {
                  java.push(await takeAsJava(key, NEVER));
                }
                break;
              case 'force':
                // With nothing to give back the key is free for something else, and its number is forgotten.
                if (living.size + ended.size + java.length === 0) limit = undefined;
                expect(await store.forceUnlock(key)).toBe(living.size + java.length > 0);
                living.clear();
                ended.clear();
                java.length = 0;
            }
            if (limit !== undefined) expect(await totalOf(key)).toBe(limit);
            expect(await harness.admin.zcard(setOf(key))).toBe(living.size + ended.size + java.length);
          }
          await harness.admin.del(key, setOf(key));
        }),
        { numRuns: 150 },
      );
    });
  });
});
