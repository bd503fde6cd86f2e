import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockLostError, LockNotAcquiredError } from '../../../lib/core/errors/lock.errors.js';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { until } from '../../support/async.js';
import { claimFor, expectGranted } from '../../support/stores/harness.js';
import { storeHost } from '../../support/stores/store-host.js';
import type { TcpProxy } from '../../support/tcp-proxy.js';
import { newKey, ZooKeeperLab } from '../../support/zookeeper/zookeeper-lab.js';

/** Short enough to end while a test waits, long enough for a busy machine. */
const SESSION_MS = 3_000;
const WAIT = { waitMs: 60_000 };
const OPTIONS = { watchdogMs: SESSION_MS, commandTimeoutMs: 1_000 };
/** A session that no pause of a test ends. */
const LONG_MS = 60_000;

/** A clock that jumps, as that of a process that has stood still. */
const sleepy = () => {
  const system = systemRuntime();
  let sleptMs = 0;
  const sleep = (ms: number): void => void (sleptMs += ms);
  return { sleep, runtime: { ...system, now: () => system.now() + sleptMs } };
};

describe('when the connection to ZooKeeper is lost', () => {
  let lab: ZooKeeperLab;
  beforeAll(async () => {
    lab = await ZooKeeperLab.start();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  /** Two processes: one behind a proxy, and one beside it. */
  const two = async (sessionMs = SESSION_MS) => {
    const proxy = await lab.proxy();
    const session = lab.sessionThrough(proxy);
    const options = { ...OPTIONS, watchdogMs: sessionMs };
    const { commandTimeoutMs, ...forLocks } = options;
    const cutOff = lab.open(forLocks, { connect: proxy.address, commandTimeoutMs });
    const other = lab.open(forLocks, { commandTimeoutMs });
    await Promise.all([cutOff.manager.open(), other.manager.open()]);
    return { proxy, session, cutOff, other };
  };

  /** Cuts a process off until its session has ended in the server. */
  const expire = async (proxy: TcpProxy, isOver: () => Promise<boolean>): Promise<void> => {
    proxy.refuse();
    proxy.cut();
    await until(isOver, { what: 'the session ends in the server' });
  };

  it('while a lock is held, and comes back within the session: the lock stays', async () => {
    const { proxy, cutOff, other } = await two(LONG_MS);
    const key = newKey();
    const lease = await cutOff.locks.acquire(key);
    const [node] = await lab.nodes(key);
    proxy.cut();
    await expect(other.locks.acquire(key, { waitMs: 0 })).rejects.toBeInstanceOf(LockNotAcquiredError);
    await until(() => proxy.connectionCount > 1, { what: 'the process connects again' });
    expect(lease.signal.aborted).toBe(false);
    expect(await lab.nodes(key)).toEqual([node]);
    expect(await lease.release()).toBe('released');
    await lab.nothingLeft(cutOff, other);
  });

  it('when a call requests a new key after a pause for most of the session: it waits on, and the key lives', async () => {
    const proxy = await lab.proxy();
    const { runtime, sleep } = sleepy();
    // Longer than the sleep.
    const commandTimeoutMs = 8_900;
    const sleeper = lab.open({ watchdogMs: 9_000 }, { connect: proxy.address, commandTimeoutMs, runtime });
    const other = lab.open();
    await Promise.all([sleeper.manager.open(), other.manager.open()]);
    const key = newKey();
    // Longer than the session counts, shorter than the server keeps it. The connection stays open.
    proxy.refuse();
    sleep(8_500);
    const waiting = sleeper.locks.acquire(key, WAIT);
    // The reply comes to a request that was sent after the validity of the session.
    await until(() => proxy.connections.length === 0, { what: 'the sleeper drops its connection' });
    const first = await other.locks.acquire(key, WAIT);
    await proxy.restore();
    await until(async () => (await lab.nodes(key)).length === 2, { what: 'the sleeper has a node' });
    // The claim lists the nodes, then watches the one before it. The replies to both come before those to these pings.
    for (let i = 0; i < 2; i += 1) await sleeper.locks.ping();
    await first.release();
    await (await waiting).release();
    await (await other.locks.acquire(key, WAIT)).release();
    await lab.nothingLeft(sleeper, other);
  });

  it('while a lock is held, for longer than the session: it is lost before another process has it', async () => {
    const { proxy, cutOff, other } = await two();
    const key = newKey();
    const lease = await cutOff.locks.acquire(key);
    const waiting = other.locks.acquire(key, WAIT).then((next) => ({ next, wasLost: lease.signal.aborted }));
    await lab.nodesAre(key, 2);
    await expire(proxy, async () => (await lab.nodes(key)).length === 1);
    const { next, wasLost } = await waiting;
    expect(wasLost).toBe(true);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(cutOff.lost).toMatchObject([{ key, reason: 'expired' }]);
    await proxy.restore();
    expect(await lease.release()).toBe('lost');
    expect(next.signal.aborted).toBe(false);
    await next.release();
    await cutOff.locks.withLock(key, WAIT, () => undefined);
    await lab.nothingLeft(cutOff, other);
  });

  it('while a lock is held, for longer than it counts: it is lost, and given back after the reconnect', async () => {
    // The server keeps a session for longer than its process counts on it.
    const { proxy, cutOff, other } = await two(9_000);
    const key = newKey();
    const lease = await cutOff.locks.acquire(key);
    const [node] = await lab.nodes(key);
    proxy.refuse();
    proxy.cut();
    await until(() => lease.signal.aborted, { what: 'the lock is lost' });
    expect(await lab.nodes(key)).toEqual([node]);
    await proxy.restore();
    await other.locks.withLock(key, { waitMs: 2_000 }, () => undefined);
    expect(cutOff.lost).toMatchObject([{ key, reason: 'expired' }]);
    await lease.release();
    await lab.nothingLeft(cutOff, other);
  });

  it('and the server has ended the session: its locks are lost at once when it says so', async () => {
    const { session, cutOff } = await two(LONG_MS);
    const key = newKey();
    const lease = await cutOff.locks.acquire(key);
    await session.end(lab.server);
    await until(() => lease.signal.aborted, { what: 'the lock is lost' });
    expect(cutOff.lost).toMatchObject([{ key, reason: 'refused' }]);
    await cutOff.locks.withLock(key, () => undefined);
    await lease.release();
    await lab.nothingLeft(cutOff);
  });

  it('while a claim is queued: it keeps its place', async () => {
    const { proxy, cutOff, other } = await two(LONG_MS);
    const key = newKey();
    const lease = await other.locks.acquire(key);
    const waiting = cutOff.locks.acquire(key, WAIT);
    await lab.isQueued(key, cutOff);
    const nodes = await lab.nodes(key);
    proxy.cut();
    await until(() => proxy.connectionCount > 1, { what: 'the process connects again' });
    expect(await lab.nodes(key)).toEqual(nodes);
    await lease.release();
    await (await waiting).release();
    await lab.nothingLeft(cutOff, other);
  });

  it('while a claim is queued, and its turn comes meanwhile: it hears of that after the reconnect', async () => {
    const { proxy, cutOff, other } = await two(LONG_MS);
    const key = newKey();
    const lease = await other.locks.acquire(key);
    const waiting = cutOff.locks.acquire(key, WAIT);
    await lab.isQueued(key, cutOff);
    proxy.refuse();
    proxy.cut();
    await lease.release();
    await proxy.restore();
    await (await waiting).release();
    await lab.nothingLeft(cutOff, other);
  });

  it('while a claim is queued, for longer than the session: the wait goes on with a new place', async () => {
    const { proxy, cutOff, other } = await two();
    const key = newKey();
    const lease = await other.locks.acquire(key);
    const waiting = cutOff.locks.acquire(key, WAIT);
    await lab.isQueued(key, cutOff);
    await expire(proxy, async () => (await lab.nodes(key)).length === 1);
    await proxy.restore();
    await lab.nodesAre(key, 2);
    await lease.release();
    await (await waiting).release();
    await lab.nothingLeft(cutOff, other);
  });

  it.each(['exclusive', 'read'] as const)(
    'while a claim (%s) is queued, until its wait is over: the store has failed, and the key is not "taken"',
    async (mode) => {
      const { proxy, cutOff, other } = await two(LONG_MS);
      const key = newKey();
      const lease = await other.locks.acquire(key, { mode: mode === 'read' ? 'write' : mode });
      const waiting = cutOff.locks.acquire(key, { mode, waitMs: 3_000 });
      waiting.catch(() => undefined);
      await lab.isQueued(key, cutOff);
      proxy.refuse();
      proxy.cut();
      await expect(waiting).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED', key });
      await proxy.restore();
      await lease.release();
      await lab.nothingLeft(cutOff, other);
    },
  );

  it('while a claim is queued, and the caller gives up meanwhile: its node goes after the reconnect', async () => {
    const { proxy, cutOff, other } = await two(LONG_MS);
    const key = newKey();
    const lease = await other.locks.acquire(key);
    const stop = new AbortController();
    const waiting = cutOff.locks.acquire(key, { ...WAIT, signal: stop.signal });
    await lab.isQueued(key, cutOff);
    proxy.refuse();
    proxy.cut();
    stop.abort();
    await expect(waiting).rejects.toThrow();
    await proxy.restore();
    await lab.nodesAre(key, 1);
    expect(await lease.release()).toBe('released');
    await lab.nothingLeft(cutOff, other);
  });

  it.each([
    { what: 'the request', direction: 'toServer' },
    { what: 'its reply', direction: 'toClient' },
  ] as const)('while $what of a create is under way: no node is left', async ({ direction }) => {
    const { proxy, cutOff, other } = await two(LONG_MS);
    const key = newKey();
    // The container exists, so the next create is that of the lock.
    await other.locks.withLock(key, () => undefined);
    let cuts = 0;
    const stop = proxy.onData((connection, to, chunk) => {
      if (to !== direction || !chunk.includes('-lock-')) return;
      cuts += 1;
      connection.cut();
    });
    await expect(cutOff.locks.acquire(key, WAIT)).rejects.toThrow();
    expect(cuts).toBeGreaterThan(0);
    stop();
    await lab.nodesAre(key, 0);
    await other.locks.withLock(key, { waitMs: 0 }, () => undefined);
    await lab.nothingLeft(cutOff, other);
  });

  it('while the reply to a create is under way, for longer than the session: no node is left', async () => {
    const { proxy, cutOff, other } = await two();
    const key = newKey();
    await other.locks.withLock(key, () => undefined);
    const stop = proxy.onData((connection, to, chunk) => {
      if (to !== 'toClient' || !chunk.includes('-lock-')) return;
      proxy.refuse();
      connection.cut();
    });
    await expect(cutOff.locks.acquire(key, WAIT)).rejects.toThrow();
    stop();
    await lab.nodesAre(key, 0);
    await proxy.restore();
    await cutOff.locks.withLock(key, WAIT, () => undefined);
    await lab.nothingLeft(cutOff, other);
  });

  it('while the reply to a release is under way: the lock is free', async () => {
    const { proxy, cutOff, other } = await two(LONG_MS);
    const key = newKey();
    const lease = await cutOff.locks.acquire(key);
    proxy.swallowReplies();
    const released = lease.release();
    await other.locks.withLock(key, WAIT, () => undefined);
    await proxy.restore();
    await released.catch(() => undefined);
    await lab.nothingLeft(cutOff, other);
  });
});

describe('a process whose machine was asleep for longer than its session counts', () => {
  let lab: ZooKeeperLab;
  beforeAll(async () => {
    lab = await ZooKeeperLab.start();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  /** A clock that can jump, as after sleep. No timer comes sooner for that. */
  const sleeper = () => {
    const system = systemRuntime();
    let asleepMs = 0;
    const runtime = { ...system, now: () => system.now() + asleepMs };
    const sleep = (ms: number): void => void (asleepMs += ms);
    return { runtime, sleep };
  };

  // The session counts until 7,875 ms, and from the reply on it would count again.
  it.each([0, 900])(
    'for %i ms of that while it connects: it has lost its locks before it ends its session, over one connection',
    async (meanwhileMs) => {
      const { runtime, sleep } = sleeper();
      const proxy = await lab.proxy();
      const store = lab.store({ connect: proxy.address, sessionTimeoutMs: 9_000, runtime });
      const atRisk: (string | undefined)[] = [];
      await store.open({ ...storeHost({ runtime }), atRisk: (key) => void atRisk.push(key) });
      const claim = claimFor(`lock:asleep-${meanwhileMs}`);
      expectGranted(await store.kinds.exclusive.acquire(claim));
      let seen: number | undefined;
      // The frame of a request to end the session: its length, its number, and the operation -11.
      proxy.onData((_, direction, chunk) => {
        if (direction === 'toServer' && chunk.length === 12 && chunk.readInt32BE(8) === -11)
          seen ??= atRisk.length;
      });
      const stop = proxy.onData(() => {
        stop();
        sleep(meanwhileMs);
      });
      sleep(8_400 - meanwhileMs);
      proxy.cut();
      await until(() => seen !== undefined, { what: 'the session is ended' });
      expect(seen).toBe(1);
      expectGranted(await store.kinds.exclusive.acquire(claimFor(`lock:awake-${meanwhileMs}`)));
      expect(proxy.connectionCount).toBe(3);
    },
  );
});

describe('a half-open connection', () => {
  let lab: ZooKeeperLab;
  beforeAll(async () => {
    lab = await ZooKeeperLab.start();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  it('is dropped within two thirds of the session, and another server keeps the locks', async () => {
    const [silent, good] = [await lab.proxy(), await lab.proxy()];
    const { locks, lost } = lab.open({ watchdogMs: 9_000 }, { connect: `${silent.address},${good.address}` });
    const lease = await locks.acquire(newKey());
    const [used, spare] = silent.connections.length > 0 ? [silent, good] : [good, silent];
    const before = spare.connectionCount;
    used.blackhole();
    await until(() => spare.connectionCount > before, { what: 'the other server is used' });
    await locks.ping();
    expect(lost).toEqual([]);
    expect(await lease.release()).toBe('released');
  });
});

describe('a store that closes', () => {
  let lab: ZooKeeperLab;
  beforeAll(async () => {
    lab = await ZooKeeperLab.start();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  it('while a section runs: its lock stays until the session ends', async () => {
    const closing = lab.open({ watchdogMs: SESSION_MS }, { commandTimeoutMs: 1_000 });
    const other = lab.open();
    const key = newKey();
    await closing.locks.acquire(key);
    await closing.manager.close();
    expect(await lab.nodes(key)).toHaveLength(1);
    await expect(other.locks.acquire(key, { waitMs: 0 })).rejects.toBeInstanceOf(LockNotAcquiredError);
    await other.locks.withLock(key, WAIT, () => undefined);
  });

  it('while it connects again: it keeps no connection, and its lock ends with the session', async () => {
    const proxy = await lab.proxy();
    const auth = { digest: 'app:secret' };
    const closing = lab.open(
      { watchdogMs: SESSION_MS },
      { connect: proxy.address, auth, commandTimeoutMs: 1_000 },
    );
    const key = newKey();
    await closing.locks.acquire(key);
    const seen = proxy.connectionCount;
    const greeted = new Promise<void>((resolve) => {
      proxy.onData((_, direction) => direction === 'toClient' && proxy.connectionCount > seen && resolve());
    });
    proxy.delay(100, ['toClient']);
    proxy.cut();
    await greeted;
    // The greeting arrives in 100 ms, and the reply about the identity later: the store closes in between.
    await until(() => proxy.find('digest').some(({ id }) => id > seen), { what: 'it says its identity' });
    await closing.manager.close();
    await until(() => proxy.connections.length === 0, { what: 'no connection is left' });
    await lab.nodesAre(key, 0);
  });

  it('while a lock is granted: its session ends at once, and the call is rejected', async () => {
    const proxy = await lab.proxy();
    const closing = lab.open({ watchdogMs: LONG_MS }, { connect: proxy.address });
    const key = newKey();
    await closing.locks.withLock(key, () => undefined);
    proxy.delay(200, ['toClient']);
    const acquiring = closing.locks.acquire(key).catch((error: unknown) => error);
    await lab.nodesAre(key, 1);
    await closing.manager.close();
    expect(await acquiring).toMatchObject({
      code: expect.stringMatching(/LOCK_SHUTDOWN|LOCK_STORE_FAILED/) as string,
    });
    await lab.nodesAre(key, 0);
  });

  it('after a forced unlock: its session ends at once, because it holds nothing', async () => {
    const [closing, other] = [lab.open({ watchdogMs: LONG_MS }), lab.open()];
    const key = newKey();
    const lease = await closing.locks.acquire(key);
    await other.locks.forceUnlock(key);
    await until(() => lease.signal.aborted, { what: 'the lock is lost' });
    await lease.release();
    const before = await lab.sessions();
    await closing.manager.close();
    await until(async () => (await lab.sessions()) < before, { what: 'the session ends' });
  });

  it('after it has forced its own lock open: its session ends at once', async () => {
    const closing = lab.open({ watchdogMs: LONG_MS });
    const [key, later] = [newKey(), newKey()];
    const forced = await closing.locks.acquire(key);
    await closing.locks.forceUnlock(key);
    const lease = await closing.locks.acquire(later);
    // The store has looked for the node of the first hold by then.
    await until(async () => /Total watches:[1-9]/.test(await lab.server.command('wchs')), {
      what: 'the node of the second hold is watched',
    });
    expect([await forced.release(), await lease.release()]).toEqual(['lost', 'released']);
    const before = await lab.sessions();
    await closing.manager.close();
    await until(async () => (await lab.sessions()) < before, { what: 'the session ends' });
  });

  it('while nothing runs: its session ends at once', async () => {
    const closing = lab.open({ watchdogMs: LONG_MS });
    await closing.locks.withLock(newKey(), () => undefined);
    const before = await lab.sessions();
    await closing.manager.close();
    await until(async () => (await lab.sessions()) < before, { what: 'the session ends' });
  });
});

describe('a process of an ensemble', () => {
  let lab: ZooKeeperLab;
  beforeAll(async () => {
    lab = await ZooKeeperLab.startEnsemble();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  it('keeps its lock, and its place, when the leader is killed, and tokens grow on', async () => {
    const [holder, waiter] = [lab.open({ watchdogMs: LONG_MS }), lab.open({ watchdogMs: LONG_MS })];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const waiting = waiter.locks.acquire(key, WAIT);
    await lab.isQueued(key, waiter);
    const leader = await lab.ensemble!.leader();
    await leader.kill('SIGKILL');
    await lab.ensemble!.ready();
    await until(
      () =>
        holder.locks.ping().then(
          () => true,
          () => false,
        ),
      { what: 'the holder is connected' },
    );
    expect(lease.signal.aborted).toBe(false);
    expect(await lease.release()).toBe('released');
    const next = await waiting;
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await next.release();
    await leader.restart();
    await lab.ensemble!.ready();
  });

  it('has no lock when there is no quorum, and has one again when there is', async () => {
    const { locks } = lab.open({ watchdogMs: LONG_MS }, { commandTimeoutMs: 1_000 });
    const key = newKey();
    await locks.withLock(key, () => undefined);
    const [, second, third] = lab.servers;
    await Promise.all([second!.kill('SIGKILL'), third!.kill('SIGKILL')]);
    await expect(locks.acquire(key, { waitMs: 0 })).rejects.toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await Promise.all([second!.restart(), third!.restart()]);
    await lab.ensemble!.ready();
    await until(() => locks.withLock(key, () => true).catch(() => false), {
      what: 'the key is locked again',
    });
  });
});
