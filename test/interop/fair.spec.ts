import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { casesBeside, casesBesideNewest, LOAD_MS, roundsFor, VERSIONS } from './extent.js';
import type { Redisson } from '../support/redisson/redisson.js';
import { Sides, type Contender } from './sides.js';

/** Longer than a wake-up takes: a waiter that came by a time-out is noticed. */
const WATCHDOG_MS = 3_000;
/** Less than the second after which a waiter looks by itself. */
const PROMPT_MS = 900;
/** A queued waiter retries this often, in case a notification was missed. */
const LOOK_MS = 1_000;
/** Time to live of a queue entry of Node without a refresh. */
const NODE_ENTRY_MS = 5_000;
/** The median of wake-ups stays under it. */
const MEDIAN_MS = 100;
const WAKE_UPS = 12;
const kind = 'fair';
const fair = { mode: 'fair' } as const;

let names = 0;
const newName = (): string => `fair-${(names += 1)}`;
/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

describe.each(VERSIONS)('an RFairLock of Redisson %s and a fair lock', (version) => {
  const also = casesBeside(version);
  const besideNewest = casesBesideNewest(version);
  let sides: Sides;
  let java: Redisson;
  let admin: Redis;
  let locks: OpenLocks['locks'];
  let other: OpenLocks['locks'];
  const opened: OpenLocks[] = [];

  const open = (): OpenLocks['locks'] => {
    const one = sides.open({ keyPrefix: '', waitMs: 20_000, watchdogMs: WATCHDOG_MS });
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

  const inBraces = (name: string): string => (name.includes('{') ? name : `{${name}}`);
  const queue = (name: string): Promise<string[]> =>
    admin.lrange(`redisson_lock_queue:${inBraces(name)}`, 0, -1);
  const waiting = (name: string, count: number): Promise<unknown> =>
    until(async () => (await queue(name)).length === count, { what: `${count} wait for ${name}` });
  /** The owner that came last hears what is said to it. */
  const listening = async (name: string, count: number): Promise<void> => {
    await waiting(name, count);
    const owner = (await queue(name)).at(-1)!;
    const channel = `redisson_lock__channel:${inBraces(name)}:${owner}`;
    await until(async () => (await sides.listeners(channel)) > 0, {
      what: `${owner} listens`,
    });
  };
  const nothingIsLeft = async (name: string): Promise<void> => {
    const keys = [name, `redisson_lock_queue:${inBraces(name)}`, `redisson_lock_timeout:${inBraces(name)}`];
    expect(await sides.exists(...keys)).toBe(0);
  };

  also('are granted in the order of arrival, from either side', async () => {
    const name = newName();
    const holder = await locks.acquire(name, fair);
    const served: number[] = [];
    const callers: Promise<unknown>[] = [];
    for (let i = 0; i < 12; i += 1) {
      const thread = `waiter-${i}`;
      const kinds = [
        () => locks.withLock(name, fair, () => served.push(i)),
        async () => {
          await java.send('lock', { name, kind, thread });
          served.push(i);
          await java.send('unlock', { name, kind, thread });
        },
        () => other.withLock(name, fair, () => served.push(i)),
      ];
      callers.push(kinds[i % kinds.length]!());
      await listening(name, i + 1);
    }
    expect((await other.inspect(name))?.waiting).toEqual(await queue(name));
    await holder.release();
    await Promise.all(callers);
    expect(served).toEqual(Array.from({ length: 12 }, (_, i) => i));
    await nothingIsLeft(name);
  });

  it(
    'exclude each other under load: a counter that both increment loses no update',
    async () => {
      const name = newName();
      const counter = `counter-of-${name}`;
      const processes: Contender[] = [await sides.node(), await sides.node()];
      const [threads, callers] = [4, 4];
      const rounds = roundsFor(threads + processes.length * callers);
      for (const one of processes) {
        one.send({ type: 'count', key: name, counter, callers, rounds, mode: 'fair' });
      }
      await Promise.all([
        java.send('count', { name, kind, counter, threads, rounds }),
        ...processes.map((one) => one.next('counted', { timeoutMs: LOAD_MS })),
      ]);
      expect(Number(await admin.get(counter))).toBe((threads + processes.length * callers) * rounds);
      for (const one of processes) await one.finish();
      await nothingIsLeft(name);
    },
    2 * LOAD_MS,
  );

  also(
    'wake each other: who waits has the lock when the other side releases it, not by a time-out',
    async () => {
      const [toNode, toJava]: [number[], number[]] = [[], []];
      for (let i = 0; i < WAKE_UPS; i += 1) {
        const name = newName();
        await java.send('lock', { name, kind });
        const acquired = locks.acquire(name, fair).then((lease) => ({ lease, at: now() }));
        await listening(name, 1);
        const unlockedAt = await java.send('unlock', { name, kind });
        const { lease, at } = await acquired;
        toNode.push(at - unlockedAt);

        const locked = java.send('lock', { name, kind });
        await listening(name, 1);
        const releasedAt = now();
        expect(await lease.release()).toBe('released');
        toJava.push((await locked) - releasedAt);
        await java.send('unlock', { name, kind });
      }
      const took = `to Node ${median(toNode).toFixed(1)} ms, at most ${Math.max(...toNode).toFixed(1)}; to Java ${median(toJava).toFixed(1)}, at most ${Math.max(...toJava).toFixed(1)}`;
      console.log(`Redisson ${version}, fair, wake-ups: ${took}`);
      for (const ms of [...toNode, ...toJava]) expect(ms).toBeLessThan(WATCHDOG_MS / 2);
      expect(median(toNode)).toBeLessThan(MEDIAN_MS);
      expect(median(toJava)).toBeLessThan(MEDIAN_MS);
    },
  );

  also('see that the other side renews its hold', async () => {
    const name = newName();
    /** The time to live becomes more again, twice: so it is longer than a lease that it is held. */
    const renewedTwice = async (): Promise<void> => {
      for (let times = 0; times < 2; times += 1) {
        let min = Infinity;
        await until(
          async () => {
            const left = await admin.pttl(name);
            min = Math.min(min, left);
            return left > min + 500;
          },
          { timeoutMs: 10_000 },
        );
      }
    };
    const lease = await locks.acquire(name, fair);
    await renewedTwice();
    expect(await java.send('tryLock', { name, kind })).toBe(false);
    await lease.release();
    await java.send('lock', { name, kind });
    await renewedTwice();
    expect(await locks.tryAcquire(name, fair)).toBeNull();
    await java.send('unlock', { name, kind });
    await nothingIsLeft(name);
  });

  also('count how often Java has locked: only its last unlock lets Node in', async () => {
    const name = newName();
    await java.send('lock', { name, kind });
    await java.send('lock', { name, kind });
    const acquired = locks.acquire(name, fair);
    await listening(name, 1);
    expect((await locks.inspect(name))?.holders).toMatchObject([{ count: 2 }]);
    await java.send('unlock', { name, kind });
    expect(await locks.tryAcquire(name, fair)).toBeNull();
    await java.send('unlock', { name, kind });
    await (await acquired).release();
  });

  also('leave nothing behind when they give up, and those behind them are served', async () => {
    const name = newName();
    const lease = await locks.acquire(name, fair);
    const late = other.acquire(name, { ...fair, waitMs: 700 });
    const refused = expect(late).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    await waiting(name, 1);
    const tried = java.send('tryLock', { name, kind, thread: 'late', waitMs: 700 });
    await waiting(name, 2);
    const calledOff = new AbortController();
    const aborted = expect(other.acquire(name, { ...fair, signal: calledOff.signal })).rejects.toMatchObject({
      code: 'LOCK_ABORTED',
    });
    await waiting(name, 3);
    const last = java.send('lock', { name, kind, thread: 'last' });
    await listening(name, 4);
    calledOff.abort();
    await Promise.all([refused, aborted]);
    expect(await tried).toBe(false);
    await waiting(name, 1);
    const releasedAt = now();
    await lease.release();
    expect((await last) - releasedAt).toBeLessThan(PROMPT_MS);
    await java.send('unlock', { name, kind, thread: 'last' });
    await nothingIsLeft(name);
  });

  also('are released by a forced unlock of either side, and the first waiter wakes up', async () => {
    const name = newName();
    const held = await locks.acquire(name, fair);
    const locked = java.send('lock', { name, kind, thread: 'waiter' });
    await listening(name, 1);
    const forcedAt = now();
    expect(await other.forceUnlock(name)).toBe(true);
    expect((await locked) - forcedAt).toBeLessThan(PROMPT_MS);
    expect(await held.release()).toBe('lost');
    const acquired = other.acquire(name, fair).then((lease) => ({ lease, at: now() }));
    await listening(name, 1);
    const forcedByJavaAt = now();
    expect(await java.send('forceUnlock', { name, kind })).toBe(true);
    const { lease, at } = await acquired;
    expect(at - forcedByJavaAt).toBeLessThan(PROMPT_MS);
    await lease.release();
    await nothingIsLeft(name);
  });

  also('survive a killed Java holder: a waiter of Node gets the lock when the lease expires', async () => {
    const name = newName();
    const victim = await sides.java({ version, watchdogMs: WATCHDOG_MS });
    await victim.send('lock', { name, kind });
    const acquired = locks.acquire(name, fair);
    await listening(name, 1);
    await victim.kill();
    const [killedAt, leftMs] = [now(), await admin.pttl(name)];
    const lease = await acquired;
    expect(now() - killedAt).toBeGreaterThan(leftMs - 50);
    expect(now() - killedAt).toBeLessThan(leftMs + PROMPT_MS);
    await lease.release();
    await nothingIsLeft(name);
  });

  // A thread of the older one that waits in line sleeps for its own 5 minutes, whatever is left of the lease.
  besideNewest(
    'survive a killed Node holder: a waiter of Java gets the lock when the lease expires',
    async () => {
      const name = newName();
      const node = await sides.node({ watchdogMs: WATCHDOG_MS, keyPrefix: '' });
      node.send({ type: 'hold', key: name, mode: 'fair' });
      await node.next('holding');
      const locked = java.send('lock', { name, kind });
      await listening(name, 1);
      await node.kill('SIGKILL');
      const [killedAt, leftMs] = [now(), await admin.pttl(name)];
      expect((await locked) - killedAt).toBeGreaterThan(leftMs - 50);
      expect((await locked) - killedAt).toBeLessThan(leftMs + PROMPT_MS);
      await java.send('unlock', { name, kind });
      await nothingIsLeft(name);
    },
  );

  also(
    'survive killed waiters: their queue entries expire, and the next waiter gets the lock',
    async () => {
      const name = newName();
      const node = await sides.node({ watchdogMs: 1_000, commandTimeoutMs: 900, keyPrefix: '' });
      const victim = await sides.java({ version, watchdogMs: WATCHDOG_MS });
      const holder = await locks.acquire(name, fair);
      node.send({ type: 'hold', key: name, mode: 'fair' });
      await waiting(name, 1);
      victim.send('tryLock', { name, kind, waitMs: 4_000 }).catch(() => undefined);
      await waiting(name, 2);
      const acquired = other.acquire(name, fair).then((lease) => ({ lease, at: now() }));
      await listening(name, 3);
      const locked = java.send('lock', { name, kind, thread: 'behind' });
      await listening(name, 4);

      const dead = (await queue(name)).slice(0, 2);
      await Promise.all([node.kill('SIGKILL'), victim.kill()]);
      const moments = await admin.zmscore(`redisson_lock_timeout:{${name}}`, ...dead);
      const deadAt = Math.max(...moments.map(Number));
      await holder.release();
      expect(await other.tryAcquire(name, fair)).toBeNull();
      const { lease, at } = await acquired;
      expect(at).toBeGreaterThan(deadAt - 50);
      expect(at).toBeLessThan(deadAt + LOOK_MS + PROMPT_MS);
      const releasedAt = now();
      await lease.release();
      expect((await locked) - releasedAt).toBeLessThan(PROMPT_MS);
      await java.send('unlock', { name, kind, thread: 'behind' });
      await nothingIsLeft(name);
    },
    40_000,
  );

  also(
    'keep their order when a thread of Java acquires after a wait that was longer than entries of Node live',
    async () => {
      const name = newName();
      const holder = await locks.acquire(name, fair);
      const heldSince = now();
      const served: string[] = [];
      const locking = async (thread: string): Promise<void> => {
        await java.send('lock', { name, kind, thread });
        served.push(thread);
        await java.send('unlock', { name, kind, thread });
      };
      const callers = [locking('first thread')];
      await listening(name, 1);
      // Redisson's script subtracts 5 minutes from all entries behind it, as often as a thread of Java acquires.
      callers.push(locking('second thread'));
      await listening(name, 2);
      await until(() => now() - heldSince > WATCHDOG_MS + NODE_ENTRY_MS + LOOK_MS, { timeoutMs: 20_000 });
      callers.push(locks.withLock(name, fair, () => void served.push('caller')));
      await listening(name, 3);
      callers.push(locking('third thread'));
      await listening(name, 4);
      callers.push(other.withLock(name, fair, () => void served.push('last caller')));
      await listening(name, 5);
      const before = await queue(name);
      const tried = java.send('tryLock', { name, kind, thread: 'gives up', waitMs: 500 });
      await waiting(name, 6);
      expect(await tried).toBe(false);
      expect(await queue(name)).toEqual(before);
      await holder.release();
      await Promise.all(callers);
      expect(served).toEqual(['first thread', 'second thread', 'caller', 'third thread', 'last caller']);
      await nothingIsLeft(name);
    },
    40_000,
  );

  also(
    'go on within 10 s after a Node process is killed that waited with ten callers behind a thread of Java',
    async () => {
      const name = newName();
      const node = await sides.node({ keyPrefix: '' });
      const holder = await locks.acquire(name, fair);
      const first = java.send('lock', { name, kind, thread: 'first' });
      await listening(name, 1);
      for (let i = 0; i < 10; i += 1) {
        node.send({ type: 'hold', key: name, mode: 'fair' });
        await waiting(name, 2 + i);
      }
      const behind = other.acquire(name, fair);
      await listening(name, 12);
      await node.kill('SIGKILL');
      await holder.release();
      await first;
      const unlockedAt = await java.send('unlock', { name, kind, thread: 'first' });
      await (await behind).release();
      expect(now() - unlockedAt).toBeLessThan(10_000);
      await nothingIsLeft(name);
    },
    40_000,
  );

  also.each([
    ['braces', 'order:{7}:x'],
    ['Unicode', 'заказ:注文:🔒'],
    ['2,000 characters', 'x'.repeat(2_000)],
  ])('share names with %s', async (_, name) => {
    await java.send('lock', { name, kind });
    const acquired = locks.acquire(name, fair);
    await listening(name, 1);
    await java.send('unlock', { name, kind });
    const lease = await acquired;
    const locked = java.send('lock', { name, kind });
    await listening(name, 1);
    await lease.release();
    await locked;
    await java.send('unlock', { name, kind });
    await nothingIsLeft(name);
  });

  also(
    'exclude an RLock, which notices the end of a fair hold at once when nobody stands in line',
    async () => {
      const name = newName();
      const lease = await locks.acquire(name, fair);
      const locked = java.send('lock', { name });
      const channel = `redisson_lock__channel:{${name}}`;
      await until(async () => (await sides.listeners(channel)) > 0);
      const releasedAt = now();
      await lease.release();
      expect((await locked) - releasedAt).toBeLessThan(PROMPT_MS);
      // The end of that is announced to no fair waiter, and looked for.
      const acquired = locks.acquire(name, fair);
      await waiting(name, 1);
      const unlockedAt = await java.send('unlock', { name });
      await (await acquired).release();
      expect(now() - unlockedAt).toBeLessThan(LOOK_MS + PROMPT_MS);
    },
  );

  it('leave nothing in the log of Redisson that comes from us', () => {
    expect(java.log).not.toMatch(/ (WARN|ERROR) /);
  });
});
