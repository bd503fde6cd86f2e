import { Redis } from 'ioredis';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import type { ExclusiveClaim, WriteClaim } from '../../../../lib/core/seam/claim.js';
import type { Grant } from '../../../../lib/core/seam/grant.js';
import type { AtNode } from '../../../../lib/stores/redis/quorum/node-store.js';
import { RedisStore } from '../../../../lib/stores/redis/redis.store.js';
import { RedisServer } from '../../../support/servers/redis-server.js';
import { claimFor, expectGranted, newKey } from '../../../support/stores/harness.js';

const SECOND = 1_000_000;

type Kind = 'exclusive' | 'write';
type Requested = (ExclusiveClaim | WriteClaim) & AtNode;

describe('a token that a quorum proposes to a Redis server', () => {
  let server: RedisServer;
  let admin: Redis;
  let store: RedisStore;

  beforeAll(async () => {
    server = await RedisServer.start();
    admin = new Redis(server.clientOptions());
    store = new RedisStore({ redis: server.url });
  });
  beforeEach(async () => {
    await admin.flushall();
  });
  afterAll(async () => {
    await store.close();
    admin.disconnect();
    await server.stop();
  });

  const serverTime = async (): Promise<number> => {
    const [seconds, micros] = await admin.time();
    return Number(seconds) * SECOND + Number(micros);
  };
  const claimAt = (kind: Kind, key: string, least: number | undefined, tokens = 1): Requested => ({
    ...claimFor(key, { tokens }),
    kind,
    noQueue: true,
    leastToken: least,
  });
  const granted = async (claim: Requested): Promise<Grant> => {
    const reply = await (claim.kind === 'write'
      ? store.kinds.write.acquire(claim)
      : store.kinds.exclusive.acquire(claim));
    expectGranted(reply);
    return reply;
  };
  const stored = async (): Promise<number> => {
    const [name] = await admin.keys('nest_redis_lock:fence:*');
    return Number(await admin.get(name!));
  };

  describe.each<Kind>(['exclusive', 'write'])('for a lock of the kind %s', (kind) => {
    it('is given and stored', async () => {
      const least = (await serverTime()) + SECOND / 2;
      expect((await granted(claimAt(kind, newKey(), least))).token).toBe(least);
      expect(await stored()).toBe(least);
    });

    it('begins a block of tokens, whose last one is stored', async () => {
      const least = (await serverTime()) + SECOND / 2;
      expect(await granted(claimAt(kind, newKey(), least, 5))).toMatchObject({ token: least, tokens: 5 });
      expect(await stored()).toBe(least + 4);
    });

    it.each([
      ['is not ahead of its clock', -SECOND],
      ['is more than a second ahead of its clock', 2 * SECOND],
    ])('is ignored where it %s', async (_, ahead) => {
      const before = await serverTime();
      const { token } = await granted(claimAt(kind, newKey(), before + ahead));
      expect(token).toBeGreaterThanOrEqual(before);
      expect(token).toBeLessThanOrEqual(await serverTime());
    });

    it('gives way to a larger token that the server knows', async () => {
      const key = newKey();
      const first = claimAt(kind, key, (await serverTime()) + SECOND);
      const { token } = await granted(first);
      const kinds = store.kinds[kind];
      await kinds.release(first as never);
      expect((await granted(claimAt(kind, key, token! - SECOND / 2))).token).toBe(token! + 1);
    });

    it('is not proposed to the counter of Redisson', async () => {
      const least = (await serverTime()) + SECOND / 2;
      const claim = { ...claimAt(kind, newKey(), least), perKeyCounter: true };
      expect((await granted(claim)).token).toBe(1);
    });
  });

  it('leaves claims of one tick in one request', async () => {
    const all = (leastOf: (i: number) => number | undefined): Promise<readonly Grant[]> =>
      Promise.all(
        Array.from({ length: 10 }, (_, i) =>
          granted(claimAt('exclusive', `{one slot}:${newKey()}`, leastOf(i))),
        ),
      );
    const callsOf = async <T>(work: () => Promise<T>): Promise<[calls: number, result: T]> => {
      await admin.config('RESETSTAT');
      const result = await work();
      return [Number(/evalsha:calls=(\d+)/.exec(await admin.info('commandstats'))![1]), result];
    };
    await all(() => undefined);
    const [callsWithout] = await callsOf(() => all(() => undefined));
    expect(callsWithout).toBeLessThan(4);
    await admin.flushall();
    const least = (await serverTime()) + SECOND / 2;
    const [calls, grants] = await callsOf(() => all((i) => (i < 5 ? least : least + 1_000)));
    expect(calls).toBe(callsWithout);
    const tokens = grants.map(({ token }) => token! - least);
    expect(tokens).toEqual([0, 1, 2, 3, 4, 1_000, 1_001, 1_002, 1_003, 1_004]);
  });
});
