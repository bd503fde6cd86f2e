import { describe, expect, it } from 'vitest';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import type { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { clockOff, type ClockSeen } from '../../../lib/stores/redis/quorum/clocks.js';
import type { QuorumStoreOptions } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { settled } from '../../support/core/virtual-runtime.js';
import { claimFor, expectGranted, expectTaken, newKey } from '../../support/stores/harness.js';
import { type NodeServer, threeNodes } from '../../support/stores/quorum-nodes.js';
import { storeHost } from '../../support/stores/store-host.js';

const DELAY_MS = 30_000;
const LONG_MS = 600_000;

const three = (options: Partial<QuorumStoreOptions> = {}) => {
  const { runtime, servers, store, warnings, risks } = threeNodes(options);
  const take = (leaseMs = 10_000) =>
    store.kinds.exclusive!.acquire(claimFor(newKey(), { leaseMs, tokens: 0 }));
  return { runtime, servers, store, warnings, risks, take };
};

/** Which nodes gave it. */
const givenBy = async (taking: ReturnType<ReturnType<typeof three>['take']>): Promise<readonly string[]> => {
  const reply = await taking;
  expectGranted(reply);
  return [...reply.grantedBy!].sort();
};

const failureOf = (request: Promise<unknown>): Promise<StoreFailure> =>
  request.then(
    () => expect.unreachable(),
    (failure: unknown) => failure as StoreFailure,
  );

describe('a node whose server has restarted', () => {
  it('counts as failed until the delay is over, and one warning says until when', async () => {
    const { runtime, servers, warnings, take } = three();
    expect(await givenBy(take())).toContain('b');
    servers[1]!.restart();
    for (const waitedMs of [0, 10_000, 19_990]) {
      await runtime.pass(waitedMs);
      expect(await givenBy(take())).toEqual(['a', 'c']);
    }
    expect(warnings).toEqual([
      expect.stringMatching(
        /^The node b of the quorum counts as failed: its server was started 0\.0 s ago, and counts again in 30 s \(delayAfterRestartMs\)\.$/,
      ),
    ]);
    servers[0]!.isDown = true;
    const failure = await failureOf(take());
    expect(failure.message).toMatch(/b: its server was started 30 s ago, and counts again in 0\.0 s/);
    await runtime.pass(10);
    expect(await givenBy(take())).toEqual(['b', 'c']);
  });

  it('is known from the first request on, also by a process that asks first after it', async () => {
    const { servers, take } = three();
    servers[1]!.restart();
    servers[2]!.isDown = true;
    const failure = await failureOf(take());
    expect(failure).toMatchObject({ outcome: 'unknown' });
    expect(failure.message).toMatch(/b: its server was started/);
  });

  it('stays out for as long as a hold that was kept past its section', async () => {
    const { runtime, servers, store, take } = three();
    const mine = claimFor(newKey(), { leaseMs: 10_000, tokens: 0 });
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    await store.kinds.exclusive!.release(mine, { keepForMs: 60_000 });
    servers[1]!.restart();
    // The first request after it finds out.
    await take();
    await settled();
    await runtime.pass(59_990);
    expect(await givenBy(take())).toEqual(['a', 'c']);
    await runtime.pass(10);
    expect(await givenBy(take())).toContain('b');
  });

  it('admits no other caller beside a holder whose majority it was part of', async () => {
    const { runtime, servers, store } = three();
    const mine = claimFor(newKey(), { leaseMs: DELAY_MS, tokens: 0 });
    servers[2]!.isDown = true;
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[2]!.isDown = false;
    servers[1]!.restart();
    const other = () => store.kinds.exclusive!.acquire({ ...mine, owner: claimFor('').owner });
    // One of two nodes that count is free. The hold of the third node is unknown.
    expectTaken(await other());
    await runtime.pass(DELAY_MS - 1);
    expectTaken(await other());
    await runtime.pass(1);
    expectGranted(await other());
  });

  it('stays out for as long as the longest lease that was asked for', async () => {
    const { runtime, servers, take } = three({ minDelayMs: 5_000 });
    await take(60_000);
    servers[1]!.restart();
    await runtime.pass(59_000);
    expect(await givenBy(take())).toEqual(['a', 'c']);
    await runtime.pass(1_000);
    servers[2]!.isDown = true;
    expect(await givenBy(take())).toEqual(['a', 'b']);
  });

  it('stays out for as long as the longest watchdog of its services: they may hold what they asked for before', async () => {
    const { runtime, servers, store, take } = three();
    await store.open(storeHost({ runtime, watchdogMs: 60_000 }));
    await take(1_000);
    servers[1]!.restart();
    servers[2]!.isDown = true;
    await runtime.pass(59_000);
    expect((await failureOf(take(1_000))).message).toContain(
      'was started 59 s ago, and counts again in 1.0 s',
    );
    await runtime.pass(1_000);
    expect(await givenBy(take(1_000))).toEqual(['a', 'b']);
  });

  it.each<readonly [string, (store: LockStore, claim: ExclusiveClaim) => Promise<unknown>]>([
    ['an acquire', (store, claim) => store.kinds.exclusive!.acquire({ ...claim, leaseMs: LONG_MS })],
    [
      'an extension',
      async (store, claim) => {
        expectGranted(await store.kinds.exclusive!.acquire(claim));
        await store.kinds.exclusive!.extendMany([{ ...claim, leaseMs: LONG_MS }]);
      },
    ],
    [
      'a release that keeps the key',
      async (store, claim) => {
        expectGranted(await store.kinds.exclusive!.acquire(claim));
        await store.kinds.exclusive!.release(claim, { keepForMs: LONG_MS });
      },
    ],
    [
      'a downgrade',
      async (store, { finalKey, owner }) => {
        const claim = { ...claimFor(finalKey, { owner, tokens: 0 }), kind: 'write' as const };
        expectGranted(await store.kinds.write!.acquire(claim));
        await store.kinds.write!.downgrade!({ ...claim, leaseMs: LONG_MS });
      },
    ],
  ])('cannot have forgotten a lease that %s asks for after its start', async (_, requestFor) => {
    const { runtime, servers, store, take } = three({ minDelayMs: 5_000 });
    await take(1_000);
    servers[1]!.restart();
    await runtime.pass(4_000);
    await requestFor(store, claimFor(newKey(), { leaseMs: 5_000, tokens: 0 }));
    await runtime.pass(1_000);
    servers[2]!.isDown = true;
    expect(await givenBy(take())).toEqual(['a', 'b']);
  });

  it('cannot have forgotten a lease that had ended before its start', async () => {
    const { runtime, servers, take } = three({ minDelayMs: 5_000 });
    await take(LONG_MS);
    await runtime.pass(LONG_MS);
    servers[1]!.restart();
    await runtime.pass(5_000);
    servers[2]!.isDown = true;
    expect(await givenBy(take(1_000))).toEqual(['a', 'b']);
  });

  it('stays out for as long as it is told, and not at all with 0', async () => {
    for (const [delayAfterRestartMs, waits] of [
      [2_000, true],
      [0, false],
    ] as const) {
      const { runtime, servers, take } = three({ delayAfterRestartMs });
      await take();
      servers[1]!.restart({ keepsData: true });
      servers[2]!.isDown = true;
      if (waits) await failureOf(take());
      await runtime.pass(delayAfterRestartMs);
      expect(await givenBy(take())).toEqual(['a', 'b']);
    }
  });

  it('does not count for what was asked before it restarted and answered after', async () => {
    const { servers, store, take } = three({ delayAfterRestartMs: 1 });
    await take();
    servers[1]!.hold();
    servers[2]!.isDown = true;
    const mine = claimFor(newKey(), { tokens: 0 });
    const requesting = store.kinds.exclusive!.acquire(mine);
    servers[1]!.reconnect();
    servers[1]!.letThrough();
    const failure = await failureOf(requesting);
    expect(failure.message).toContain('b: there was another connection before the answer came');
    expect(failure.outcome).toBe('unknown');
  });

  it('stays out also when it says that it is up for long, because its clock was set since', async () => {
    const { runtime, servers, take } = three();
    expect(await givenBy(take())).toContain('b');
    await runtime.pass(100);
    servers[1]!.restart();
    servers[1]!.upForTooMuchMs = 3_600_000;
    expect(await givenBy(take())).toEqual(['a', 'c']);
    // Looked at again meanwhile, it says the same.
    await runtime.pass(DELAY_MS - 10);
    expect(await givenBy(take())).toEqual(['a', 'c']);
    servers[0]!.isDown = true;
    await runtime.pass(20);
    expect(await givenBy(take())).toEqual(['b', 'c']);
  });

  it('counts when it is up for long enough here, also when it says otherwise, because its clock was set since', async () => {
    const { runtime, servers, take } = three();
    servers[1]!.restart();
    servers[1]!.upForTooMuchMs = -3_600_000;
    expect(await givenBy(take())).toEqual(['a', 'c']);
    servers[0]!.isDown = true;
    await runtime.pass(DELAY_MS + 10);
    expect(await givenBy(take())).toEqual(['b', 'c']);
  });

  it('and that rests is no reason to leave another one alone that has failed once', async () => {
    const { servers, store } = three();
    await store.kinds.exclusive!.acquire(claimFor(newKey(), { leaseMs: 10_000, tokens: 0 }));
    servers[1]!.restart();
    servers[2]!.isDown = true;
    const request = () => store.kinds.exclusive!.acquire(claimFor(newKey(), { leaseMs: 10_000, tokens: 0 }));
    await failureOf(request());
    servers[2]!.isDown = false;
    const replies = await Promise.all([request(), request(), request()]);
    expect(replies.map(({ status }) => status)).toEqual(['granted', 'granted', 'granted']);
  });

  it('is told to who holds a key: the hold is looked for at once', async () => {
    const { servers, risks } = three();
    servers[1]!.restart();
    expect(risks).toEqual([undefined]);
  });

  it('is reported to each service that shares the quorum, once', async () => {
    const { servers, risks, store } = three();
    const others: (string | undefined)[] = [];
    await store.open(storeHost({ atRisk: (key) => others.push(key) }));
    servers[1]!.restart();
    expect([risks, others]).toEqual([[undefined], [undefined]]);
  });

  it('of which that cannot be asked counts as failed, and gives back what it gave', async () => {
    const { servers, take, runtime } = three();
    for (const server of servers) server.losesTimes = true;
    const failure = await failureOf(take());
    expect(failure).toMatchObject({ outcome: 'unknown' });
    expect(failure.message).toContain('it is not known since when its server is up: no times');
    servers[0]!.losesTimes = false;
    servers[1]!.losesTimes = false;
    await runtime.pass(50);
    expect(await givenBy(take())).toEqual(['a', 'b']);
  });

  it('gives back what it has, although it does not count', async () => {
    const { servers, store } = three();
    const mine = claimFor(newKey(), { tokens: 0 });
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[1]!.restart({ keepsData: true });
    await store.kinds.exclusive!.release(mine);
    await settled();
    expect(servers[1]!.space.size.holds).toBe(0);
  });
});

describe('a node whose clock is off', () => {
  it('counts as failed, and one warning says by how much, until it is right again', async () => {
    const { runtime, servers, warnings, take } = three();
    servers[0]!.aheadMs = 2 * 3_600_000;
    await take();
    await runtime.pass(10_000);
    expect(await givenBy(take())).toEqual(['b', 'c']);
    expect(await givenBy(take())).toEqual(['b', 'c']);
    expect(warnings).toEqual([
      expect.stringMatching(/^The node a of the quorum counts as failed: its clock is 7200 s ahead of those/),
    ]);
    servers[0]!.aheadMs = 0;
    await runtime.pass(10_000);
    await take().catch(() => undefined);
    await settled();
    servers[2]!.isDown = true;
    expect(await givenBy(take())).toEqual(['a', 'b']);
  });

  it('is found out beside requests every 10 s, and before they count after a minute', async () => {
    const { runtime, servers, take } = three();
    const looks = (): number => servers[0]!.requests.filter((one) => one === 'times').length;
    await take();
    expect(looks()).toBe(1);
    await runtime.pass(9_000);
    await take();
    expect(looks()).toBe(1);
    await runtime.pass(1_000);
    await take();
    expect(looks()).toBe(2);
    await runtime.pass(60_000);
    servers[1]!.isDown = true;
    servers[0]!.hold();
    const requesting = take();
    const early = await Promise.race([requesting, settled()]);
    expect(early).toBeUndefined();
    servers[0]!.letThrough();
    expectGranted(await requesting);
    expect(looks()).toBe(3);
  });

  const seen = (aheadMs: number, uncertainMs = 0): ClockSeen => ({ aheadMs, uncertainMs });

  it.each([
    ['apart from the middle', [seen(0), seen(10), seen(1_100)], 2, 1_090],
    ['behind the middle', [seen(-2_000), seen(10), seen(0)], 0, -2_000],
    ['a second apart at most', [seen(0), seen(10), seen(1_000)], 2, undefined],
    ['not certainly so', [seen(0), seen(10), seen(1_100, 200)], 2, undefined],
    ['of two, of which either may be wrong', [seen(0), seen(9_000)], 0, undefined],
    ['of four, in the middle of whom are two', [seen(0), seen(100), seen(300), seen(5_000)], 3, 4_800],
  ])('is one that is %s', (_, all, which, off) => {
    expect(clockOff(all[which]!, all)).toBe(off);
  });
});

const HOUR_MS = 3_600_000;

describe('a clock that has jumped ahead since it was looked at', () => {
  /** All clocks are known, and right. */
  const known = async (options: Partial<QuorumStoreOptions> = {}) => {
    const quorum = three(options);
    const { store, runtime } = quorum;
    const kind = store.kinds.exclusive!;
    const key = newKey();
    const claim = (tokens = 1) => claimFor(key, { leaseMs: 10_000, tokens });
    /** A grant of the key, which is free again after that. */
    const grant = async (tokens = 1) => {
      const mine = claim(tokens);
      const reply = await kind.acquire(mine);
      expectGranted(reply);
      await kind.release(mine);
      await settled();
      return reply;
    };
    const token = async (): Promise<number> => (await grant()).token!;
    const looksAt = (server: NodeServer): number => server.requests.filter((one) => one === 'times').length;
    /** Whether a token is of a clock that is right. */
    const isRight = (one: number): boolean => Math.abs(one / 1_000 - runtime.now()) <= 1_000;
    await grant(0);
    return { ...quorum, kind, claim, grant, token, looksAt, isRight };
  };
  const holds = (servers: readonly NodeServer[]): readonly number[] =>
    servers.map(({ space }) => space.size.holds);

  it('gives no caller a token: the next ones are larger, also when another node forgets right then', async () => {
    const { servers, runtime, warnings, token, isRight } = await known({ minDelayMs: 1_000 });
    servers[0]!.aheadMs = 2 * HOUR_MS;
    const first = await token();
    expect(isRight(first)).toBe(true);
    expect(warnings).toEqual([
      expect.stringMatching(/^The node a of .*: its clock is 7200 s ahead of those/),
    ]);
    servers[1]!.restart();
    await failureOf(token());
    await runtime.pass(10_000);
    servers[0]!.isDown = true;
    expect(await token()).toBeGreaterThan(first);
  });

  it('makes a failed vote of the grant, which is given back', async () => {
    const { servers, kind, claim } = await known();
    servers[0]!.aheadMs = 2 * HOUR_MS;
    await servers[1]!.connect().kinds.exclusive!.acquire(claim());
    expectTaken(await kind.acquire(claim()));
    await settled();
    expect(holds(servers)).toEqual([0, 1, 0]);
  });

  it('admits no other caller beside a holder whose majority it was part of, and whose hold has ended there early', async () => {
    const { servers, kind, claim } = await known();
    servers[2]!.isDown = true;
    const mine = claim();
    expectGranted(await kind.acquire(mine));
    servers[2]!.isDown = false;
    servers[0]!.aheadMs = 2 * HOUR_MS;
    servers[0]!.space.forceUnlock(mine.finalKey);
    expectTaken(await kind.acquire(claim()));
  });

  it('is named where too many nodes fail with it, and undone', async () => {
    const { servers, kind, claim } = await known();
    servers[0]!.aheadMs = 2 * HOUR_MS;
    servers[2]!.isDown = true;
    const mine = claim();
    const failure = await failureOf(kind.acquire(mine));
    expect(failure).toMatchObject({ outcome: 'unknown' });
    expect(failure.message).toMatch(/a: its clock is 7200 s ahead of those of the other nodes/);
    servers[2]!.isDown = false;
    await kind.release(mine, { uncertain: failure });
    expect(holds(servers)).toEqual([0, 0, 0]);
  });

  it('is seen also while another server has not been asked over its new connection', async () => {
    const { servers, kind, claim, isRight } = await known();
    servers[0]!.aheadMs = 2 * HOUR_MS;
    servers[2]!.reconnect();
    servers[2]!.hold();
    const requesting = kind.acquire(claim());
    await settled();
    servers[2]!.letThrough();
    const reply = await requesting;
    expectGranted(reply);
    expect(isRight(reply.token!)).toBe(true);
  });

  it('is not one where a larger token was known already: that counts, and the next ones are larger', async () => {
    const { servers, store, warnings, token, looksAt, isRight, claim } = await known();
    servers[0]!.aheadMs = 2 * HOUR_MS;
    const before = claim();
    const direct = servers[0]!.connect().kinds.exclusive!;
    const given = await direct.acquire(before);
    expectGranted(given);
    await direct.release(before);
    servers[0]!.aheadMs = 0;
    servers[2]!.isDown = true;
    const first = await token();
    expect(first).toBeGreaterThan(given.token!);
    expect(isRight(first)).toBe(false);
    // Of the first node that gave such a token. The other one is looked at with it, as is the one that is down.
    expect(servers.map(looksAt)).toEqual([2, 2, 2]);
    servers[2]!.isDown = false;
    servers[0]!.isDown = true;
    expect(await token()).toBeGreaterThan(first);
    expect(warnings).toEqual([]);
    await store.close();
  });

  it('is not all clocks, after the process stood still with its own', async () => {
    const { servers, warnings, kind, claim } = await known();
    for (const server of servers) server.aheadMs = 2 * HOUR_MS;
    servers[2]!.isDown = true;
    // The first one that answers is ahead of what is known of the others.
    servers[1]!.hold();
    const requesting = kind.acquire(claim());
    await settled();
    servers[1]!.letThrough();
    const reply = await requesting;
    expectGranted(reply);
    expect([...reply.grantedBy!].sort()).toEqual(['a', 'b']);
    expect(warnings).toEqual([]);
  });

  it('counts as failed where the clock cannot be looked at', async () => {
    const { servers, kind, claim } = await known();
    servers[0]!.aheadMs = 2 * HOUR_MS;
    servers[0]!.losesTimes = true;
    servers[2]!.isDown = true;
    const failure = await failureOf(kind.acquire(claim()));
    expect(failure.message).toContain('a: it is not known whether its clock is right: no times');
  });

  it('does not count over a connection that is not there any more when it turns out right', async () => {
    const { servers, kind, claim } = await known();
    servers[0]!.aheadMs = 2 * HOUR_MS;
    servers[2]!.isDown = true;
    const requesting = failureOf(kind.acquire(claim()));
    servers[0]!.hold();
    await settled();
    servers[0]!.aheadMs = 0;
    servers[0]!.reconnect();
    servers[0]!.letThrough();
    expect((await requesting).message).toContain('a: there was another connection before the answer came');
  });

  it('is looked for by no caller who wants no token', async () => {
    const { servers, grant, looksAt } = await known();
    servers[0]!.aheadMs = 2 * HOUR_MS;
    expect((await grant(0)).grantedBy).toContain('a');
    expect(servers.map(looksAt)).toEqual([1, 1, 1]);
  });

  it('is not looked for while tokens are of clocks that are within a second', async () => {
    const { servers, grant, looksAt } = await known();
    servers[0]!.aheadMs = 900;
    expect((await grant()).grantedBy).toContain('a');
    expect((await grant()).grantedBy).toContain('a');
    expect(servers.map(looksAt)).toEqual([1, 1, 1]);
  });
});
