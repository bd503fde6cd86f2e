import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { casesBeside, LOAD_MS, roundsFor, VERSIONS } from './extent.js';
import { OLDER_REDISSON } from '../support/redisson/redisson-build.js';
import type { Redisson } from '../support/redisson/redisson.js';
import { Sides, type Contender } from './sides.js';

/** Longer than a wake-up takes: a waiter that came by a time-out is noticed. */
const WATCHDOG_MS = 3_000;
/** Less than the second after which a waiter looks by itself. */
const PROMPT_MS = 900;
/** The median of wake-ups stays under it. */
const MEDIAN_MS = 100;
const WAKE_UPS = 15;

let names = 0;
const newName = (): string => `stock-${(names += 1)}`;
/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

describe.each(VERSIONS)('an RReadWriteLock of Redisson %s and a read-write lock', (version) => {
  const also = casesBeside(version);
  let sides: Sides;
  let java: Redisson;
  let admin: Redis;
  let locks: OpenLocks['locks'];
  let other: OpenLocks['locks'];
  const opened: OpenLocks[] = [];

  beforeAll(async () => {
    sides = await Sides.start();
    java = await sides.java({ version, watchdogMs: WATCHDOG_MS });
    admin = sides.admin();
    for (let i = 0; i < 2; i += 1) {
      opened.push(sides.open({ keyPrefix: '', waitMs: 20_000, watchdogMs: WATCHDOG_MS }));
    }
    [locks, other] = opened.map((one) => one.locks) as [OpenLocks['locks'], OpenLocks['locks']];
  });
  afterAll(async () => {
    for (const one of opened) await one.close();
    admin.disconnect();
    await sides[Symbol.asyncDispose]();
  });

  const channelOf = (name: string): string =>
    name.includes('{') ? `redisson_rwlock:${name}` : `redisson_rwlock:{${name}}`;
  const listeners = async (name: string): Promise<number> => sides.listeners(channelOf(name));
  const listening = (name: string, count: number): Promise<unknown> =>
    until(async () => (await listeners(name)) >= count, {
      what: `${count} listen for the end of ${name}`,
    });

  /**
   * A thread of Java listens before it sleeps. The end of a writer wakes sleeping threads. A thread that is about to
   * sleep misses it, with a writer of Java as well.
   */
  const javaWaits = async (name: string, count: number): Promise<void> => {
    await listening(name, count);
    await java.asleep();
  };

  it(
    'exclude each other under load: no write is lost, and none happens while a reader reads',
    async () => {
      const name = newName();
      const counter = `counter-of-${name}`;
      const processes: Contender[] = [await sides.node(), await sides.node()];
      const [writers, readers] = [3, 4];
      const rounds = roundsFor(3 * writers);
      for (const one of processes) {
        one.send({ type: 'count', key: name, counter, callers: writers, rounds, mode: 'write' });
        one.send({ type: 'compare', key: name, counter, callers: readers, rounds });
      }
      const on = { name, counter, rounds };
      const [, seen, ...compared] = await Promise.all([
        java.send('count', { ...on, kind: 'write', threads: writers, thread: 'writers' }),
        java.send('compare', { ...on, kind: 'read', threads: readers, thread: 'readers' }),
        ...processes.map((one) => one.next('compared', { timeoutMs: LOAD_MS })),
        ...processes.map((one) => one.next('counted', { timeoutMs: LOAD_MS })),
      ]);
      expect(Number(await admin.get(counter))).toBe(3 * writers * rounds);
      expect(seen).toEqual(Array.from({ length: readers }, () => 0));
      for (const one of compared) if ('changed' in one) expect(one.changed).toBe(0);
      for (const one of processes) await one.finish();
      expect(await sides.exists(name)).toBe(0);
    },
    2 * LOAD_MS,
  );

  also(
    'are shared by readers of both sides, and a release of one side ends no reader of the other',
    async () => {
      const name = newName();
      const [read, write] = [
        { name, kind: 'read' },
        { name, kind: 'write' },
      ] as const;
      const first = await locks.acquire(name, { mode: 'read' });
      expect(await java.send('tryLock', read)).toBe(true);
      const second = await other.acquire(name, { mode: 'read', waitMs: 0 });
      expect(await java.send('tryLock', { ...write, thread: 'writer' })).toBe(false);
      expect((await locks.inspect(name))?.holders).toHaveLength(3);
      await java.send('unlock', read);
      expect([await first.verify(), await second.verify()]).toEqual([true, true]);
      expect(await java.send('tryLock', read)).toBe(true);
      await first.release();
      await second.release();
      expect(await java.send('isLocked', read)).toBe(true);
      expect(await locks.tryAcquire(name, { mode: 'write' })).toBeNull();
      expect(await locks.tryAcquire(name)).toBeNull();
      await java.send('unlock', read);
      expect(await sides.exists(name)).toBe(0);
    },
  );

  also(
    'wake each other: readers wait for writers of the other side, and writers for readers, and not for a time-out',
    async () => {
      const [toNode, toJava]: [number[], number[]] = [[], []];
      for (let i = 0; i < WAKE_UPS; i += 1) {
        const name = newName();
        const [held, wanted] = (i % 2 ? ['read', 'write'] : ['write', 'read']) as ['read', 'write'];
        await java.send('lock', { name, kind: held });
        const acquired = locks.acquire(name, { mode: wanted }).then((lease) => ({ lease, at: now() }));
        await listening(name, 1);
        const unlockedAt = await java.send('unlock', { name, kind: held });
        const { lease, at } = await acquired;
        toNode.push(at - unlockedAt);
        // A writer that has waited goes on listening, a reader does not.
        const listens = wanted === 'write' ? 1 : 0;
        await until(async () => (await listeners(name)) === listens);
        const locked = java.send('lock', { name, kind: held });
        await javaWaits(name, listens + 1);
        const releasedAt = now();
        expect(await lease.release()).toBe('released');
        toJava.push((await locked) - releasedAt);
        await java.send('unlock', { name, kind: held });
      }
      const worst = `to Node ${median(toNode).toFixed(1)} ms, at most ${Math.max(...toNode).toFixed(1)}; to Java ${median(toJava).toFixed(1)}, at most ${Math.max(...toJava).toFixed(1)}`;
      console.log(`Redisson ${version}, read-write, wake-ups: ${worst}`);
      for (const ms of [...toNode, ...toJava]) expect(ms).toBeLessThan(WATCHDOG_MS / 2);
      expect(median(toNode)).toBeLessThan(MEDIAN_MS);
      expect(median(toJava)).toBeLessThan(MEDIAN_MS);
    },
  );

  also.each(['read', 'write'] as const)('see each other’s renewals of a %s lock', async (mode) => {
    const name = newName();
    const lease = await locks.acquire(name, { mode });
    const endsAt = now() + WATCHDOG_MS;
    await until(() => now() > endsAt + PROMPT_MS, { what: 'the first lease would be over' });
    expect(await java.send('tryLock', { name, kind: 'write' })).toBe(false);
    expect(await lease.release()).toBe('released');
    await java.send('lock', { name, kind: mode });
    const endsThere = now() + WATCHDOG_MS;
    await until(() => now() > endsThere + PROMPT_MS, { what: 'the first lease would be over' });
    expect(await locks.tryAcquire(name, { mode: 'write' })).toBeNull();
    await java.send('unlock', { name, kind: mode });
  });

  also(
    'keep what each other’s readers have: beside a renewed reader of Java a reader here is renewed too',
    async () => {
      const name = newName();
      await java.send('lock', { name, kind: 'read' });
      const lease = await locks.acquire(name, { mode: 'read' });
      const endsAt = now() + WATCHDOG_MS + PROMPT_MS;
      await until(() => now() > endsAt);
      await java.send('unlock', { name, kind: 'read' });
      expect(await lease.verify()).toBe(true);
      expect(await java.send('tryLock', { name, kind: 'write' })).toBe(false);
      expect(await lease.release()).toBe('released');
    },
  );

  also('outlive a Java reader that is killed: a writer here goes in when its lease is over', async () => {
    const name = newName();
    const victim = await sides.java({ watchdogMs: WATCHDOG_MS });
    await victim.send('lock', { name, kind: 'read' });
    const acquired = locks.acquire(name, { mode: 'write' });
    await listening(name, 1);
    await victim.kill();
    const leftMs = await admin.pttl(name);
    const killedAt = now();
    await (await acquired).release();
    expect(now() - killedAt).toBeGreaterThan(leftMs - 50);
    expect(now() - killedAt).toBeLessThan(leftMs + PROMPT_MS);
  });

  also('outlive a Node reader that is killed: a writer there goes in when its lease is over', async () => {
    const name = newName();
    const victim = await sides.node({ watchdogMs: WATCHDOG_MS, keyPrefix: '' });
    victim.send({ type: 'hold', key: name, mode: 'read' });
    await victim.next('holding');
    const locked = java.send('lock', { name, kind: 'write' });
    await listening(name, 1);
    await victim.kill('SIGKILL');
    const leftMs = await admin.pttl(name);
    const killedAt = now();
    expect((await locked) - killedAt).toBeLessThan(leftMs + PROMPT_MS);
    await java.send('unlock', { name, kind: 'write' });
  });

  also('are downgraded by either side, and then shared with readers of the other side', async () => {
    const name = newName();
    const lease = await locks.acquire(name, { mode: 'write' });
    const locked = java.send('lock', { name, kind: 'read' });
    await javaWaits(name, 1);
    const downgradedAt = now();
    await lease.downgrade();
    expect((await locked) - downgradedAt).toBeLessThan(PROMPT_MS);
    expect(await lease.release()).toBe('released');
    await java.send('unlock', { name, kind: 'read' });
    await java.send('lock', { name, kind: 'write' });
    await java.send('lock', { name, kind: 'read' });
    await java.send('unlock', { name, kind: 'write' });
    const read = await locks.acquire(name, { mode: 'read', waitMs: 0 });
    await java.send('unlock', { name, kind: 'read' });
    expect(await read.verify()).toBe(true);
    await read.release();
    expect(await sides.exists(name)).toBe(0);
  });

  also(
    'are released by a forced unlock of either side, and the holder of the other side notices',
    async () => {
      for (const mode of ['read', 'write'] as const) {
        const name = newName();
        const lease = await locks.acquire(name, { mode });
        expect(await java.send('forceUnlock', { name, kind: mode })).toBe(true);
        expect(await lease.release()).toBe('lost');
        await java.send('lock', { name, kind: mode, thread: mode });
        expect((await locks.inspect(name))?.kind).toBe(mode);
        expect(await locks.forceUnlock(name)).toBe(true);
        expect(await java.send('isLocked', { name, kind: mode })).toBe(false);
        const unlocked = java.send('unlock', { name, kind: mode, thread: mode });
        // The older one says nothing to a thread that unlocks what it has not got any more.
        if (version === OLDER_REDISSON) await unlocked;
        else await expect(unlocked).rejects.toThrow('IllegalMonitorState');
      }
    },
  );

  also.each([
    ['braces', 'stock:{7}:left'],
    ['Unicode', 'Lager – 在庫 😀'],
    ['2,000 characters', 'x'.repeat(2_000)],
  ])('share names with %s', async (_, name) => {
    const lease = await locks.acquire(name, { mode: 'write' });
    const locked = java.send('lock', { name, kind: 'read' });
    await javaWaits(name, 1);
    await lease.release();
    await locked;
    const read = await locks.acquire(name, { mode: 'read', waitMs: 0 });
    await java.send('unlock', { name, kind: 'read' });
    expect(await read.release()).toBe('released');
    expect(await sides.exists(name)).toBe(0);
  });

  also('count how often a thread of Java has entered, and are free when it has left as often', async () => {
    const name = newName();
    const thread = { name, kind: 'read' } as const;
    for (let i = 0; i < 3; i += 1) await java.send('lock', thread);
    expect((await locks.inspect(name))?.holders).toMatchObject([{ count: 3 }]);
    const lease = await locks.acquire(name, { mode: 'read' });
    for (let i = 0; i < 3; i += 1) {
      expect(await java.send('isLocked', thread)).toBe(true);
      await java.send('unlock', thread);
      expect(await lease.verify()).toBe(true);
    }
    await lease.release();
    expect(await sides.exists(name)).toBe(0);
  });

  it('leave nothing in the log of Redisson that comes from us', () => {
    expect(java.log).not.toMatch(/ (WARN|ERROR) /);
  });
});
