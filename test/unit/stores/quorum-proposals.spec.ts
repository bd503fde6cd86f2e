import { describe, expect, it } from 'vitest';
import type { WriteClaim } from '../../../lib/core/seam/claim.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MAX_PROPOSED_AHEAD } from '../../../lib/stores/proposed-token.js';
import { settled } from '../../support/core/virtual-runtime.js';
import { claimFor, expectGranted, newKey } from '../../support/stores/harness.js';
import { threeNodes, type NodeServer } from '../../support/stores/quorum-nodes.js';

const HOUR_MS = 3_600_000;
const LEASE_MS = 10_000;

/** A quorum whose clocks are `aheadMs` ahead, and known unless the test says otherwise. */
const quorumWith = async (aheadMs: readonly number[], { isKnown = true, minDelayMs = 1_000 } = {}) => {
  const quorum = threeNodes({ minDelayMs });
  const { servers, store, runtime } = quorum;
  for (const [i, ahead] of aheadMs.entries()) servers[i]!.aheadMs = ahead;
  const key = newKey();
  /** Acquires and releases the key. */
  const lock = async (tokens = 1): Promise<Grant> => {
    const mine = claimFor(key, { leaseMs: LEASE_MS, tokens });
    const reply = await store.kinds.exclusive!.acquire(mine);
    expectGranted(reply);
    await settled();
    await store.kinds.exclusive!.release(mine);
    await settled();
    return reply;
  };
  /** Tokens that each server gives, from now on. */
  const given: readonly number[][] = servers.map((server) => tokensOf(server));
  const clockOf = (server: NodeServer): number => (runtime.now() + server.aheadMs) * 1_000;
  const requests = (): readonly string[][] => {
    const names = servers.map((server) => server.requests.map((one) => one.split(' ')[0]!));
    for (const server of servers) server.requests.length = 0;
    return names;
  };
  if (isKnown) await lock(0);
  requests();
  return { ...quorum, key, lock, given, clockOf, requests };
};

const tokensOf = (server: NodeServer): number[] => {
  const given: number[] = [];
  const acquire = server.acquire.bind(server);
  server.acquire = async (owner, request) => {
    const reply = await acquire(owner, request);
    const { token } = reply as Partial<Grant>;
    if (token !== undefined) given.push(token);
    return reply;
  };
  return given;
};

const ACQUIRE_AND_RELEASE = ['acquire', 'release'];
const WITH_COMMIT = ['acquire', 'commit', 'release'];

describe('a proposed token', () => {
  it('is given by all nodes, so none gets a commit', async () => {
    const { lock, requests, given } = await quorumWith([0, 300, -300]);
    for (let i = 0; i < 5; i++) {
      const { token } = await lock();
      expect(given.map((tokens) => tokens.at(-1))).toEqual([token, token, token]);
    }
    const all = Array.from({ length: 5 }, () => ACQUIRE_AND_RELEASE).flat();
    expect(requests()).toEqual([all, all, all]);
  });

  it('is the token of a write lock, too', async () => {
    const { store, requests, key } = await quorumWith([0, 300, -300]);
    const mine: WriteClaim = { ...claimFor(key), kind: 'write' };
    expectGranted(await store.kinds.write!.acquire(mine));
    await store.kinds.write!.release(mine);
    expect(requests()).toEqual([ACQUIRE_AND_RELEASE, ACQUIRE_AND_RELEASE, ACQUIRE_AND_RELEASE]);
  });

  it('is a little ahead of the latest clock, for the way to the node', async () => {
    const { lock, servers, clockOf } = await quorumWith([0, 300, -300]);
    const { token } = await lock();
    expect(token! - clockOf(servers[1]!)).toBeGreaterThan(0);
    expect(token! - clockOf(servers[1]!)).toBeLessThanOrEqual(21_000);
  });

  it('is made while a node is down that was never asked for its clock', async () => {
    const quorum = await quorumWith([0, 300, -300], { isKnown: false });
    quorum.servers[2]!.isDown = true;
    await quorum.lock();
    quorum.requests();
    await quorum.lock();
    const [first, second] = quorum.requests();
    expect([first, second]).toEqual([ACQUIRE_AND_RELEASE, ACQUIRE_AND_RELEASE]);
  });

  it('is made, however long ago a node went down whose clock was known', async () => {
    const { servers, runtime, lock, requests } = await quorumWith([0, 300, 400]);
    servers[2]!.isDown = true;
    for (let i = 0; i < 10; i++) {
      await runtime.pass(10_000);
      await lock();
    }
    await runtime.pass(1_000);
    requests();
    await lock();
    expect(requests().slice(0, 2)).toEqual([ACQUIRE_AND_RELEASE, ACQUIRE_AND_RELEASE]);
  });

  it('is not made before the clocks are known: nodes with smaller tokens get a commit', async () => {
    const { lock, requests } = await quorumWith([0, 300, -300], { isKnown: false });
    await lock();
    const [slow, fast] = requests().map((names) => names.filter((name) => name !== 'times'));
    expect(slow).toEqual(WITH_COMMIT);
    expect(fast).toEqual(ACQUIRE_AND_RELEASE);
  });

  it('is not made with clocks that were read more than a minute ago', async () => {
    const { lock, requests, runtime } = await quorumWith([0, 300, -300]);
    await runtime.pass(60_000);
    await lock();
    expect(requests()[0]).toContain('commit');
    await lock();
    expect(requests()[0]).toEqual(ACQUIRE_AND_RELEASE);
  });

  it('is not made with a clock whose reading took more than 100 ms', async () => {
    const quorum = await quorumWith([0, 300, -300], { isKnown: false });
    const { servers, runtime, lock, requests } = quorum;
    for (const server of servers) server.hold();
    const first = lock();
    await runtime.pass(101);
    for (const server of servers) server.letThrough();
    await first;
    await runtime.pass(1_000);
    requests();
    await lock();
    expect(requests()[0]).toEqual(WITH_COMMIT);
  });

  it('does not come from a clock that is off', async () => {
    const { lock, servers, clockOf, requests } = await quorumWith([0, 2 * HOUR_MS, -300]);
    const { token } = await lock();
    expect(Math.abs(token! - clockOf(servers[0]!))).toBeLessThanOrEqual(21_000);
    expect(requests()).toEqual([ACQUIRE_AND_RELEASE, [], ACQUIRE_AND_RELEASE]);
  });

  it('is ignored by a node whose clock was set back by more than a second: that gets a commit', async () => {
    const { lock, servers, requests, given, clockOf } = await quorumWith([HOUR_MS, HOUR_MS, HOUR_MS]);
    servers[1]!.aheadMs = HOUR_MS - 5_000;
    const { token } = await lock();
    expect(given[1]).toEqual([clockOf(servers[1]!)]);
    expect(requests()).toEqual([ACQUIRE_AND_RELEASE, WITH_COMMIT, ACQUIRE_AND_RELEASE]);
    expect((await lock()).token).toBeGreaterThan(token!);
  });

  it('is not given by a node that knows a larger one: the other nodes get a commit', async () => {
    const { lock, servers, requests, given } = await quorumWith([0, 0, 0]);
    servers[1]!.aheadMs = 500;
    const { token } = await lock();
    expect(token).toBe(given[1]!.at(-1));
    expect(requests()).toEqual([WITH_COMMIT, ACQUIRE_AND_RELEASE, WITH_COMMIT]);
    // Now all know it.
    expect((await lock(3)).token).toBeGreaterThan(token!);
  });

  it('is no reason to look at the clocks again, also where a clock is nearly too far ahead', async () => {
    const { lock, requests } = await quorumWith([0, 995, 0]);
    for (let i = 0; i < 3; i++) await lock();
    expect(requests().flat()).not.toContain('times');
  });

  it('is smaller than the token of the next owner, whichever node restarts without its data', async () => {
    for (const restarted of [0, 1, 2]) {
      const { lock, servers, runtime } = await quorumWith([-400, 400, 0]);
      const { token } = await lock();
      const lost = servers[restarted]!;
      lost.restart();
      lost.aheadMs = -400;
      await runtime.pass(LEASE_MS);
      await lock(0).catch(() => undefined);
      await settled();
      for (const down of servers) {
        if (down === lost) continue;
        down.isDown = true;
        expect((await lock()).token).toBeGreaterThan(token!);
        down.isDown = false;
        await runtime.pass(100);
      }
    }
  });

  it('is not among the claims that want no token', async () => {
    const { store, servers } = await quorumWith([0, 0, 0]);
    const claims: unknown[] = [];
    for (const server of servers) {
      const { space } = server;
      const toTake = space.toTake.bind(space);
      space.toTake = (kind, finalKey) => {
        const holds = toTake(kind, finalKey);
        return Object.assign(Object.create(holds) as typeof holds, {
          acquire: (claim: never) => {
            claims.push((claim as { leastToken?: number }).leastToken);
            return holds.acquire(claim);
          },
        });
      };
    }
    await store.kinds.exclusive!.acquire(claimFor(newKey(), { tokens: 0 }));
    await store.kinds.exclusive!.acquire(claimFor(newKey(), { tokens: 1 }));
    expect(claims.map((least) => typeof least)).toEqual([
      ...Array.from({ length: 3 }, () => 'undefined'),
      ...Array.from({ length: 3 }, () => 'number'),
    ]);
  });
});

describe('a memory space with a proposal', () => {
  const NOW = 1_790_000_000_000_000;
  const tokenFor = (leastToken: number, before = 0): number => {
    const space = new MemorySpace({ now: () => 0, wallClockMicros: () => NOW });
    const holds = space.of('exclusive');
    const first = claimFor(newKey());
    holds.acquire(first);
    if (before > 0) holds.commit!(first, before);
    const reply = holds.acquire({ ...claimFor(newKey()), leastToken } as typeof first);
    expect(reply.status).toBe('granted');
    return (reply as Grant).token!;
  };

  it.each([
    ['smaller than its clock', NOW - 5, 0, NOW + 1],
    ['a second ahead', NOW + MAX_PROPOSED_AHEAD, 0, NOW + MAX_PROPOSED_AHEAD],
    ['more than a second ahead', NOW + MAX_PROPOSED_AHEAD + 1, 0, NOW + 1],
    ['smaller than a known token', NOW + 500, NOW + 700, NOW + 701],
  ])('that is %s gives the right token', (_, leastToken, before, token) => {
    expect(tokenFor(leastToken, before)).toBe(token);
  });
});
