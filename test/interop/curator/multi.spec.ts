import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LockService } from 'nest-redis-lock';
import type { Curator } from '../../support/curator/curator.js';
import { guardFolder } from '../../support/process-guard.js';
import { SCRATCH } from '../../support/scratch.js';
import { LOAD_MS, roundsFor } from '../extent.js';
import { counterIn, nodeCounts } from './contest.js';
import { CuratorSides, participants } from './sides.js';

/** A wait that has to be in vain. */
const SHORT_WAIT_MS = 200;
const PROMPT_MS = 1_000;

describe('an InterProcessMultiLock of Curator and several keys of one call', () => {
  let sides: CuratorSides;
  let java: Curator;
  let locks: LockService;
  let second: LockService;
  let names = 0;
  /** In the order in which Node acquires them: that of their names. */
  const newNames = (): [string, string] => {
    names += 1;
    return [`/multi/seat-${names}-a`, `/multi/seat-${names}-b`];
  };

  beforeAll(async () => {
    sides = await CuratorSides.start();
    java = await sides.java();
    [locks, second] = [sides.node().locks, sides.node().locks];
  });
  afterAll(() => sides[Symbol.asyncDispose]());

  it(
    'exclude each other under load: a counter that both increment loses no update',
    async () => {
      const folder = await mkdtemp(join(SCRATCH, 'nest-redis-lock-curator-'));
      guardFolder(folder);
      const [paths, file] = [newNames(), join(folder, 'counter')];
      const [threads, callers] = [3, 2];
      const rounds = roundsFor(threads + 2 * callers);
      await Promise.all([
        java.send('count', { kind: 'multi', paths, file, threads, rounds }),
        ...[locks, locks, second, second].map((one) =>
          // In the other order: the library sorts the keys.
          nodeCounts(one, { key: paths.toReversed(), file, rounds }),
        ),
      ]);
      expect(await counterIn(file)).toBe((threads + 2 * callers) * rounds);
    },
    2 * LOAD_MS,
  );

  it('acquire all or none: neither side keeps a key when another one is taken', async () => {
    const paths = newNames();
    const [first, last] = paths;
    const all = { kind: 'multi', paths } as const;
    const lease = await locks.acquire(last);
    expect(await java.send('tryLock', { ...all, waitMs: SHORT_WAIT_MS })).toBe(false);
    expect(await second.tryAcquire(paths, { waitMs: SHORT_WAIT_MS })).toBeNull();
    await participants(java, { name: first, count: 0 });
    await lease.release();
    expect(await java.send('tryLock', { ...all, waitMs: PROMPT_MS })).toBe(true);
    expect(await locks.tryAcquire(first)).toBeNull();
    expect(await locks.tryAcquire(paths)).toBeNull();
    await java.send('unlock', all);
    const both = await locks.acquire(paths);
    expect(both.keys).toEqual(paths);
    expect(await java.send('tryLock', { name: last, waitMs: SHORT_WAIT_MS })).toBe(false);
    expect(await both.release()).toBe('released');
  });
});
