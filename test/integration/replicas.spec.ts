import { LockStoreError } from 'nest-redis-lock';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { holdName, newKey, useLab } from '../support/redis/lab.js';
import type { LocksOptions, OpenLocks } from '../support/redis/open-locks.js';
import { REPLICATION, startReplica } from '../support/servers/redis-replicas.js';
import type { RedisServer } from '../support/servers/redis-server.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

const lab = useLab({ config: REPLICATION });
const PATIENCE_MS = 30_000;

describe('replicas: { min }', { timeout: 60_000 }, () => {
  let replica: RedisServer;

  beforeEach(async () => {
    replica = await startReplica(lab.server);
    return () => replica.stop();
  }, 60_000);
  afterEach(async () => {
    if (replica.isRunning) await replica.kill('SIGCONT');
  });

  const open = (options: LocksOptions = {}): OpenLocks =>
    lab.open({ replicas: { min: 1, timeoutMs: 500 }, commandTimeoutMs: 5_000, ...options });
  const hang = (): Promise<void> => replica.kill('SIGSTOP');
  const copied = (key: string): Promise<unknown> => replica.cli('EXISTS', holdName(key));

  it.each([
    ['exclusive', {}],
    ['fair', { mode: 'fair' }],
    ['read', { mode: 'read' }],
    ['write', { mode: 'write' }],
  ] as const)('gives an %s lock that a replica has', async (_, options) => {
    const { locks } = open();
    for (let i = 0; i < 10; i++) {
      const lease = await locks.acquire(newKey(), options);
      expect(await copied(lease.key)).toBe(1);
      await lease.release();
    }
  });

  it('gives a permit that a replica has', async () => {
    const lease = await open().locks.permits(newKey(), { permits: 2 }).acquire();
    expect(await copied(lease.key)).toBe(1);
    await lease.release();
  });

  it('gives a waiter a lock that a replica has, also when the release of the one before gave it', async () => {
    const [a, b] = [open(), open()];
    const key = newKey();
    for (let i = 0; i < 10; i++) {
      const lease = await a.locks.acquire(key);
      const waiting = b.locks.acquire(key, { waitMs: PATIENCE_MS });
      await lab.subscribed(key);
      const waits = (await lab.calls())['wait'] ?? 0;
      await lease.release();
      const next = await waiting;
      const owner = (await lab.hold(key))!.owner;
      expect(await replica.cli('HEXISTS', holdName(key), owner)).toBe(1);
      expect((await lab.calls())['wait']).toBe(waits + 1);
      await next.release();
    }
  });

  it.each([
    ['exclusive', {}],
    ['fair', { mode: 'fair' }],
    ['read', { mode: 'read' }],
    ['write', { mode: 'write' }],
  ] as const)('gives an %s lock back that no replica has, and says so', async (_, options) => {
    const opened = open();
    const { locks } = opened;
    await locks.ping();
    await hang();
    const key = newKey();
    let ran = false;
    const failure = await locks
      .withLock(key, options, () => void (ran = true))
      .catch((error: unknown) => error as LockStoreError);
    expect(failure).toBeInstanceOf(LockStoreError);
    expect(failure).toMatchObject({ outcome: 'unknown', key });
    expect(String((failure as LockStoreError).message)).toMatch(
      /1 replica has to acknowledge it, but 0 did within 500 ms/,
    );
    expect(ran).toBe(false);
    await lab.nothingLeft(opened);
    expect(opened.log).toEqual([expect.stringMatching(/does not work: 1 replica has to acknowledge it/)]);
    await replica.kill('SIGCONT');
    await until(() => locks.withLock(key, options, () => true), { what: 'a lock with the replica back' });
  });

  it('gives permits of a semaphore back that no replica knows of as taken', async () => {
    const { locks } = open();
    const semaphore = locks.semaphore(newKey());
    await semaphore.trySetPermits(3);
    await hang();
    const saysSo = {
      message: expect.stringMatching(/0 did within 500 ms; what was taken was given back\./),
      outcome: 'not-executed',
    };
    await expect(semaphore.acquire(2)).rejects.toMatchObject(saysSo);
    expect(await semaphore.availablePermits()).toBe(3);
    await expect(semaphore.drainPermits()).rejects.toMatchObject(saysSo);
    expect(await semaphore.availablePermits()).toBe(3);
  });

  it('does not count a renewal that no replica has: the lease ends in time', async () => {
    const opened = open({ watchdogMs: 1_500, commandTimeoutMs: 400, replicas: { min: 1, timeoutMs: 50 } });
    const lease = await opened.locks.acquire(newKey());
    await until(async () => ((await lab.calls())['wait'] ?? 0) >= 3, { what: 'renewals are waited for' });
    expect(lease.signal.aborted).toBe(false);
    await hang();
    await until(() => lease.signal.aborted, { what: 'the lease is over' });
    expect(opened.events('lost')).toMatchObject([{ key: lease.key, reason: 'expired' }]);
  });

  it('asks the replicas once for all locks of one tick', async () => {
    const { locks } = open();
    await locks.ping();
    const before = (await lab.calls())['wait'] ?? 0;
    const leases = await Promise.all(Array.from({ length: 100 }, () => locks.acquire(newKey())));
    expect(((await lab.calls())['wait'] ?? 0) - before).toBeLessThan(20);
    await Promise.all(leases.map((lease) => lease.release()));
  });

  it('warns at start of a server with fewer', async () => {
    const opened = lab.open({ replicas: { min: 2 } });
    expect(await opened.store.diagnose()).toEqual([
      expect.stringMatching(/replicas\.min is 2, but Redis has 1 replicas connected/),
    ]);
    expect(await open().store.diagnose()).toEqual([]);
  });
});
