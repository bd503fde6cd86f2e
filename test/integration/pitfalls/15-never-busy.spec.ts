import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockNotAcquiredError, LockStoreError } from 'nest-redis-lock';
import { RedisServer } from '../../support/redis-server.js';
import { freePort } from '../../support/loopback.js';
import { type TcpProxy } from '../../support/tcp-proxy.js';
import { until } from '../../support/async.js';
import { holdName, Lab, newKey } from '../scenarios/lab.js';
import { openLocks, type OpenLocks } from '../scenarios/open-locks.js';

const COMMAND_TIMEOUT_MS = 400;

let lab: Lab;

beforeAll(async () => {
  lab = await Lab.start();
});

afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

/** Keeps the event loop busy. */
const block = (ms: number): void => void Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, ms);

const reasonsOf = async (attempts: readonly Promise<unknown>[]): Promise<unknown[]> => {
  const settled = await Promise.allSettled(attempts);
  return settled.map((one) => (one.status === 'rejected' ? one.reason : one.value));
};

const expectStoreFailures = (reasons: readonly unknown[]): void => {
  for (const reason of reasons) expect(reason).toBeInstanceOf(LockStoreError);
};

describe('pitfall 15: the first command', () => {
  it('waits for the connection: it is no failure that nobody was connected yet', async () => {
    for (let i = 0; i < 5; i += 1) {
      const { locks } = lab.open();
      await expect(locks.withLock(newKey(), () => 'in')).resolves.toBe('in');
    }
  });

  it('of many callers at once too, in the order in which they came', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const order: number[] = [];
    await Promise.all(Array.from({ length: 50 }, (_, i) => locks.withLock(key, () => order.push(i))));
    expect(order).toEqual([...order].sort((a, b) => a - b));
    expect(order).toHaveLength(50);
  });

  it('to a Redis that starts within the command time-out is carried out', async () => {
    const proxy = await lab.proxy();
    proxy.refuse();
    const { locks } = lab.open({ commandTimeoutMs: 3_000 }, proxy.url);
    const wait = locks.acquire(newKey());
    await until(() => true);
    await proxy.restore();
    expect(await (await wait).release()).toBe('released');
  });

  it('to nobody ends as a store failure after the command time-out, and says that nothing was done', async () => {
    await using opened = openLocks(`redis://127.0.0.1:${await freePort()}`, {
      commandTimeoutMs: COMMAND_TIMEOUT_MS,
      waitMs: 60_000,
    });
    const startedAt = performance.now();
    const failure: unknown = await opened.locks.acquire('k').catch((error: unknown) => error);
    expect(failure).toBeInstanceOf(LockStoreError);
    expect(failure).toMatchObject({ outcome: 'not-executed', code: 'LOCK_STORE_FAILED' });
    expect((failure as Error).cause).toMatchObject({ code: 'ECONNREFUSED' });
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });
});

describe('pitfall 15: a blocked event loop', () => {
  it.each([
    ['in the same tick', () => Promise.resolve()],
    ['after the command was sent', () => new Promise((resolve) => setImmediate(resolve))],
  ])('longer than the command time-out is no store failure: blocked %s', async (_when, before) => {
    const { locks, events, log } = lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS });
    await locks.ping();
    const attempts = Array.from({ length: 5 }, () => locks.acquire(newKey()));
    await before();
    block(COMMAND_TIMEOUT_MS * 2.5);
    const leases = await Promise.all(attempts);
    expect(leases.every((lease) => !lease.lost)).toBe(true);
    expect(events('store-down')).toEqual([]);
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(leases.map(() => 'released'));
    expect(log).toEqual([]);
  });

  it('does not cut the connections: nobody has to connect again', async () => {
    const { locks } = lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS });
    await locks.ping();
    const connected = async () => /total_connections_received:(\d+)/.exec(await lab.admin.info('stats'))![1];
    const before = await connected();
    for (let i = 0; i < 3; i += 1) {
      const lease = locks.acquire(newKey());
      block(COMMAND_TIMEOUT_MS * 1.5);
      await (await lease).release();
    }
    expect(await connected()).toBe(before);
  });
});

describe.each([
  ['is stopped (SIGSTOP)', true],
  ['is killed', false],
])('pitfall 15: Redis %s', (_what, stops) => {
  let server: RedisServer;

  const withServer = async (test: (opened: OpenLocks) => Promise<void>): Promise<void> => {
    server = await RedisServer.start();
    const opened = openLocks(server.url, { commandTimeoutMs: COMMAND_TIMEOUT_MS, waitMs: 30_000 });
    try {
      await opened.locks.ping();
      await test(opened);
    } finally {
      if (stops && server.isRunning) await server.kill('SIGCONT');
      await opened.close();
      await server.stop();
    }
  };

  const takeDown = () => server.kill(stops ? 'SIGSTOP' : 'SIGKILL');
  const bringBack = () => (stops ? server.kill('SIGCONT') : server.restart());

  it('all callers hear of the store, none hears "taken": the head and the 99 behind it', () =>
    withServer(async ({ locks, events }) => {
      await takeDown();
      const waits = [0, 1, 50, 300, 30_000];
      const reasons = await reasonsOf(
        Array.from({ length: 100 }, (_, i) => locks.acquire('k', { waitMs: waits[i % waits.length]! })),
      );
      expectStoreFailures(reasons);
      expect(events('store-down')).toHaveLength(1);
      expect(events('busy')).toEqual([]);
      expect(locks.usage).toMatchObject({ leases: 0, keys: 0 });
    }));

  it('tryAcquire throws, alone and behind somebody whose question is unanswered: never null', () =>
    withServer(async ({ locks }) => {
      await takeDown();
      expectStoreFailures(
        await reasonsOf([
          locks.tryAcquire('k'),
          locks.tryAcquire('k'),
          locks.tryAcquire('k', { waitMs: 50 }),
        ]),
      );
      const head = locks.acquire('l');
      await until(() => locks.usage.keys > 0);
      expectStoreFailures(await reasonsOf([locks.tryAcquire('l'), head]));
    }));

  it('waitMs 0 ends with the command time-out, as a store failure', () =>
    withServer(async ({ locks }) => {
      await takeDown();
      const startedAt = performance.now();
      expectStoreFailures(await reasonsOf([locks.acquire('k', { waitMs: 0 })]));
      const tookMs = performance.now() - startedAt;
      if (stops) expect(tookMs).toBeGreaterThanOrEqual(COMMAND_TIMEOUT_MS - 1);
      expect(tookMs).toBeLessThan(COMMAND_TIMEOUT_MS + 5_000);
    }));

  it('everything works again when it is back', () =>
    withServer(async ({ locks, events }) => {
      await takeDown();
      expectStoreFailures(await reasonsOf([locks.acquire('k')]));
      await bringBack();
      await until(() => locks.ping().then(() => true), { what: 'it answers again' });
      await expect(locks.withLock('k', () => 'in')).resolves.toBe('in');
      expect(events('store-up')).toHaveLength(1);
      await until(() => locks.usage.undoing === 0);
    }));

  it('who holds a lock keeps it through a short outage, and inspect and ping say what is wrong', () =>
    withServer(async ({ locks, events }) => {
      // A Redis that is killed loses everything: then the lock is lost, and that is said.
      const lease = await locks.acquire('k');
      await takeDown();
      expectStoreFailures(await reasonsOf([locks.inspect('k'), locks.ping()]));
      await bringBack();
      await until(() => locks.ping().then(() => true), { what: 'it answers again' });
      expect(await lease.release()).toBe(stops ? 'released' : 'lost');
      expect(events('lost')).toHaveLength(stops ? 0 : 1);
    }));
});

describe('pitfall 15: whoever is really kept waiting by another holder', () => {
  it('hears "taken", also when the last question was a while ago', async () => {
    const [holder, other] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const reasons = await reasonsOf([
      other.locks.acquire(key, { waitMs: 300 }),
      other.locks.acquire(key, { waitMs: 0 }),
      other.locks.acquire(key, { waitMs: 100 }),
    ]);
    for (const reason of reasons) expect(reason).toBeInstanceOf(LockNotAcquiredError);
    expect(await other.locks.tryAcquire(key)).toBeNull();
    await lease.release();
  });

  it('hears of the store when that goes away during the wait', async () => {
    const proxy: TcpProxy = await lab.proxy();
    const [holder, other] = [lab.open(), lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS }, proxy.url)];
    const key = newKey();
    const lease = await holder.locks.acquire(key);
    const waiting = [1, 2, 3].map(() => other.locks.acquire(key, { waitMs: 20_000 }));
    await lab.waiting(key);
    proxy.refuse();
    proxy.cut();
    expectStoreFailures(await reasonsOf(waiting));
    expect(await lab.admin.exists(holdName(key))).toBe(1);
    await lease.release();
  });
});
