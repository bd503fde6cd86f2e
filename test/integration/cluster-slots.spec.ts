import { describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import { PATIENCE_MS, TEST_MS, useCluster } from '../support/redis/cluster-lab.js';
import { holdName, newKey } from '../support/redis/lab.js';
import { ManualClock } from '../support/redis/manual-clock.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

failOnUnhandledRejections();

const lab = useCluster({ replicas: false });

describe('a slot that moves to another server', { timeout: TEST_MS }, () => {
  it('keeps its holder, which renews and releases on the new server', async () => {
    const [a, b] = [lab.open(), lab.open()];
    const lease = await a.locks.acquire(newKey());
    await lab.redis.move(holdName(lease.key));
    expect(await b.locks.tryAcquire(lease.key)).toBeNull();
    await lease.extend(60_000);
    expect(await lease.verify()).toBe(true);
    expect(await lease.release()).toBe('released');
    expect(a.events('lost')).toEqual([]);
    await (await b.locks.acquire(lease.key)).release();
  });

  it.each([
    ['of a lock', {}],
    ['of a fair lock', { mode: 'fair' }],
    ['to write', { mode: 'write' }],
  ] as const)('keeps waiters %s, which are notified by the new server', async (_, options) => {
    const clock = new ManualClock();
    const [a, b] = [lab.open(), lab.open({}, undefined, clock.runtime('timeless'))];
    const lease = await a.locks.acquire(newKey(), options);
    const waiting = b.locks.acquire(lease.key, { waitMs: PATIENCE_MS, ...options });
    await lab.waiting(a, lease.key, 1);
    const name = holdName(lease.key);
    await lab.redis.move(name);
    // The old server of the slot ends the subscription. The store subscribes again on the new one.
    const server = await lab.redis.masterOf(name);
    await until(async () => ((await server.cli('PUBSUB', 'SHARDCHANNELS')) as string[]).length > 0);
    expect(await lease.release()).toBe('released');
    await (await waiting).release();
  });

  it('is asked for again while its keys are on either server, and locks go on when it has moved', async () => {
    const [a, b] = [lab.open(), lab.open({ commandTimeoutMs: 20_000 })];
    const key = newKey();
    const name = holdName(key);
    const lease = await a.locks.acquire(key);
    const [from, to] = [await lab.redis.masterOf(name), await lab.redis.otherThan(name)];
    await from.cli('CONFIG', 'RESETSTAT');
    await lab.redis.beginMove(name, from, to);
    // The hold is there, and what the script asks for beside it is not: TRYAGAIN.
    const requested = b.locks.tryAcquire(key);
    await until(async () => /TRYAGAIN:count=[1-9]/.test(await from.text('INFO', 'errorstats')));
    await lab.redis.moveKeys(name, from, to);
    await lab.redis.endMove(name, to);
    expect(await requested).toBeNull();
    expect(await lease.release()).toBe('released');
  });

  it('is asked at the server that gets it, when that has all there is of a key: ASK', async () => {
    const a = lab.open();
    const semaphore = a.locks.semaphore(newKey());
    await semaphore.trySetPermits(3);
    const name = holdName(semaphore.key);
    const [from, to] = [await lab.redis.masterOf(name), await lab.redis.otherThan(name)];
    await from.cli('CONFIG', 'RESETSTAT');
    await lab.redis.beginMove(name, from, to);
    await lab.redis.moveKeys(name, from, to);
    expect(await semaphore.availablePermits()).toBe(3);
    await lab.redis.endMove(name, to);
    expect(await semaphore.availablePermits()).toBe(3);
  });

  it('is released to while its keys are on either server, as soon as they are together', async () => {
    const [a, b] = [lab.open({ commandTimeoutMs: 20_000 }), lab.open()];
    const lease = await a.locks.acquire(newKey());
    const name = holdName(lease.key);
    const waiting = b.locks.acquire(lease.key, { waitMs: PATIENCE_MS });
    await lab.waiting(a, lease.key, 1);
    const [from, to] = [await lab.redis.masterOf(name), await lab.redis.otherThan(name)];
    await from.cli('CONFIG', 'RESETSTAT');
    await lab.redis.beginMove(name, from, to);
    const queueKeys = (await lab.redis.keysAt(name, from)).filter((key) => key.includes(':queue:'));
    expect(queueKeys).toHaveLength(1);
    await lab.redis.moveKeys(name, from, to, { only: queueKeys });
    let isReleased = false;
    const release = lease.release().then((how) => {
      isReleased = true;
      return how;
    });
    await until(async () => /TRYAGAIN:count=[1-9]/.test(await from.text('INFO', 'errorstats')));
    expect(isReleased).toBe(false);
    await lab.redis.moveKeys(name, from, to);
    await lab.redis.endMove(name, to);
    expect(await release).toBe('released');
    await (await waiting).release();
  });

  it('is released at its new server, and a waiter gets the lock after the move', async () => {
    const [a, b] = [lab.open(), lab.open()];
    const lease = await a.locks.acquire(newKey());
    const name = holdName(lease.key);
    const waiting = b.locks.acquire(lease.key, { waitMs: PATIENCE_MS });
    await lab.waiting(a, lease.key, 1);
    const [from, to] = [await lab.redis.masterOf(name), await lab.redis.otherThan(name)];
    await from.cli('CONFIG', 'RESETSTAT');
    await lab.redis.beginMove(name, from, to);
    await lab.redis.moveKeys(name, from, to);
    expect(await lease.release()).toBe('released');
    expect(await from.text('INFO', 'errorstats')).toMatch(/ASK:count=[1-9]/);
    await lab.redis.endMove(name, to);
    await (await waiting).release();
    expect(b.events('lost')).toEqual([]);
  });

  it('loses nothing under load: ten slots move while two services count', async () => {
    const services = [lab.open({ commandTimeoutMs: 20_000 }), lab.open({ commandTimeoutMs: 20_000 })];
    const keys = Array.from({ length: 5 }, () => newKey());
    const counts = new Map(keys.map((key) => [key, 0]));
    const inside = new Set<string>();
    let overlaps = 0;
    let isOver = false;
    const work = async (service: (typeof services)[number], key: string): Promise<void> => {
      while (!isOver) {
        await service.locks.withLock(key, { waitMs: PATIENCE_MS }, async () => {
          if (inside.has(key)) overlaps += 1;
          inside.add(key);
          const before = counts.get(key)!;
          await new Promise((resolve) => setImmediate(resolve));
          counts.set(key, before + 1);
          inside.delete(key);
        });
      }
    };
    const done = Promise.all(services.flatMap((one) => keys.map((key) => work(one, key))));
    for (let round = 0; round < 2; round++) {
      for (const key of keys) await lab.redis.move(holdName(key));
    }
    await until(() => keys.every((key) => counts.get(key)! > 10), { timeoutMs: PATIENCE_MS });
    isOver = true;
    await done;
    expect(overlaps).toBe(0);
  });
});
