import { describe, expect, it } from 'vitest';
import { LockStoreError } from 'nest-redis-lock';
import { until } from '../support/async.js';
import type { ProxyConnection, TcpProxy } from '../support/tcp-proxy.js';
import { holdName, useLab, newKey } from '../support/redis/lab.js';

/** A user as an operator gives it to an app: everything a lock needs, but no say over connections. */
const LIMITED = 'limited on >limited ~* &* +@all -client|kill';

const COMMAND_TIMEOUT_MS = 300;

const lab = useLab({ users: [LIMITED] });

const as = (user: string | undefined, port: number): string =>
  user === undefined ? `redis://127.0.0.1:${port}` : `redis://${user}:${user}@127.0.0.1:${port}`;

/** Calls `fault` with the connection that carries the acquire of the key, just before that passes. Once. */
const atAcquire = (proxy: TcpProxy, key: string, fault: (connection: ProxyConnection) => void): void => {
  const stop = proxy.onData((connection, direction, chunk) => {
    if (direction !== 'toServer' || !chunk.includes(holdName(key)) || !/evalsha/i.test(chunk.toString()))
      return;
    stop();
    fault(connection);
  });
};

const open = async (user?: string) => {
  const proxy = await lab.proxy();
  const opened = lab.open({ commandTimeoutMs: COMMAND_TIMEOUT_MS, waitMs: 2_000 }, as(user, proxy.port));
  // Scripts may be on their way for longer than one command time-out.
  await until(() => opened.locks.ping().then(() => true), { what: 'the scripts are loaded' });
  return { proxy, ...opened };
};

/** Whether a release of the key was sent, on another connection than the one that its acquire is stuck in. */
const undone = (proxy: TcpProxy, key: string): boolean => proxy.find(holdName(key)).length > 1;

/** Resolves once Redis has read whatever was there for it to read. */
const served = async (): Promise<void> => {
  for (let i = 0; i < 3; i += 1) await lab.admin.ping();
};

const isFree = async (key: string): Promise<boolean> => (await lab.admin.exists(holdName(key))) === 0;

describe.each([
  ['who may kill connections', undefined],
  ['who may not', 'limited'],
])('an acquire without an answer, for a user %s', (_who, user) => {
  it('leaves a hold that is released long before its lease expires', async () => {
    const { locks, proxy } = await open(user);
    const key = newKey();
    atAcquire(proxy, key, (connection) => connection.swallowReplies());
    const unknown = { code: 'LOCK_STORE_FAILED', outcome: 'unknown', key };
    await expect(locks.acquire(key)).rejects.toMatchObject(unknown);
    await until(() => isFree(key), { timeoutMs: 5_000, what: 'the hold nobody owns is gone' });
    const lease = await locks.acquire(key, { waitMs: 0 });
    await lease.release();
  });

  it('whose bytes arrive after the undo leaves no ghost, and ends no other hold', async () => {
    const { locks, proxy } = await open(user);
    const key = newKey();
    let late: ProxyConnection | undefined;
    atAcquire(proxy, key, (connection) => {
      late = connection;
      connection.blackhole();
    });
    await expect(locks.acquire(key)).rejects.toMatchObject({ outcome: 'unknown' });
    // The undo travels on a new connection, and finds nothing. Only then the old bytes arrive.
    await until(() => undone(proxy, key), { what: 'an undo was sent' });
    await served();
    late!.restore();
    await until(() => !proxy.connections.includes(late!), {
      what: 'the old connection has delivered all it had',
    });
    await served();
    if (user === undefined) expect(await isFree(key), 'the old connection was dead').toBe(true);
    else await until(() => isFree(key), { timeoutMs: 5_000, what: 'the ghost is found and undone' });

    const other = lab.open();
    const lease = await other.locks.acquire(key, { waitMs: 0 });
    expect(await lease.release()).toBe('released');
  });
});

describe('an acquire without an answer', () => {
  it('the undo is final when the old connection is known dead: it is not repeated for a whole lease', async () => {
    const { locks, proxy } = await open();
    const key = newKey();
    atAcquire(proxy, key, (connection) => connection.blackhole());
    await expect(locks.acquire(key)).rejects.toBeInstanceOf(LockStoreError);
    await until(() => locks.usage.undoing === 0, { timeoutMs: 5_000, what: 'the undo is certain' });
  });

  it('by a user that may not kill the old connection is checked for a ghost until the lease bound', async () => {
    const { locks, proxy } = await open('limited');
    const key = newKey();
    atAcquire(proxy, key, (connection) => connection.blackhole());
    const startedAt = performance.now();
    await expect(locks.acquire(key, { waitMs: 0, leaseMs: 1_500 })).rejects.toBeInstanceOf(LockStoreError);
    await until(() => undone(proxy, key), { what: 'it looks' });
    expect(locks.usage.undoing).toBe(1);
    await until(() => locks.usage.undoing === 0, { timeoutMs: 5_000, what: 'it stops' });
    expect(performance.now() - startedAt).toBeGreaterThan(500);
  });

  it('all who wait behind it hear it, and a new caller is served', async () => {
    const { locks, proxy } = await open();
    const key = newKey();
    atAcquire(proxy, key, (connection) => connection.swallowReplies());
    const callers = await Promise.allSettled([1, 2, 3, 4].map(() => locks.acquire(key)));
    for (const caller of callers) {
      expect(caller.status).toBe('rejected');
      expect((caller as PromiseRejectedResult).reason).toBeInstanceOf(LockStoreError);
    }
    await locks.withLock(key, () => undefined);
    await until(() => Object.values(locks.usage).every((size) => size === 0));
  });

  it('no other connection is ended for it', async () => {
    const { locks, proxy } = await open();
    const key = newKey();
    const bystanders = [lab.open(), lab.open(), lab.open()];
    await Promise.all(bystanders.map(({ locks: other }) => other.ping()));
    const connected = async () =>
      Number(/total_connections_received:(\d+)/.exec(await lab.admin.info('stats'))![1]);
    atAcquire(proxy, key, (connection) => connection.blackhole());
    await expect(locks.acquire(key)).rejects.toBeInstanceOf(LockStoreError);
    const before = await connected();
    await until(() => locks.usage.undoing === 0);
    await Promise.all(bystanders.map(({ locks: other }) => other.ping()));
    expect(await connected(), 'nobody had to connect again but the one client').toBeLessThanOrEqual(
      before + 1,
    );
  });
});
