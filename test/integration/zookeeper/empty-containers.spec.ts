import { afterEach, beforeAll, describe, expect, it } from 'vitest';
import { systemRuntime } from '../../../lib/core/util/runtime.js';
import { until } from '../../support/async.js';
import { newKey, pathOf, ZooKeeperLab } from '../../support/zookeeper/zookeeper-lab.js';

const LONG_MS = 60_000;

let lab: ZooKeeperLab;
beforeAll(async () => {
  lab = await ZooKeeperLab.start();
  return () => lab[Symbol.asyncDispose]();
});
afterEach(() => lab.reset());

/** A process whose clock can be set ahead. */
const open = (path?: (key: string) => string) => {
  const system = systemRuntime();
  let aheadMs = 0;
  const runtime = { ...system, now: () => system.now() + aheadMs };
  const { locks } = lab.open({ watchdogMs: LONG_MS, holderInfo: false }, { runtime, path });
  return { locks, wait: (ms: number) => void (aheadMs += ms) };
};

const gone = (path: string, name: string): Promise<unknown> =>
  until(async () => !(await lab.children(path)).includes(name), { what: `${name} is removed` });

describe('a container that a process has created', () => {
  it('is removed when it is empty, also those of permits', async () => {
    const { locks, wait } = open();
    const [lock, permits] = [newKey(), newKey()];
    await locks.withLock(lock, () => undefined);
    await locks.permits(permits, { permits: 1 }).withPermit(() => undefined);
    wait(10_000);
    for (const key of [lock, permits]) await gone('/locks', `lock:${key}`);
    expect(await locks.withLock(lock, () => 'ran')).toBe('ran');
  });

  it('stays while another process holds the lock or waits for it, and is removed after that', async () => {
    const [one, two, three] = [open(), open(), open()];
    const key = newKey();
    const first = await one.locks.acquire(key);
    const second = two.locks.acquire(key, { waitMs: 30_000 });
    await until(async () => (await lab.children(pathOf(key))).length === 2);
    const third = three.locks.acquire(key, { waitMs: 30_000 });
    await until(async () => (await lab.children(pathOf(key))).length === 3);
    await first.release();
    one.wait(10_000);
    const other = newKey();
    await one.locks.withLock(other, () => undefined);
    one.wait(10_000);
    // What is due later was removed, so the removal of the key was refused.
    await gone('/locks', `lock:${other}`);
    await (await second).release();
    await (await third).release();
    one.wait(20_000);
    await gone('/locks', `lock:${key}`);
  });

  it('is removed above the path of a key, too, and one of another client stays', async () => {
    await lab.createNode('/apps');
    const { locks, wait } = open((key) => `/apps/${key.replace(':', '/')}/own`);
    await locks.withLock('shop', () => undefined);
    wait(10_000);
    await gone('/apps', 'lock');
    expect(await lab.children('/')).toContain('apps');
  });
});
