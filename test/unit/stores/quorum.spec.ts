import { describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { defaultCall, type LockCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import type { Claim, ReadClaim, WriteClaim } from '../../../lib/core/seam/claim.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { QuorumStore } from '../../../lib/stores/redis/quorum/quorum.store.js';
import { Log, watched } from '../../support/core/core-under-test.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';
import { claimFor, expectGranted, expectTaken, WakeUpCounter, newKey } from '../../support/stores/harness.js';
import { NodeServer } from '../../support/stores/quorum-nodes.js';
import { storeHost } from '../../support/stores/store-host.js';

const LEASE_MS = 10_000;

/** Servers, and processes that use them as a quorum. */
const quorumOf = (count: number) => {
  const runtime = new VirtualRuntime();
  const servers = Array.from({ length: count }, () => new NodeServer(runtime));
  const names = ['a', 'b', 'c', 'd', 'e'].slice(0, count);
  const open = (): QuorumStore => {
    const store = new QuorumStore({ nodes: servers.map((server) => server.connect()), names, runtime });
    void store.open(storeHost({ runtime }));
    return store;
  };
  return { runtime, servers, open, store: open() };
};

const claim = (overrides: Partial<Claim> = {}) =>
  claimFor(newKey(), { leaseMs: LEASE_MS, tokens: 0, ...(overrides as object) });

const readFor = (key: string): ReadClaim => ({ ...claim({ finalKey: key }), kind: 'read' });
const writeFor = (key: string): WriteClaim => ({ ...claim({ finalKey: key, tokens: 1 }), kind: 'write' });

const failureOf = async (request: Promise<unknown>): Promise<StoreFailure> => {
  const failure = await request.catch((error: unknown) => error);
  expect(failure).toBeInstanceOf(StoreFailure);
  return failure as StoreFailure;
};

const holds = (servers: readonly NodeServer[]): number[] => servers.map(({ space }) => space.size.holds);

describe('a key is held', () => {
  it.each([
    [2, 2],
    [3, 2],
    [4, 3],
    [5, 3],
  ])('of %i nodes by %i at least, also when the others are down', async (count, majority) => {
    const { servers, store } = quorumOf(count);
    for (const server of servers.slice(majority)) server.isDown = true;
    const reply = await store.kinds.exclusive!.acquire(claim());
    expectGranted(reply);
    expect(reply.grantedBy).toEqual(['a', 'b', 'c', 'd', 'e'].slice(0, majority));
    servers[0]!.isDown = true;
    const failure = await failureOf(store.kinds.exclusive!.acquire(claim()));
    const down = count - majority + 1;
    expect(failure.message).toMatch(new RegExp(`^${down} of ${count} nodes failed, and ${majority} have to`));
    expect(failure.message).toContain('a: connection refused');
    expect((failure.cause as AggregateError).errors).toHaveLength(down);
  });

  it('for less than its lease, since clocks may run at different speeds', async () => {
    const { store } = quorumOf(3);
    const reply = await store.kinds.exclusive!.acquire(claim());
    expect(reply).toMatchObject({ status: 'granted', validForMs: 9_898 });
    const extended = await store.kinds.exclusive!.extendMany([claim()]);
    expect(extended).toEqual([{ status: 'lost' }]);
  });

  it('as soon as a majority says so: a hanging node delays no caller', async () => {
    const { servers, store } = quorumOf(3);
    servers[2]!.hold();
    const mine = claim({ tokens: 1 });
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    expectTaken(await store.kinds.exclusive!.acquire({ ...mine, owner: claim().owner }));
    expect(await store.kinds.exclusive!.extendMany([mine])).toMatchObject([{ status: 'held' }]);
    expect((await store.kinds.exclusive!.release(mine)).wasHeld).toBe(true);
    servers[2]!.letThrough();
    await settled();
    expect(holds(servers)).toEqual([0, 0, 0]);
  });

  it('as soon as all other nodes report it free: a retry does not wait for a node that failed before', async () => {
    const { servers, store } = quorumOf(3);
    servers[2]!.isDown = true;
    await store.kinds.exclusive!.acquire(claim());
    servers[2]!.isDown = false;
    servers[2]!.hold();
    const mine = claim();
    await servers[0]!.connect().kinds.exclusive!.acquire(claim({ finalKey: mine.finalKey }));
    expectTaken(await store.kinds.exclusive!.acquire(mine));
    servers[2]!.letThrough();
    await settled();
    expect(holds(servers)).toEqual([2, 1, 0]);
  });

  it('is "taken" shortly after a majority has replied and does not agree: the first hanging node delays no caller', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    await servers[0]!.connect().kinds.exclusive!.acquire(claim({ finalKey: mine.finalKey }));
    servers[2]!.hold();
    const requesting = store.kinds.exclusive!.acquire(mine);
    await runtime.pass(100);
    expectTaken(await requesting);
    servers[2]!.letThrough();
    await settled();
    await settled();
    expect(holds(servers)).toEqual([1, 0, 0]);
  });

  it('is "taken" where another owner has a majority, and a failure only where too many nodes fail', async () => {
    const { servers, open, store } = quorumOf(3);
    const [mine, other] = [claim(), claim()];
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[2]!.isDown = true;
    expectTaken(await open().kinds.exclusive!.acquire({ ...other, finalKey: mine.finalKey }));
    servers[1]!.isDown = true;
    const failure = await failureOf(open().kinds.exclusive!.acquire({ ...other, finalKey: mine.finalKey }));
    expect(failure.outcome).toBe('not-executed');
  });

  it('says when a majority may be free', async () => {
    const { servers, open, store } = quorumOf(3);
    const key = newKey();
    // Three owners of single nodes, with leases of their own.
    for (const [i, leaseMs] of [3_000, 1_000, 2_000].entries()) {
      await servers[i]!.connect().kinds.exclusive!.acquire(claim({ finalKey: key, leaseMs }));
    }
    const reply = await store.kinds.exclusive!.acquire(claim({ finalKey: key }));
    expect(reply).toMatchObject({ status: 'taken', retryInMs: 2_000 });
    expectTaken(await open().kinds.exclusive!.acquire(claim({ finalKey: key })));
  });

  it('does not lengthen the pause before a retry where a bare majority is taken: that is no split vote', async () => {
    const { servers, store, runtime } = quorumOf(3);
    runtime.random = () => 1;
    const mine = claim();
    for (const server of servers.slice(0, 2))
      await server.connect().kinds.exclusive!.acquire(claim({ finalKey: mine.finalKey, leaseMs: 10 }));
    const pauses: unknown[] = [];
    for (let i = 0; i < 3; i += 1) pauses.push(await store.kinds.exclusive!.acquire(mine));
    expect(pauses).toMatchObject(Array(3).fill({ status: 'taken', retryInMs: 50 }));
  });
});

describe('a grant without a holder is released', () => {
  it('where callers share the nodes among them, and they try again at different times', async () => {
    const { servers, open, store, runtime } = quorumOf(3);
    let last = 0;
    runtime.random = () => (last += 0.25);
    const key = newKey();
    await servers[0]!.connect().kinds.exclusive!.acquire(claim({ finalKey: key }));
    servers[1]!.isDown = true;
    const reply = await store.kinds.exclusive!.acquire(claim({ finalKey: key }));
    expectTaken(reply);
    expect(reply.retryInMs).toBeLessThanOrEqual(50);
    const other = await open().kinds.exclusive!.acquire(claim({ finalKey: key }));
    expectTaken(other);
    expect(other.retryInMs).not.toBe(reply.retryInMs);
    await settled();
    expect(holds(servers)).toEqual([1, 0, 0]);
  });

  it('also when a node grants it after that, and a late release ends no later try of its owner', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    const others = [0, 1].map(async (i) => {
      const other = claim({ finalKey: mine.finalKey, leaseMs: 1_000 });
      await servers[i]!.connect().kinds.exclusive!.acquire(other);
    });
    await Promise.all(others);
    servers[2]!.hold();
    expectTaken(await store.kinds.exclusive!.acquire(mine));
    await runtime.pass(1_000);
    const again = store.kinds.exclusive!.acquire(mine);
    servers[2]!.letThrough();
    expectGranted(await again);
    await settled();
    // The node that answered late had its first try, and gave nothing to the second.
    expect(holds(servers)).toEqual([1, 1, 0]);
    expect(await store.kinds.exclusive!.extendMany([mine])).toMatchObject([{ status: 'held' }]);
    const names = servers[2]!.requests.filter((one) => one.startsWith('acquire')).map((one) => one.slice(8));
    expect(new Set(names).size).toBe(2);
    expect((await store.kinds.exclusive!.release(mine)).wasHeld).toBe(true);
    await settled();
    expect(holds(servers)).toEqual([0, 0, 0]);
    expect(runtime.due).toEqual([]);
    // Its other name is forgotten with it.
    await store.kinds.exclusive!.release(mine);
    expect(servers[2]!.requests.at(-1)).toBe(`release ${mine.owner}`);
  });

  it('also on a node whose answer was lost', async () => {
    const { servers, store } = quorumOf(3);
    const mine = claim();
    for (const server of servers.slice(0, 2)) {
      await server.connect().kinds.exclusive!.acquire(claim({ finalKey: mine.finalKey }));
    }
    servers[2]!.losesReplies = true;
    expectTaken(await store.kinds.exclusive!.acquire(mine));
    servers[2]!.losesReplies = false;
    await settled();
    await settled();
    expect(holds(servers)).toEqual([1, 1, 0]);
  });

  it('by the core, when too many answers are lost: nothing is left, and that is final', async () => {
    const { servers, store, runtime } = quorumOf(3);
    for (const server of servers.slice(1)) server.losesReplies = true;
    const mine = claim();
    const failure = await failureOf(store.kinds.exclusive!.acquire(mine));
    expect(failure.outcome).toBe('unknown');
    expect(holds(servers)).toEqual([1, 1, 1]);
    const undo = (): Promise<unknown> => store.kinds.exclusive!.release(mine, { uncertain: failure });
    expect((await failureOf(undo())).outcome).toBe('unknown');
    for (const server of servers) server.losesReplies = false;
    await undo();
    expect(holds(servers)).toEqual([0, 0, 0]);
    expect(runtime.due).toEqual([]);
  });

  it('again and again to a node that does not answer the release, until the lease would have ended', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    await store.kinds.exclusive!.acquire(mine);
    servers[1]!.isDown = true;
    expect((await store.kinds.exclusive!.release(mine)).wasHeld).toBe(true);
    await runtime.pass(500);
    expect(holds(servers)).toEqual([0, 1, 0]);
    servers[1]!.isDown = false;
    await runtime.pass(1_000);
    expect(holds(servers)).toEqual([0, 0, 0]);
    expect(runtime.due).toEqual([]);
  });

  it('not any more once the store is closed, which leaves no timer', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    await store.kinds.exclusive!.acquire(mine);
    servers[1]!.isDown = true;
    await store.kinds.exclusive!.release(mine);
    await settled();
    await store.close();
    expect(runtime.due).toEqual([]);
    expect((await failureOf(store.ping())).outcome).toBe('not-executed');
  });
});

describe('a store that is closed', () => {
  it('waits for one command time-out at most for what a node does not answer', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    await store.kinds.exclusive!.acquire(mine);
    servers[2]!.isDown = true;
    await store.kinds.exclusive!.release(mine);
    servers[2]!.isDown = false;
    servers[2]!.hold();
    // The release is repeated.
    await runtime.pass(1_000);
    const closed = watched(store.close());
    await runtime.pass(store.commandTimeoutMs - 1);
    expect(closed.state).toBe('pending');
    await runtime.pass(1);
    expect(closed.state).toBe('fulfilled');
    expect(runtime.due).toEqual([]);
  });
});

describe('a node that fails', () => {
  const requestCount = (server: NodeServer, what: string): number =>
    server.requests.filter((request) => request.startsWith(what)).length;

  it('is asked by one request at a time, and by all again once it has answered', async () => {
    const { servers, store } = quorumOf(3);
    const away = servers[2]!;
    away.isDown = true;
    expectGranted(await store.kinds.exclusive!.acquire(claim()));
    away.isDown = false;
    away.hold();
    const before = requestCount(away, 'acquire');
    for (let i = 0; i < 10; i++) expectGranted(await store.kinds.exclusive!.acquire(claim()));
    expect(requestCount(away, 'acquire') - before).toBe(1);
    away.letThrough();
    await settled();
    for (let i = 0; i < 10; i++) expectGranted(await store.kinds.exclusive!.acquire(claim()));
    expect(requestCount(away, 'acquire') - before).toBe(11);
  });

  it('is told with why it failed, once, also by a request that was not sent because of that', async () => {
    const { servers, store } = quorumOf(3);
    servers[2]!.isDown = true;
    expectGranted(await store.kinds.exclusive!.acquire(claim()));
    servers[2]!.isDown = false;
    servers[2]!.hold();
    expectGranted(await store.kinds.exclusive!.acquire(claim()));
    servers[1]!.isDown = true;
    const failure = await failureOf(store.kinds.exclusive!.acquire(claim()));
    expect(failure.message).toMatch(/c: connection refused(;|$)/);
    servers[2]!.letThrough();
  });

  it('is asked by all where no majority is left without it', async () => {
    const { servers, store } = quorumOf(3);
    for (const away of servers.slice(1)) away.isDown = true;
    await failureOf(store.kinds.exclusive!.acquire(claim()));
    for (const away of servers.slice(1)) {
      away.isDown = false;
      away.hold();
    }
    const both = [claim(), claim()].map((mine) => store.kinds.exclusive!.acquire(mine));
    await settled();
    for (const away of servers.slice(1)) away.letThrough();
    for (const reply of await Promise.all(both)) expectGranted(reply);
  });

  it('is asked to release what it may have, and nothing else', async () => {
    const { servers, store } = quorumOf(3);
    const away = servers[2]!;
    const mine = claim();
    away.isDown = true;
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    expect((await store.kinds.exclusive!.release(mine)).wasHeld).toBe(true);
    expect(requestCount(away, 'release')).toBe(0);
    const other = claim();
    expectGranted(await store.kinds.exclusive!.acquire(other));
    away.isDown = false;
    // A renewal gives it what it has missed.
    await store.kinds.exclusive!.extendMany([other]);
    await settled();
    await settled();
    expect(holds(servers)).toEqual([1, 1, 1]);
    await store.kinds.exclusive!.release(other);
    await settled();
    expect(holds(servers)).toEqual([0, 0, 0]);
  });

  it('is asked to release what it has of an acquire before the one that it missed', async () => {
    const { servers, store } = quorumOf(3);
    const mine = claim();
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[2]!.isDown = true;
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[2]!.isDown = false;
    await store.kinds.exclusive!.release(mine);
    await settled();
    expect(holds(servers)).toEqual([0, 0, 0]);
  });

  it('gets one of its pending releases while it hangs, and the others once it has replied', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const away = servers[2]!;
    const all = Array.from({ length: 20 }, () => claim());
    for (const mine of all) expectGranted(await store.kinds.exclusive!.acquire(mine));
    await settled();
    away.isDown = true;
    for (const mine of all) await store.kinds.exclusive!.release(mine);
    await settled();
    away.isDown = false;
    away.hold();
    const before = requestCount(away, 'release');
    await runtime.pass(2_000);
    expect(requestCount(away, 'release') - before).toBe(1);
    away.letThrough();
    await settled();
    expect(holds(servers)).toEqual([0, 0, 0]);
  });

  it('gets one of its pending releases at a time from the first failed acquire on', async () => {
    const { servers, store } = quorumOf(3);
    const away = servers[2]!;
    const send = away.send.bind(away);
    let releases = 0;
    away.readsLate = true;
    away.send = (name, request) => {
      if (!name.startsWith('release')) return send(name, request);
      releases += 1;
      return new Promise(() => undefined);
    };
    for (let i = 0; i < 20; i++) {
      const mine = claim();
      for (const server of servers.slice(0, 2))
        await server.connect().kinds.exclusive!.acquire(claim({ finalKey: mine.finalKey }));
      expectTaken(await store.kinds.exclusive!.acquire(mine));
    }
    expect(releases).toBe(1);
  });

  it('is asked about one of all that it may have until it answers, and then about all', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const away = servers[2]!;
    const all = Array.from({ length: 250 }, () => claim());
    for (const mine of all) expectGranted(await store.kinds.exclusive!.acquire(mine));
    await settled();
    away.isDown = true;
    expectGranted(await store.kinds.exclusive!.acquire(claim()));
    for (const mine of all) await store.kinds.exclusive!.release(mine);
    const before = requestCount(away, 'release');
    await runtime.pass(3_000);
    expect(requestCount(away, 'release') - before).toBeLessThan(10);
    expect(away.space.size.holds).toBe(250);
    away.isDown = false;
    await runtime.pass(1_000);
    expect(away.space.size.holds).toBe(0);
    expect(runtime.due).toEqual([]);
  });
});

describe('a release', () => {
  it('is unknown when too many nodes do not answer it', async () => {
    const { servers, store } = quorumOf(3);
    const mine = claim();
    await store.kinds.exclusive!.acquire(mine);
    for (const server of servers.slice(1)) server.losesReplies = true;
    expect((await failureOf(store.kinds.exclusive!.release(mine))).outcome).toBe('unknown');
    for (const server of servers) server.losesReplies = false;
    expect((await store.kinds.exclusive!.release(mine)).wasHeld).toBe(false);
  });

  it('that was unknown can be asked for again, also of an owner that has another name on the nodes', async () => {
    const { servers, store } = quorumOf(3);
    const [mine, other] = [claim(), claim()];
    const direct = servers[0]!.connect().kinds.exclusive!;
    await direct.acquire({ ...other, finalKey: mine.finalKey });
    servers[1]!.isDown = true;
    expectTaken(await store.kinds.exclusive!.acquire(mine));
    await direct.release({ ...other, finalKey: mine.finalKey });
    servers[1]!.isDown = false;
    await settled();
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[1]!.space.forceUnlock(mine.finalKey);
    servers[2]!.isDown = true;
    expect((await failureOf(store.kinds.exclusive!.release(mine))).outcome).toBe('unknown');
    servers[2]!.isDown = false;
    await store.kinds.exclusive!.release(mine);
    await settled();
    expect(holds(servers)).toEqual([0, 0, 0]);
  });

  it('leaves nothing on a node that lacked the script of the acquire, and executes that behind it', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    servers[2]!.hold();
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    expect(await store.kinds.exclusive!.release(mine)).toMatchObject({ wasHeld: true });
    servers[2]!.letThrough('backwards');
    await runtime.pass(100);
    expect(holds(servers)).toEqual([0, 0, 0]);
    expect(runtime.due).toEqual([]);
  });

  it('is not sent again to a node that executes both late and in their order', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    servers[2]!.hold();
    await store.kinds.exclusive!.acquire(mine);
    await store.kinds.exclusive!.release(mine);
    servers[2]!.letThrough();
    await runtime.pass(100);
    expect(servers[2]!.requests.filter((request) => request.startsWith('release'))).toHaveLength(1);
  });

  it('says that it was not held when a majority had lost it', async () => {
    const { servers, store } = quorumOf(3);
    const mine = claim();
    await store.kinds.exclusive!.acquire(mine);
    for (const server of servers.slice(1)) server.space.forceUnlock(mine.finalKey);
    expect((await store.kinds.exclusive!.release(mine)).wasHeld).toBe(false);
    expect(holds(servers)).toEqual([0, 0, 0]);
  });
});

describe('the owner of a lease', () => {
  interface Options {
    readonly kind?: 'read' | 'write';
    readonly downgrades?: boolean;
    readonly leaseMs?: number;
  }
  it.each<readonly [string, Options]>([
    ['an exclusive', {}],
    ['a write', { kind: 'write' }],
    ['a read', { kind: 'read' }],
    ['a downgraded', { kind: 'write', downgrades: true }],
    ['a short exclusive', { leaseMs: 5_000 }],
  ])('of %s lock is the one that inspect shows, also after a split vote', async (_, options) => {
    const { runtime, servers, store } = quorumOf(3);
    const { kind = 'exclusive', leaseMs, downgrades = false } = options;
    const settings = resolveSettings({ keyPrefix: '' });
    const manager = new LockManager(store, settings, new Log(), runtime);
    // Two of three nodes are other owners', and the third one grants.
    for (const [i, one] of servers.slice(0, 2).entries()) {
      const other = claimFor('k', { leaseMs: 400 + 100 * i, tokens: 0 });
      expectGranted(await one.connect().kinds.exclusive!.acquire(other));
    }
    const keys = leaseMs === undefined ? ['k'] : ['k', 'l'];
    const call: LockCall = { ...defaultCall(settings), kind, leaseMs, waitMs: 60_000 };
    const acquired = watched(manager.acquire(keys, call));
    await runtime.pass(5_000);
    const lease = acquired.value!;
    if (downgrades) await lease.downgrade();
    expect((await store.inspect('k'))!.holders).toMatchObject([{ owner: lease.ownerOf('k') }]);
    await lease.release();
    expect(holds(servers)).toEqual([0, 0, 0]);
  });
});

describe('a node that does not answer an acquire', () => {
  it('has nothing of it after the release, also when that fails there at first', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    servers[0]!.readsLate = true;
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[0]!.isDown = true;
    expect(await store.kinds.exclusive!.release(mine)).toMatchObject({ wasHeld: true });
    await runtime.pass(20);
    servers[0]!.isDown = false;
    await runtime.pass(2_000);
    await servers[0]!.readAll();
    expect(holds(servers)).toEqual([0, 0, 0]);
    expect(runtime.due).toEqual([]);
  });
});

describe('an undo that waits for a node that hangs', () => {
  it('holds up no other caller of its key', async () => {
    const { servers, store } = quorumOf(3);
    const [undone, next] = [claim(), claim()];
    servers[0]!.hold();
    const undoing = store.kinds.exclusive!.release(undone, {
      uncertain: new StoreFailure('gone', 'unknown'),
    });
    const reply = await store.kinds.exclusive!.acquire({ ...next, finalKey: undone.finalKey, waits: true });
    expectGranted(reply);
    servers[0]!.letThrough();
    await undoing;
  });
});

describe('a node that fails between its grant and the commit of the token', () => {
  it('is made up for by one that grants later', async () => {
    const { servers, store } = quorumOf(3);
    servers[0]!.aheadMs = 500;
    const [, failing, late] = servers;
    const send = failing!.send.bind(failing!);
    failing!.send = (name, request) =>
      name.startsWith('commit') ? Promise.reject(new StoreFailure('gone', 'unknown')) : send(name, request);
    late!.hold();
    const mine = claim({ tokens: 1 });
    const acquiring = store.kinds.exclusive!.acquire(mine);
    await settled();
    late!.letThrough();
    const reply = await acquiring;
    expectGranted(reply);
    expect(late!.requests).toContain(`commit ${reply.token! + mine.tokens - 1}`);
  });
});

describe('a renewal', () => {
  it('holds by a majority, and for as long as that has it', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    await store.kinds.exclusive!.acquire(mine);
    await runtime.pass(6_000);
    servers[0]!.isDown = true;
    const held = { status: 'held', validForMs: 9_898 };
    expect(await store.kinds.exclusive!.extendMany([mine])).toEqual([held]);
    servers[0]!.isDown = false;
    servers[1]!.losesReplies = true;
    // What one node has for longer does not count.
    expect(await store.kinds.exclusive!.extendMany([{ ...mine, leaseMs: 8_000 }])).toEqual([
      { status: 'held', validForMs: 7_918 },
    ]);
  });

  it('is lost only when a majority says so, unknown when it cannot be told, and each key is told for itself', async () => {
    const { servers, store } = quorumOf(3);
    const [one, two] = [claim(), claim()];
    for (const mine of [one, two]) await store.kinds.exclusive!.acquire(mine);
    servers[0]!.space.forceUnlock(one.finalKey);
    const both = (): Promise<readonly { status: string }[]> => store.kinds.exclusive!.extendMany([one, two]);
    expect((await both()).map(({ status }) => status)).toEqual(['held', 'held']);
    await settled();
    servers[0]!.space.forceUnlock(one.finalKey);
    servers[1]!.isDown = true;
    expect((await both()).map(({ status }) => status)).toEqual(['failed', 'held']);
    servers[1]!.isDown = false;
    servers[1]!.space.forceUnlock(one.finalKey);
    expect((await both()).map(({ status }) => status)).toEqual(['lost', 'held']);
    await settled();
    // It has no holder: the third node is released.
    expect(await store.inspect(one.finalKey)).toBeNull();
    expect(holds(servers)).toEqual([1, 1, 1]);
    for (const server of servers.slice(0, 2)) server.isDown = true;
    await failureOf(both());
  });

  it('puts a hold back on each node that has lost it, and nothing once it is released', async () => {
    const { servers, store, open } = quorumOf(3);
    const mine = claim({ tokens: 1 });
    const reply = await store.kinds.exclusive!.acquire(mine);
    expectGranted(reply);
    for (const away of servers) {
      away.space.forceUnlock(mine.finalKey);
      expect(await store.kinds.exclusive!.extendMany([mine])).toMatchObject([{ status: 'held' }]);
      await settled();
      await settled();
      expect(holds(servers)).toEqual([1, 1, 1]);
    }
    // A renewal whose answers come after the release puts nothing back.
    servers[0]!.space.forceUnlock(mine.finalKey);
    servers[0]!.hold();
    const renewing = store.kinds.exclusive!.extendMany([mine]);
    await settled();
    const releasing = store.kinds.exclusive!.release(mine);
    await settled();
    servers[0]!.letThrough();
    await Promise.all([renewing, releasing]);
    await settled();
    expect(holds(servers)).toEqual([0, 0, 0]);
    const next = await open().kinds.exclusive!.acquire(claim({ finalKey: mine.finalKey, tokens: 1 }));
    expectGranted(next);
    expect(next.token).toBeGreaterThan(reply.token!);
  });

  it('requests a lost hold once at a node, also when several renewals find the loss at the same time', async () => {
    const { servers, store } = quorumOf(3);
    const mine = claim();
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[0]!.space.forceUnlock(mine.finalKey);
    servers[0]!.requests.splice(0);
    await Promise.all([1, 2, 3].map(() => store.kinds.exclusive!.extendMany([mine])));
    await settled();
    expect(servers[0]!.requests.filter((request) => request.startsWith('acquire'))).toHaveLength(1);
  });

  it('puts a hold back that does not outlive its release, where that comes late', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[0]!.space.forceUnlock(mine.finalKey);
    servers[0]!.readsLate = true;
    expect(await store.kinds.exclusive!.extendMany([mine])).toMatchObject([{ status: 'held' }]);
    await settled();
    expect(holds(servers)).toEqual([0, 1, 1]);
    await store.kinds.exclusive!.release(mine);
    await settled();
    await servers[0]!.readAll();
    expect(holds(servers)).toEqual([0, 0, 0]);
    expect(runtime.due).toEqual([]);
  });

  it('puts a hold back for as long as the others have it, also when it only looks', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    servers[0]!.space.forceUnlock(mine.finalKey);
    expect(await store.kinds.exclusive!.extendMany([{ ...mine, leaseMs: 1 }])).toMatchObject([
      { status: 'held' },
    ]);
    await settled();
    await runtime.pass(100);
    expect(holds(servers)).toEqual([1, 1, 1]);
  });

  it('that is lost ends what an acquire in doubt would still get, where that comes late', async () => {
    const { servers, store } = quorumOf(3);
    const mine = claim();
    servers[0]!.readsLate = true;
    expectGranted(await store.kinds.exclusive!.acquire(mine));
    for (const server of servers.slice(1)) server.space.forceUnlock(mine.finalKey);
    expect(await store.kinds.exclusive!.extendMany([mine])).toMatchObject([{ status: 'lost' }]);
    await settled();
    await servers[0]!.readAll();
    expect(holds(servers)).toEqual([0, 0, 0]);
  });

  it('that is lost is given back to a node that did not answer, once it does', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    await store.kinds.exclusive!.acquire(mine);
    for (const server of servers.slice(0, 2)) server.space.forceUnlock(mine.finalKey);
    servers[2]!.isDown = true;
    expect(await store.kinds.exclusive!.extendMany([mine])).toEqual([{ status: 'lost' }]);
    servers[2]!.isDown = false;
    await runtime.pass(1_000);
    expect(holds(servers)).toEqual([0, 0, 0]);
  });
});

describe('fencing tokens', () => {
  it.each([0, 1, 2])(
    'are larger than all before, whichever nodes gave them; node %i is ahead',
    async (ahead) => {
      const { servers, open, runtime } = quorumOf(3);
      servers[ahead]!.aheadMs = 900;
      const key = newKey();
      const tokens: number[] = [];
      // Another node is down each time, so each majority is another one.
      for (let i = 0; i < 9; i++) {
        servers[i % 3]!.isDown = true;
        const store = open();
        const mine = claim({ finalKey: key, tokens: 5 });
        const reply = await store.kinds.exclusive!.acquire(mine);
        expectGranted(reply);
        tokens.push(reply.token!);
        await store.kinds.exclusive!.release(mine);
        servers[i % 3]!.isDown = false;
        await runtime.pass(100);
        await store.close();
      }
      for (const [i, token] of tokens.slice(1).entries())
        expect(token).toBeGreaterThanOrEqual(tokens[i]! + 5);
    },
  );

  it('are made known only to nodes where their owner has the key at that moment', async () => {
    const { servers, open } = quorumOf(3);
    servers[0]!.aheadMs = 900;
    const key = newKey();
    const [first, second] = [open(), open()];
    // The first owner is granted by a, whose tokens are ahead, and by b.
    servers[2]!.isDown = true;
    const mine = claim({ finalKey: key, tokens: 1 });
    const granted = first.kinds.exclusive!.acquire(mine);
    await settled();
    const reply = await granted;
    expectGranted(reply);
    await first.kinds.exclusive!.release(mine);
    servers[2]!.isDown = false;
    const held = claim({ finalKey: key, tokens: 1 });
    // Later than the process knows: its proposal is smaller than the token of a.
    servers[0]!.aheadMs = 950;
    servers[1]!.isDown = true;
    servers[2]!.hold();
    const requesting = first.kinds.exclusive!.acquire(held);
    await settled();
    // The second owner is granted by a and c, and c loses its hold before the token of a comes.
    servers[2]!.letThrough();
    servers[2]!.hold();
    await settled();
    servers[2]!.space.forceUnlock(key);
    servers[2]!.letThrough();
    expectTaken(await requesting);
    servers[1]!.isDown = false;
    await settled();
    const next = await second.kinds.exclusive!.acquire(claim({ finalKey: key, tokens: 1 }));
    expectGranted(next);
    expect(next.token).toBeGreaterThan(reply.token!);
  });

  it('are unknown where too few nodes answer that they know of it', async () => {
    const { servers, store } = quorumOf(3);
    servers[0]!.aheadMs = 900;
    const mine = claim({ tokens: 1 });
    servers[2]!.isDown = true;
    servers[1]!.hold();
    const requesting = store.kinds.exclusive!.acquire(mine);
    await settled();
    servers[1]!.letThrough();
    servers[1]!.losesReplies = false;
    servers[1]!.hold();
    await settled();
    servers[1]!.losesReplies = true;
    servers[1]!.letThrough();
    expect((await failureOf(requesting)).outcome).toBe('unknown');
  });
});

describe('read-write locks', () => {
  it('have many readers or one writer, over nodes of which one is down', async () => {
    const { servers, open } = quorumOf(3);
    servers[1]!.isDown = true;
    const [one, two] = [open(), open()];
    const key = newKey();
    const readers = [readFor(key), readFor(key)];
    expectGranted(await one.kinds.read!.acquire(readers[0]!));
    expectGranted(await two.kinds.read!.acquire(readers[1]!));
    expectTaken(await two.kinds.write!.acquire(writeFor(key)));
    expect((await one.inspect(key))!.holders).toHaveLength(2);
    for (const reader of readers) await one.kinds.read!.release(reader);
    const writer = writeFor(key);
    expectGranted(await one.kinds.write!.acquire(writer));
    expectTaken(await two.kinds.read!.acquire(readFor(key)));
    expect(await one.kinds.write!.downgrade!(writer)).toMatchObject({ status: 'held' });
    expectGranted(await two.kinds.read!.acquire(readFor(key)));
  });

  it('wait with a downgrade for the node that decides', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const writer = writeFor(newKey());
    expectGranted(await store.kinds.write!.acquire(writer));
    servers[0]!.space.forceUnlock(writer.finalKey);
    servers[2]!.hold();
    const downgrading = watched(store.kinds.write!.downgrade!(writer));
    await runtime.pass(1_200);
    expect(downgrading.state).toBe('pending');
    servers[2]!.letThrough();
    await settled();
    expect(downgrading.value).toMatchObject({ status: 'held' });
  });

  it('say of a downgrade that nothing decides which node has failed', async () => {
    const { servers, store } = quorumOf(3);
    const writer = writeFor(newKey());
    await store.kinds.write!.acquire(writer);
    servers[2]!.isDown = true;
    await store.kinds.write!.extendMany([writer]);
    servers[2]!.isDown = false;
    servers[2]!.hold();
    servers[0]!.space.forceUnlock(writer.finalKey);
    const failure = await failureOf(store.kinds.write!.downgrade!(writer));
    expect(failure.message).toMatch(/^1 of 3 nodes failed, the others do not agree, .*c: connection refused/);
    servers[2]!.letThrough();
  });

  it('say that a downgrade is unknown when too few nodes answer', async () => {
    const { servers, store } = quorumOf(3);
    const writer = writeFor(newKey());
    await store.kinds.write!.acquire(writer);
    for (const server of servers.slice(1)) server.losesReplies = true;
    expect((await failureOf(store.kinds.write!.downgrade!(writer))).outcome).toBe('unknown');
  });
});

describe('a waiter', () => {
  it('hears of a release once, when a majority of nodes has told it', async () => {
    const { store, open } = quorumOf(3);
    const mine = claim();
    await open().kinds.exclusive!.acquire(mine);
    const wakeUps = await WakeUpCounter.live(store as never, mine);
    await settled();
    const seen = wakeUps.count;
    await open().kinds.exclusive!.release(mine);
    await settled();
    expect(wakeUps.count).toBe(seen + 1);
    wakeUps.watch.close();
  });

  it('hears of what single nodes tell, a moment later', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    await store.kinds.exclusive!.acquire(mine);
    const wakeUps = await WakeUpCounter.live(store as never, mine);
    await runtime.pass(100);
    const seen = wakeUps.count;
    servers[0]!.space.forceUnlock(mine.finalKey);
    await settled();
    expect(wakeUps.count).toBe(seen);
    await runtime.pass(30);
    expect(wakeUps.count).toBe(seen + 1);
    wakeUps.watch.close();
    expect(runtime.due).toEqual([]);
  });

  it('hears at once of a release that follows what a single node told', async () => {
    const { servers, store, runtime } = quorumOf(3);
    const mine = claim();
    await store.kinds.exclusive!.acquire(mine);
    const wakeUps = await WakeUpCounter.live(store as never, mine);
    await runtime.pass(100);
    servers[0]!.space.forceUnlock(mine.finalKey);
    await runtime.pass(30);
    const seen = wakeUps.count;
    for (const server of servers.slice(1)) server.space.forceUnlock(mine.finalKey);
    await settled();
    expect(wakeUps.count).toBe(seen + 1);
    wakeUps.watch.close();
  });

  it.each([
    [2, 0],
    [3, 1],
    [4, 0],
    [4, 1],
  ])(
    'of %i nodes, of which %i have gone since, retries less and less often while a holder looks the same as a split',
    async (count, gone) => {
      const { servers, store, open } = quorumOf(count);
      const key = newKey();
      const [, ...others] = servers;
      // A caller got a majority, and a part of that majority is gone.
      for (const server of others) server.isDown = count > 2 && server === others.at(-1);
      expectGranted(await open().kinds.exclusive!.acquire(claim({ finalKey: key })));
      for (const server of servers) server.isDown = false;
      for (const server of servers.slice(0, gone)) server.isDown = true;
      const waiter = claim({ finalKey: key });
      let waitedMs = 0;
      let tries = 0;
      for (; waitedMs < LEASE_MS && tries < 1_000; tries++) {
        servers.at(-1)!.hold();
        const requesting = store.kinds.exclusive!.acquire(waiter);
        await settled();
        servers.at(-1)!.letThrough();
        const reply = await requesting;
        expectTaken(reply);
        waitedMs += reply.retryInMs;
        await settled();
      }
      expect(tries).toBeLessThan(30);
    },
  );
});

describe('what is asked of all nodes', () => {
  it('is answered by a majority: inspect, forced unlocks, pings', async () => {
    const { servers, store } = quorumOf(3);
    const mine = claim();
    expect(await store.inspect(mine.finalKey)).toBeNull();
    await store.kinds.exclusive!.acquire(mine);
    servers[2]!.isDown = true;
    expect(await store.inspect(mine.finalKey)).toMatchObject({
      kind: 'exclusive',
      holders: [{ owner: mine.owner }],
    });
    expect(await store.forceUnlock(mine.finalKey)).toBe(true);
    expect(await store.forceUnlock(mine.finalKey)).toBe(false);
    await store.ping();
    servers[1]!.isDown = true;
    for (const request of [store.ping(), store.inspect(mine.finalKey), store.forceUnlock(mine.finalKey)]) {
      expect((await failureOf(request)).message).toMatch(/2 of 3 nodes failed/);
    }
  });

  it('names each node that warns of something', async () => {
    const nodes = ['one', 'two'].map((warning) =>
      Object.assign(new MemoryStore(), { diagnose: () => Promise.resolve([warning]) }),
    );
    const broken = Object.assign(new MemoryStore(), { diagnose: () => Promise.reject(new Error('down')) });
    const store = new QuorumStore({ nodes: [...nodes, broken] });
    expect(await store.diagnose()).toEqual([
      'node 1: one',
      'node 2: two',
      'node 3 cannot be reached: locks need 2 of 3 nodes.',
    ]);
  });
});

describe('a quorum that cannot be meant is refused by name', () => {
  const one = new MemoryStore();
  it.each([
    ['no list', {}, /nodes must be a list of stores/],
    ['no nodes', { nodes: [] }, /at least 2 nodes, better 3 or 5, but has 0/],
    ['one node', { nodes: [one] }, /at least 2 nodes/],
    ['no stores', { nodes: [undefined, null] as never }, /nodes\[0\] must be a store that has locks/],
    ['the same store twice', { nodes: [one, new MemoryStore(), one] }, /the same store twice/],
  ])('%s', (_, options, message) => {
    const open = () => new QuorumStore(options as never);
    expect(open).toThrow(LockConfigurationError);
    expect(open).toThrow(message);
  });
});
