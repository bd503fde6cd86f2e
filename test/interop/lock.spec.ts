import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { casesBeside, LOAD_MS, roundsFor, VERSIONS } from './extent.js';
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
const newName = (): string => `order-${(names += 1)}`;
/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();

describe.each(VERSIONS)('an RLock of Redisson %s and an exclusive lock', (version) => {
  const also = casesBeside(version);
  let sides: Sides;
  let java: Redisson;
  let admin: Redis;
  let locks: OpenLocks['locks'];
  let other: OpenLocks['locks'];
  const opened: OpenLocks[] = [];

  const open = (): OpenLocks['locks'] => {
    const options = { keyPrefix: '', waitMs: 20_000, watchdogMs: WATCHDOG_MS };
    const one = sides.open(options);
    opened.push(one);
    return one.locks;
  };

  beforeAll(async () => {
    sides = await Sides.start();
    java = await sides.java({ version, watchdogMs: WATCHDOG_MS });
    admin = sides.admin();
    locks = open();
    other = open();
  });
  afterAll(async () => {
    for (const one of opened) await one.close();
    admin.disconnect();
    await sides[Symbol.asyncDispose]();
  });

  const listeners = async (name: string): Promise<number> =>
    sides.listeners(`redisson_lock__channel:{${name}}`);
  const listening = (name: string, count: number): Promise<unknown> =>
    until(async () => (await listeners(name)) >= count, { what: `${count} listen for the end of ${name}` });

  const median = (values: number[]): number =>
    values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

  it(
    'exclude each other under load: a counter that both increment loses no update',
    async () => {
      const name = newName();
      const counter = `counter-of-${name}`;
      const processes: Contender[] = [await sides.node(), await sides.node()];
      const [threads, callers] = [6, 6];
      const rounds = roundsFor(threads + processes.length * callers);
      for (const one of processes) one.send({ type: 'count', key: name, counter, callers, rounds });
      await Promise.all([
        java.send('count', { name, counter, threads, rounds }),
        ...processes.map((one) => one.next('counted', { timeoutMs: LOAD_MS })),
      ]);
      expect(Number(await admin.get(counter))).toBe((threads + processes.length * callers) * rounds);
      for (const one of processes) await one.finish();
    },
    2 * LOAD_MS,
  );

  also(
    'wake each other: who waits has the lock when the other side releases it, not by a time-out',
    async () => {
      const [toNode, toJava]: [number[], number[]] = [[], []];
      for (let i = 0; i < WAKE_UPS; i += 1) {
        const name = newName();
        await java.send('lock', { name });
        const acquired = locks.acquire(name).then((lease) => ({ lease, at: now() }));
        await listening(name, 1);
        const unlockedAt = await java.send('unlock', { name });
        const { lease, at } = await acquired;
        toNode.push(at - unlockedAt);

        const locked = java.send('lock', { name });
        await listening(name, 2);
        const releasedAt = now();
        expect(await lease.release()).toBe('released');
        toJava.push((await locked) - releasedAt);
        await java.send('unlock', { name });
      }
      const took = `to Node ${median(toNode).toFixed(1)} ms, at most ${Math.max(...toNode).toFixed(1)}; to Java ${median(toJava).toFixed(1)}, at most ${Math.max(...toJava).toFixed(1)}`;
      console.log(`Redisson ${version}, wake-ups: ${took}`);
      for (const ms of [...toNode, ...toJava]) expect(ms).toBeLessThan(WATCHDOG_MS / 2);
      expect(median(toNode)).toBeLessThan(MEDIAN_MS);
      expect(median(toJava)).toBeLessThan(MEDIAN_MS);
    },
  );

  also('are served in turn where waiters of Node and a thread of Java wait', async () => {
    const name = newName();
    const lease = await locks.acquire(name);
    const ours = other.acquire(name).then(async (next) => {
      const at = now();
      await next.release();
      return { side: 'Node', at, endedAt: now() };
    });
    await listening(name, 1);
    const theirs = java.send('lock', { name }).then(async (at) => {
      return { side: 'Java', at, endedAt: await java.send('unlock', { name }) };
    });
    await listening(name, 2);
    const releasedAt = now();
    await lease.release();
    const [first, second] = (await Promise.all([ours, theirs])).sort((one, two) => one.at - two.at);
    expect(first.at - releasedAt).toBeLessThan(PROMPT_MS);
    expect(second.at - first.endedAt).toBeLessThan(PROMPT_MS);
    // A process that is queued in Redis lets a thread of Java pass. Without a queue both wake up, in any order.
    if (sides.hasQueue) expect([first.side, second.side]).toEqual(['Java', 'Node']);
  });

  also(
    'forced open by Java: the first in line has the lock at once, and the holder here is told',
    async () => {
      const name = newName();
      // A process that has waited for the lock hears what is said of it while it has it.
      await java.send('lock', { name });
      const acquired = locks.acquire(name);
      await listening(name, 1);
      await java.send('unlock', { name });
      const held = await acquired;
      const waiters = [other.acquire(name), locks.acquire(name), open().acquire(name)];
      const first = Promise.race(waiters.map(async (waiter) => ({ lease: await waiter, at: now() })));
      await listening(name, 2);
      const forcedAt = now();
      expect(await java.send('forceUnlock', { name })).toBe(true);
      const { at } = await first;
      expect(at - forcedAt).toBeLessThan(PROMPT_MS);
      await until(() => held.lost);
      expect(now() - forcedAt).toBeLessThan(PROMPT_MS);
      expect(await held.release()).toBe('lost');
      // Whichever of them is next in line.
      await Promise.all(waiters.map(async (waiter) => (await waiter).release()));
      expect(await sides.exists(name)).toBe(0);
    },
  );

  also(
    'forced open here: a thread of Java that waits has the lock at once, and who held it there hears so',
    async () => {
      const name = newName();
      await java.send('lock', { name, thread: 'holder' });
      const locked = java.send('lock', { name, thread: 'waiter' });
      await listening(name, 1);
      const forcedAt = now();
      expect(await locks.forceUnlock(name)).toBe(true);
      expect((await locked) - forcedAt).toBeLessThan(PROMPT_MS);
      await expect(java.send('unlock', { name, thread: 'holder' })).rejects.toThrow('IllegalMonitorState');
      await java.send('unlock', { name, thread: 'waiter' });
    },
  );

  also(
    'outlive a Java process that is killed: its hold ends with its lease, and who waits here goes in',
    async () => {
      const name = newName();
      const victim = await sides.java({ version, watchdogMs: WATCHDOG_MS });
      await victim.send('lock', { name });
      const acquired = locks.acquire(name);
      await listening(name, 1);
      await victim.kill();
      const leftMs = await admin.pttl(name);
      const killedAt = now();
      await (await acquired).release();
      const tookMs = now() - killedAt;
      expect(tookMs).toBeGreaterThan(leftMs - 50);
      expect(tookMs).toBeLessThan(leftMs + PROMPT_MS);
    },
  );

  also('outlive a Node process that is killed, in the lock or in line', async () => {
    const name = newName();
    const options = { watchdogMs: WATCHDOG_MS, keyPrefix: '' };
    const holder = await sides.node(options);
    const queueing = await sides.node(options);
    holder.send({ type: 'hold', key: name });
    await holder.next('holding');
    queueing.send({ type: 'hold', key: name });
    await listening(name, 1);
    const locked = java.send('lock', { name });
    await listening(name, 2);
    await queueing.kill('SIGKILL');
    await holder.kill('SIGKILL');
    const leftMs = await admin.pttl(name);
    const killedAt = now();
    expect((await locked) - killedAt).toBeLessThan(leftMs + PROMPT_MS);
    // The place of the dead one in the line does not keep anybody here out for longer than it lives.
    const acquired = locks.acquire(name);
    await java.send('unlock', { name });
    await (await acquired).release();
    expect(await sides.exists(name)).toBe(0);
  });

  it('leave nothing in the log of Redisson that comes from us', () => {
    expect(java.log).not.toMatch(/ (WARN|ERROR) /);
  });
});
