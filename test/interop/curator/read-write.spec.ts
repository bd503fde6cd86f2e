import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LockService } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import type { Curator } from '../../support/curator/curator.js';
import { guardFolder } from '../../support/process-guard.js';
import { SCRATCH } from '../../support/scratch.js';
import { LOAD_MS, roundsFor } from '../extent.js';
import { counterIn, median, nodeCompares, nodeCounts } from './contest.js';
import { CuratorSides, participants, watched } from './sides.js';

/** A wait of Java that has to be in vain. */
const SHORT_WAIT_MS = 200;
/** A wait that has to succeed. */
const LONG_WAIT_MS = 10_000;
const WAKE_UPS = 10;
const PROMPT_MS = 1_000;
/** The median of wake-ups stays under it. */
const MEDIAN_MS = 100;

/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();

describe('an InterProcessReadWriteLock of Curator and a read-write lock', () => {
  let sides: CuratorSides;
  let java: Curator;
  let locks: LockService;
  let second: LockService;
  let third: LockService;
  let names = 0;
  const newName = () => `/read-write/stock-${(names += 1)}`;

  beforeAll(async () => {
    sides = await CuratorSides.start();
    java = await sides.java();
    [locks, second, third] = [1, 2, 3].map(() => sides.node().locks) as [
      LockService,
      LockService,
      LockService,
    ];
  });
  afterAll(() => sides[Symbol.asyncDispose]());

  const javaIsRefused = async (name: string, ...kinds: readonly ('read' | 'write')[]) => {
    for (const kind of kinds) {
      const claim = { name, kind, thread: `refused ${kind}`, waitMs: SHORT_WAIT_MS };
      expect([kind, await java.send('tryLock', claim)]).toEqual([kind, false]);
    }
  };
  const waitersOf = async (name: string): Promise<string> => String((await locks.inspect(name))?.waiting);
  const nodeIsRefused = async (name: string, ...modes: readonly ('read' | 'write' | 'exclusive')[]) => {
    const before = await waitersOf(name);
    for (const mode of modes) {
      const options = mode === 'exclusive' ? {} : { mode };
      expect([mode, await third.tryAcquire(name, options)]).toEqual([mode, null]);
      expect([mode, await third.tryAcquire(name, { ...options, waitMs: 20 })]).toEqual([mode, null]);
      // A caller that gives up does not wait for the end of its node.
      await until(async () => (await waitersOf(name)) === before, { what: 'the refused caller has left' });
    }
  };

  it(
    'exclude each other under load: no write is lost, and none happens while a reader reads',
    async () => {
      const folder = await mkdtemp(join(SCRATCH, 'nest-redis-lock-curator-'));
      guardFolder(folder);
      const on = { key: newName(), file: join(folder, 'counter') };
      const [writers, readers] = [2, 2];
      const sessions = [locks, second];
      const all = writers * (sessions.length + 1);
      const rounds = roundsFor(2 * all);
      const inJava = { name: on.key, file: on.file, rounds };
      const [, seen, ...compared] = await Promise.all([
        java.send('count', { ...inJava, kind: 'write', threads: writers, thread: 'writers' }),
        java.send('compare', { ...inJava, kind: 'read', threads: readers, thread: 'readers' }),
        ...[...sessions, third].map((one) => nodeCompares(one, { ...on, rounds })),
        ...sessions.flatMap((one) =>
          Array.from({ length: writers }, () => nodeCounts(one, { ...on, rounds, mode: 'write' })),
        ),
      ]);
      expect(await counterIn(on.file)).toBe(all * rounds);
      expect(seen).toEqual([0, 0]);
      expect(compared.slice(0, 3)).toEqual([0, 0, 0]);
    },
    2 * LOAD_MS,
  );

  it('are shared by readers of both sides, and keep out writers of both', async () => {
    const name = newName();
    const read = { name, kind: 'read', waitMs: LONG_WAIT_MS } as const;
    const lease = await locks.acquire(name, { mode: 'read' });
    expect(await java.send('tryLock', read)).toBe(true);
    const other = await second.acquire(name, { mode: 'read', waitMs: 0 });
    await javaIsRefused(name, 'write');
    await nodeIsRefused(name, 'write', 'exclusive');
    expect(await locks.inspect(name)).toMatchObject({ kind: 'read', holders: { length: 3 }, waiting: [] });
    await participants(java, { name, kind: 'read', count: 3 });
    await participants(java, { name, kind: 'write', count: 0 });
    await java.send('unlock', read);
    expect([await lease.verify(), await other.verify()]).toEqual([true, true]);
    await lease.release();
    await javaIsRefused(name, 'write');
    await other.release();
    expect(await java.send('tryLock', { ...read, kind: 'write' })).toBe(true);
    await java.send('unlock', { name, kind: 'write' });
  });

  it('keep readers and writers of one side out while a writer of the other side holds', async () => {
    const name = newName();
    const lease = await locks.acquire(name, { mode: 'write' });
    await javaIsRefused(name, 'read', 'write');
    await lease.release();
    await java.send('lock', { name, kind: 'write' });
    await nodeIsRefused(name, 'read', 'write', 'exclusive');
    expect(await locks.inspect(name)).toMatchObject({ kind: 'write', holders: { length: 1 }, waiting: [] });
    await java.send('unlock', { name, kind: 'write' });
    expect(await locks.inspect(name)).toBeNull();
  });

  it('keep readers of Node behind a writer of Java that waits', async () => {
    const name = newName();
    const served: string[] = [];
    const first = await locks.acquire(name, { mode: 'read' });
    const writer = java.send('lock', { name, kind: 'write' });
    await participants(java, { name, count: 2 });
    await java.asleep();
    await nodeIsRefused(name, 'read');
    const reader = second.acquire(name, { mode: 'read' }).then((lease) => {
      served.push('reader');
      return lease;
    });
    await participants(java, { name, count: 3 });
    await first.release();
    await writer;
    served.push('writer');
    await nodeIsRefused(name, 'read');
    await java.send('unlock', { name, kind: 'write' });
    await (await reader).release();
    expect(served).toEqual(['writer', 'reader']);
  });

  it('keep readers of Java behind a writer of Node that waits', async () => {
    const name = newName();
    const served: string[] = [];
    await java.send('lock', { name, kind: 'read' });
    const writer = locks.acquire(name, { mode: 'write' });
    await participants(java, { name, count: 2 });
    await javaIsRefused(name, 'read');
    const reader = java
      .send('lock', { name, kind: 'read', thread: 'reader' })
      .then(() => served.push('reader'));
    await java.asleep('reader');
    await java.send('unlock', { name, kind: 'read' });
    const lease = await writer;
    served.push('writer');
    await javaIsRefused(name, 'read');
    await lease.release();
    await reader;
    await java.send('unlock', { name, kind: 'read', thread: 'reader' });
    expect(served).toEqual(['writer', 'reader']);
  });

  it('wake each other: readers wait for writers of the other side, and writers for readers', async () => {
    const [toNode, toJava]: [number[], number[]] = [[], []];
    for (let i = 0; i < WAKE_UPS; i += 1) {
      const name = newName();
      const [held, wanted] = (i % 2 ? ['read', 'write'] : ['write', 'read']) as ['read', 'write'];
      await java.send('lock', { name, kind: held });
      const acquired = locks.acquire(name, { mode: wanted }).then((lease) => ({ lease, at: now() }));
      await watched(sides.server, (await java.send('node', { name, kind: held }))!);
      const unlockedAt = await java.send('unlock', { name, kind: held });
      const { lease, at } = await acquired;
      toNode.push(at - unlockedAt);

      const locked = java.send('lock', { name, kind: held });
      await java.asleep();
      const releasedAt = now();
      expect(await lease.release()).toBe('released');
      toJava.push(((await locked) as number) - releasedAt);
      await java.send('unlock', { name, kind: held });
    }
    const took = [toNode, toJava].map(
      (ms) => `${median(ms).toFixed(1)} ms, at most ${Math.max(...ms).toFixed(1)}`,
    );
    console.log(`Curator, read-write, wake-ups: to Node ${took[0]}; to Java ${took[1]}`);
    for (const ms of [...toNode, ...toJava]) expect(ms).toBeLessThan(PROMPT_MS);
    expect(median(toNode)).toBeLessThan(MEDIAN_MS);
    expect(median(toJava)).toBeLessThan(MEDIAN_MS);
  });

  it('let readers of Java in when a writer of Node downgrades, and keep its writers out', async () => {
    const name = newName();
    const lease = await locks.acquire(name, { mode: 'write' });
    const read = java.send('lock', { name, kind: 'read' });
    await java.asleep();
    let isWriterIn = false;
    const write = java
      .send('lock', { name, kind: 'write', thread: 'writer' })
      .then(() => (isWriterIn = true));
    await java.asleep('writer');
    const downgradedAt = now();
    await lease.downgrade();
    expect(((await read) as number) - downgradedAt).toBeLessThan(PROMPT_MS);
    await participants(java, { name, kind: 'read', count: 2 });
    await participants(java, { name, kind: 'write', count: 1 });
    await java.send('unlock', { name, kind: 'read' });
    // The reader that was a writer holds still.
    await javaIsRefused(name, 'write');
    expect(isWriterIn).toBe(false);
    expect([await lease.verify(), lease.lost]).toEqual([true, false]);
    expect(await lease.release()).toBe('released');
    await write;
    await java.send('unlock', { name, kind: 'write', thread: 'writer' });
    expect(await locks.inspect(name)).toBeNull();
  });

  it('let readers of Node in when a writer of Java downgrades, and keep its writers out', async () => {
    const name = newName();
    await java.send('lock', { name, kind: 'write' });
    const read = locks.acquire(name, { mode: 'read' });
    await participants(java, { name, count: 2 });
    let isWriterIn = false;
    const write = second.acquire(name, { mode: 'write' }).then((lease) => {
      isWriterIn = true;
      return lease;
    });
    await participants(java, { name, count: 3 });
    // Java has both now: two nodes with one number.
    await java.send('lock', { name, kind: 'read' });
    await participants(java, { name, count: 4 });
    await nodeIsRefused(name, 'read', 'write');
    await java.send('unlock', { name, kind: 'write' });
    const lease = await read;
    await lease.release();
    expect(await java.send('isLocked', { name, kind: 'read' })).toBe(true);
    await nodeIsRefused(name, 'write', 'exclusive');
    expect(isWriterIn).toBe(false);
    await java.send('unlock', { name, kind: 'read' });
    await (await write).release();
    expect(await locks.inspect(name)).toBeNull();
  });

  it.each(['write', 'exclusive'] as const)(
    'keep out the next waiter of Node, which wants the %s lock, when a writer of Java downgrades',
    async (mode) => {
      const name = newName();
      await java.send('lock', { name, kind: 'write' });
      let isIn = false;
      const waiting = locks.acquire(name, mode === 'write' ? { mode } : {}).then((lease) => {
        isIn = true;
        return lease;
      });
      await watched(sides.server, (await java.send('node', { name, kind: 'write' }))!);
      await java.send('lock', { name, kind: 'read' });
      await java.send('unlock', { name, kind: 'write' });
      // It has seen that the node before its own was not the only one.
      await watched(sides.server, (await java.send('node', { name, kind: 'read' }))!);
      expect(isIn).toBe(false);
      await java.send('unlock', { name, kind: 'read' });
      await (await waiting).release();
    },
  );

  it('do not let a reader of either side in beside a mutex of the other one', async () => {
    const name = newName();
    await java.send('lock', { name });
    await nodeIsRefused(name, 'read', 'write', 'exclusive');
    const reader = locks.acquire(name, { mode: 'read' });
    await participants(java, { name, count: 2 });
    await watched(sides.server, (await java.send('node', { name }))!);
    await java.send('unlock', { name });
    await (await reader).release();
  });

  it('are no obstacle to a mutex of Java: Curator ignores the nodes of its other recipe, whichever side has them', async () => {
    const name = newName();
    await java.send('lock', { name, kind: 'write' });
    expect(await java.send('tryLock', { name, thread: 'mutex' })).toBe(true);
    await java.send('unlock', { name, thread: 'mutex' });
    await java.send('unlock', { name, kind: 'write' });
    const lease = await locks.acquire(name, { mode: 'write' });
    expect(await java.send('tryLock', { name })).toBe(true);
    expect(await java.send('tryLock', { name, kind: 'read', waitMs: SHORT_WAIT_MS, thread: 'reader' })).toBe(
      false,
    );
    await lease.release();
    // Its read-write locks ignore the nodes of mutexes, too.
    expect(await java.send('tryLock', { name, kind: 'write', thread: 'writer' })).toBe(true);
    await java.send('unlock', { name, kind: 'write', thread: 'writer' });
    await java.send('unlock', { name });
  });

  it('do not let a mutex of Node in beside readers of Java', async () => {
    const name = newName();
    await java.send('lock', { name, kind: 'read' });
    await java.send('lock', { name, kind: 'read', thread: 'other' });
    let isIn = false;
    const waiting = locks.acquire(name).then((lease) => {
      isIn = true;
      return lease;
    });
    await participants(java, { name, count: 3 });
    // The first one that goes is not the last one in the way.
    await java.send('unlock', { name, kind: 'read', thread: 'other' });
    await watched(sides.server, (await java.send('node', { name, kind: 'read' }))!);
    expect(isIn).toBe(false);
    await nodeIsRefused(name, 'exclusive');
    await java.send('unlock', { name, kind: 'read' });
    await (await waiting).release();
    expect(await locks.inspect(name)).toBeNull();
  });
});
