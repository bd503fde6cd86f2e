import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { Semaphore } from '../../lib/core/objects/semaphore.js';
import { until } from '../support/async.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { casesBeside, LOAD_MS, roundsFor, VERSIONS } from './extent.js';
import type { Redisson } from '../support/redisson/redisson.js';
import { nodeShares } from './sharing.js';
import { Sides } from './sides.js';

/** The median of wake-ups stays under it. */
const MEDIAN_MS = 100;
const WAKE_UPS = 15;
/** Far longer than a wake-up takes: a waiter that came by a time-out is noticed. */
const WAIT_MS = 20_000;

let names = 0;
/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;
const takes = (semaphore: Semaphore) => async () => {
  await semaphore.acquire();
  return () => semaphore.release();
};

describe.each(VERSIONS)('an RSemaphore of Redisson %s and a semaphore', (version) => {
  const also = casesBeside(version);
  let sides: Sides;
  let java: Redisson;
  let admin: Redis;
  const opened: OpenLocks[] = [];
  const newName = (name = 'pool'): string => `${name}-${(names += 1)}`;
  const open = (): OpenLocks['locks'] => {
    const one = sides.open({ keyPrefix: '', waitMs: WAIT_MS });
    opened.push(one);
    return one.locks;
  };
  let locks: OpenLocks['locks'];
  let other: OpenLocks['locks'];

  beforeAll(async () => {
    sides = await Sides.start();
    java = await sides.java({ version });
    admin = sides.admin();
    [locks, other] = [open(), open()];
  });
  afterAll(async () => {
    for (const one of opened) await one.close();
    admin.disconnect();
    await sides[Symbol.asyncDispose]();
  });

  const channelOf = (name: string): string =>
    name.includes('{') ? `redisson_sc:${name}` : `redisson_sc:{${name}}`;
  const listening = (name: string, count = 1): Promise<unknown> =>
    until(async () => (await sides.listeners(channelOf(name))) === count, {
      what: `${count} listen for permits of ${name}`,
    });

  it(
    'admit no more Java threads and Node callers at once than there are permits',
    async () => {
      const name = newName();
      const counter = `inside-${name}`;
      const [permits, threads, callers] = [3, 6, 6];
      const rounds = roundsFor(threads + 2 * callers);
      expect(await java.semaphore('trySetPermits', { name, permits })).toBe(true);
      const [theirs, ...ours] = await Promise.all([
        java.semaphore('share', { name, counter, threads, rounds }),
        nodeShares(takes(locks.semaphore(name)), admin, { counter, callers, rounds }),
        nodeShares(takes(other.semaphore(name)), admin, { counter, callers, rounds }),
      ]);
      expect(Math.max(...theirs, ...ours.flat())).toBe(permits);
      expect(Number(await admin.get(counter))).toBe(0);
      expect(Number(await admin.get(name))).toBe(permits);
    },
    2 * LOAD_MS,
  );

  also('wake each other: who waits has its permits when the other side gives them back', async () => {
    const [toNode, toJava]: [number[], number[]] = [[], []];
    for (let i = 0; i < WAKE_UPS; i += 1) {
      const name = newName();
      const semaphore = locks.semaphore(name);
      await java.semaphore('trySetPermits', { name, permits: 1 });
      await java.semaphore('acquire', { name });
      const acquired = semaphore.acquire().then(now);
      await listening(name);
      const givenAt = await java.semaphore('release', { name });
      toNode.push((await acquired) - givenAt);
      await listening(name, 0);

      const got = java.semaphore('acquire', { name });
      await listening(name);
      const releasedAt = now();
      await semaphore.release();
      toJava.push((await got) - releasedAt);
    }
    console.log(
      `Redisson ${version}, wake-ups for permits: to Node ${median(toNode).toFixed(1)} ms, at most ${Math.max(...toNode).toFixed(1)}; to Java ${median(toJava).toFixed(1)}, at most ${Math.max(...toJava).toFixed(1)}`,
    );
    for (const ms of [...toNode, ...toJava]) expect(ms).toBeLessThan(WAIT_MS / 4);
    expect(median(toNode)).toBeLessThan(MEDIAN_MS);
    expect(median(toJava)).toBeLessThan(MEDIAN_MS);
  });

  also('wake each other when the number is set or raised', async () => {
    const byJava = newName();
    const acquired = locks.semaphore(byJava).acquire(2);
    await listening(byJava);
    await java.semaphore('trySetPermits', { name: byJava, permits: 1 });
    await java.semaphore('addPermits', { name: byJava, permits: 1 });
    await acquired;

    const byNode = newName();
    const got = java.semaphore('acquire', { name: byNode, permits: 2 });
    await listening(byNode);
    expect(await locks.semaphore(byNode).trySetPermits(1)).toBe(true);
    await locks.semaphore(byNode).addPermits(1);
    await got;
    expect(await admin.get(byNode)).toBe('0');
  });

  also('see the same numbers, whoever changes them', async () => {
    const name = newName();
    const semaphore = locks.semaphore(name);
    expect(await semaphore.trySetPermits(5)).toBe(true);
    expect(await java.semaphore('trySetPermits', { name, permits: 9 })).toBe(false);
    expect(await java.semaphore('tryAcquire', { name, permits: 2 })).toBe(true);
    expect(await semaphore.availablePermits()).toBe(3);
    expect(await semaphore.tryAcquire(4)).toBe(false);
    expect(await semaphore.tryAcquire(3)).toBe(true);
    expect(await java.semaphore('tryAcquire', { name, waitMs: 50 })).toBe(false);
    await semaphore.release(4);
    expect(await java.semaphore('drainPermits', { name })).toBe(4);
    await semaphore.addPermits(-2);
    expect(await java.semaphore('availablePermits', { name })).toBe(-2);
    await java.semaphore('release', { name, permits: 3 });
    expect(await semaphore.drainPermits()).toBe(1);
    expect(await java.semaphore('delete', { name })).toBe(true);
    expect(await semaphore.delete()).toBe(false);
    expect(await semaphore.availablePermits()).toBe(0);
  });

  also.each([
    ['braces', 'pool:{eu}'],
    ['Unicode', 'Größe 数 🔒'],
    ['2,000 characters', 'x'.repeat(1_995)],
  ])('have the same channel for a name with %s', async (_what, beginning) => {
    const name = newName(beginning);
    const acquired = locks.semaphore(name).acquire();
    await listening(name);
    await java.semaphore('release', { name });
    await acquired;
    const got = java.semaphore('acquire', { name });
    await listening(name);
    await locks.semaphore(name).release();
    await got;
  });

  also(
    'keep the permits of a Java process that is killed as taken, until somebody gives them back',
    async () => {
      const name = newName();
      const victim = await sides.java({ version });
      await victim.semaphore('trySetPermits', { name, permits: 1 });
      await victim.semaphore('acquire', { name });
      await victim.kill();
      expect(await locks.semaphore(name).tryAcquire()).toBe(false);
      await locks.semaphore(name).release();
      expect(await locks.semaphore(name).tryAcquire()).toBe(true);
    },
  );

  it('leave nothing in the log of Redisson that comes from us', () => {
    expect(java.log).not.toMatch(/ (WARN|ERROR) /);
  });
});
