import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import { until } from '../../support/async.js';
import { newKey, ZooKeeperLab } from '../../support/zookeeper/zookeeper-lab.js';

/** A session that no pause of a test ends. */
const LONG_MS = 60_000;

describe('a holder in ZooKeeper that another client asks to release', () => {
  let lab: ZooKeeperLab;
  beforeAll(async () => {
    lab = await ZooKeeperLab.start();
    return () => lab[Symbol.asyncDispose]();
  });
  afterEach(() => lab.reset());

  const heardBy = (lease: Lease): string[] => {
    const heard: string[] = [];
    lease.onRevocationRequested(({ key }) => void heard.push(key));
    return heard;
  };
  /** A holder with a proxy before its server, and a client that may ask it. */
  const behindProxy = async () => {
    const proxy = await lab.proxy();
    const holder = lab.open({ watchdogMs: LONG_MS }, { connect: proxy.address });
    const key = newKey();
    return { proxy, holder, asker: lab.open(), key, lease: await holder.locks.acquire(key) };
  };
  const isHeard = (heard: readonly string[]): Promise<unknown> =>
    until(() => heard.length > 0, { what: 'the holder hears of the request' });
  const isWatched = (): Promise<unknown> =>
    until(async () => /Total watches:[1-9]/.test(await lab.server.command('wchs')), {
      what: 'the node of the hold is watched',
    });

  it('hears of it, whether its node is watched yet or not, and keeps its lock', async () => {
    const [holder, asker] = [lab.open(), lab.open()];
    for (const waits of [false, true]) {
      const key = newKey();
      const lease = await holder.locks.acquire(key);
      const heard = heardBy(lease);
      if (waits) await isWatched();
      expect(await asker.locks.revoke(key)).toBe(true);
      await isHeard(heard);
      expect([heard, lease.signal.aborted, await lease.verify()]).toEqual([[key], false, true]);
      expect(await lease.release()).toBe('released');
      expect(await asker.locks.revoke(key)).toBe(false);
    }
    await lab.nothingLeft(holder, asker);
  });

  it('hears of it when it becomes a reader meanwhile', async () => {
    const [holder, asker] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await holder.locks.acquire(key, { mode: 'write' });
    const heard = heardBy(lease);
    expect(await asker.locks.revoke(key)).toBe(true);
    await lease.downgrade();
    await isHeard(heard);
    expect(await lease.release()).toBe('released');
  });

  it('hears of it when the connection is lost as its node is looked at, and later replies were seen', async () => {
    const { proxy, holder, asker, key, lease } = await behindProxy();
    const heard = heardBy(lease);
    expect(await asker.locks.revoke(key)).toBe(true);
    const [node] = await lab.nodes(key);
    const cut = new Promise<void>((resolve) => {
      const stop = proxy.onData((_, direction, chunk) => {
        if (direction !== 'toServer' || !chunk.includes(node!)) return;
        stop();
        proxy.cut();
        resolve();
      });
    });
    await holder.locks.inspect(newKey());
    await cut;
    await isHeard(heard);
    expect(await lease.release()).toBe('released');
  });

  it('is each reader, and no caller that waits', async () => {
    const [one, two, waiting, asker] = [lab.open(), lab.open(), lab.open(), lab.open()];
    const key = newKey();
    const readers = [
      await one.locks.acquire(key, { mode: 'read' }),
      await two.locks.acquire(key, { mode: 'read' }),
    ];
    const asked: string[] = [];
    waiting.locks.on('revocation-requested', () => void asked.push(key));
    const writer = waiting.locks.acquire(key, { mode: 'write', waitMs: LONG_MS });
    await until(async () => (await lab.nodes(key)).length === 3, { what: 'the writer waits' });
    const heard = readers.map(heardBy);
    expect(await asker.locks.revoke(key)).toBe(true);
    for (const one of heard) await isHeard(one);
    for (const reader of readers) await reader.release();
    await (await writer).release();
    expect(asked).toEqual([]);
  });

  it('hears of it after a reconnect, when the request came in between', async () => {
    const { proxy, asker, key, lease } = await behindProxy();
    const heard = heardBy(lease);
    await isWatched();
    proxy.refuse();
    proxy.cut();
    expect(await asker.locks.revoke(key)).toBe(true);
    await proxy.restore();
    await isHeard(heard);
    expect(lease.lost).toBe(false);
    await lease.release();
  });

  it('is no holder of a permit: the request is refused by name', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const lease = await locks.permits(key, { permits: 2 }).acquire();
    await expect(locks.revoke(key)).rejects.toThrow('no revocation of permits');
    await expect(locks.revoke(key)).rejects.toBeInstanceOf(LockStoreError);
    await expect(locks.permits(key).inspect()).rejects.toThrow('keeps no number of permits');
    await expect(locks.permits(key).acquire()).rejects.toThrow('pass permits');
    await lease.release();
  });
});
