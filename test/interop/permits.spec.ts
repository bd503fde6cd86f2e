import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { casesBeside, LOAD_MS, roundsFor, VERSIONS } from './extent.js';
import type { Redisson } from '../support/redisson/redisson.js';
import { nodeShares } from './sharing.js';
import { Sides } from './sides.js';

/** Longer than a wake-up takes: a waiter that came by a time-out is noticed. */
const WATCHDOG_MS = 3_000;
/** Less than the second after which a waiter looks by itself. */
const PROMPT_MS = 900;
/** The median of wake-ups stays under it. */
const MEDIAN_MS = 100;
const WAKE_UPS = 15;
/** Which ends with its holder. */
const SHORT_LEASE_MS = 50;

let names = 0;
/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();
const median = (values: number[]): number => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)]!;

describe.each(VERSIONS)('an RPermitExpirableSemaphore of Redisson %s and permits', (version) => {
  const also = casesBeside(version);
  let sides: Sides;
  let java: Redisson;
  let admin: Redis;
  const opened: OpenLocks[] = [];
  const newName = (name = 'crm'): string => `${name}-${(names += 1)}`;
  const open = (): OpenLocks['locks'] => {
    const one = sides.open({ keyPrefix: '', waitMs: 20_000, watchdogMs: WATCHDOG_MS });
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

  const inBraces = (name: string): string => (name.includes('{') ? name : `{${name}}`);
  const listening = (name: string, count = 1): Promise<unknown> =>
    until(
      async () => {
        const there = await sides.listeners(`redisson_sc:${inBraces(name)}`);
        return there === count;
      },
      { what: `${count} listen for permits of ${name}` },
    );
  /** The numbers of free and of taken permits in Redis. */
  const counted = async (name: string): Promise<{ free: number; taken: number }> => ({
    free: Number(await admin.get(name)),
    taken: await admin.zcard(`${inBraces(name)}:timeout`),
  });

  it(
    'admit no more Java threads and Node callers at once than there are permits',
    async () => {
      const name = newName();
      const counter = `inside-${name}`;
      const [permits, threads, callers] = [3, 6, 6];
      const rounds = roundsFor(threads + 2 * callers);
      expect(await java.permits('trySetPermits', { name, permits })).toBe(true);
      const takes = (of: OpenLocks['locks'], number?: number) => async () => {
        const lease = await of.permits(name, { permits: number }).acquire({ waitMs: Infinity });
        return () => lease.release();
      };
      const [theirs, ...ours] = await Promise.all([
        java.permits('share', { name, counter, threads, rounds }),
        nodeShares(takes(locks), admin, { counter, callers, rounds }),
        nodeShares(takes(other, permits), admin, { counter, callers, rounds }),
      ]);
      expect(Math.max(...theirs, ...ours.flat())).toBe(permits);
      expect(Number(await admin.get(counter))).toBe(0);
      expect(await counted(name)).toEqual({ free: permits, taken: 0 });
    },
    2 * LOAD_MS,
  );

  also('wake each other: a waiter gets its permit when the other side releases one', async () => {
    const [toNode, toJava]: [number[], number[]] = [[], []];
    for (let i = 0; i < WAKE_UPS; i += 1) {
      const name = newName();
      await java.permits('trySetPermits', { name, permits: 1 });
      const { permit } = await java.permits('acquire', { name });
      const acquired = locks
        .permits(name)
        .acquire()
        .then((lease) => ({ lease, at: now() }));
      await listening(name);
      const givenAt = await java.permits('release', { name, permit });
      const { lease, at } = await acquired;
      toNode.push(at - givenAt);
      await listening(name, 0);

      const got = java.permits('acquire', { name });
      await listening(name);
      const releasedAt = now();
      expect(await lease.release()).toBe('released');
      toJava.push((await got).at - releasedAt);
    }
    console.log(
      `Redisson ${version}, wake-ups for permits that end: to Node ${median(toNode).toFixed(1)} ms, at most ${Math.max(...toNode).toFixed(1)}; to Java ${median(toJava).toFixed(1)}, at most ${Math.max(...toJava).toFixed(1)}`,
    );
    for (const ms of toJava) expect(ms).toBeLessThan(WATCHDOG_MS / 2);
    expect(median(toNode)).toBeLessThan(MEDIAN_MS);
    expect(median(toJava)).toBeLessThan(MEDIAN_MS);
  });

  also(
    'that Node renews stay taken for Java, and permits that Java extends stay taken for Node',
    async () => {
      const name = newName();
      const lease = await locks.permits(name, { permits: 1 }).acquire({ watchdogMs: 1_100 });
      expect(await java.permits('tryAcquire', { name, waitMs: 2_500 })).toBeNull();
      expect(lease.lost).toBe(false);
      expect(await java.permits('acquiredPermits', { name })).toBe(1);
      await lease.release();

      const { permit } = await java.permits('acquire', { name, leaseMs: 600 });
      const [before] = (await locks.inspect(name))!.holders;
      expect(before).toMatchObject({ owner: permit, count: 1 });
      expect(await java.permits('updateLeaseTime', { name, permit, leaseMs: 30_000 })).toBe(true);
      expect(await locks.permits(name).tryAcquire({ waitMs: 1_500 })).toBeNull();
      const [after] = (await locks.inspect(name))!.holders;
      expect(after!.owner).toBe(permit);
      expect(after!.remainingMs).toBeGreaterThan(before!.remainingMs);
      await java.permits('release', { name, permit });
    },
  );

  also('come back with the lease of a Node process that is killed, and Java has them', async () => {
    const name = newName();
    const victim = await sides.node({ watchdogMs: WATCHDOG_MS });
    await java.permits('trySetPermits', { name, permits: 1 });
    victim.send({ type: 'hold', key: name, permit: true });
    await victim.next('holding');
    const got = java.permits('acquire', { name });
    await listening(name);
    await victim.kill('SIGKILL');
    const killedAt = now();
    const { at } = await got;
    expect(at - killedAt).toBeLessThan(WATCHDOG_MS + PROMPT_MS);
    expect(await counted(name)).toEqual({ free: 0, taken: 1 });
  });

  also('come back with the lease of a Java process that is killed, and Node has them', async () => {
    const name = newName();
    const victim = await sides.java({ version });
    await victim.permits('trySetPermits', { name, permits: 1 });
    await victim.permits('acquire', { name, leaseMs: WATCHDOG_MS });
    const takenAt = now();
    const acquired = locks.permits(name).acquire();
    await listening(name);
    await victim.kill();
    const lease = await acquired;
    expect(now() - takenAt).toBeLessThan(WATCHDOG_MS + PROMPT_MS);
    expect(await counted(name)).toEqual({ free: 0, taken: 1 });
    expect(await lease.release()).toBe('released');
  });

  also('forced open here, wake Java, and what Java had it cannot give back again', async () => {
    const name = newName();
    await java.permits('trySetPermits', { name, permits: 1 });
    const { permit } = await java.permits('acquire', { name, thread: 'holder' });
    const got = java.permits('acquire', { name });
    await listening(name);
    const forcedAt = now();
    expect(await locks.forceUnlock(name)).toBe(true);
    expect((await got).at - forcedAt).toBeLessThan(PROMPT_MS);
    expect(await java.permits('tryRelease', { name, permit })).toBe(false);
    expect(await counted(name)).toEqual({ free: 0, taken: 1 });
  });

  also('deleted by Java, are lost here at the next renewal, and none is added', async () => {
    const name = newName();
    const lease = await locks.permits(name, { permits: 2 }).acquire();
    expect(await java.permits('delete', { name })).toBe(true);
    await until(() => lease.lost);
    expect(await lease.release()).toBe('lost');
    expect(await java.permits('getPermits', { name })).toBe(0);
  });

  also('keep their number while both sides take them, let them expire and add more', async () => {
    const name = newName();
    await java.permits('trySetPermits', { name, permits: 2 });
    const rounds = 8;
    const abandons = async (of: OpenLocks['locks']) => {
      for (let i = 0; i < rounds; i += 1) await of.permits(name).acquire({ leaseMs: SHORT_LEASE_MS });
    };
    const both = Promise.all([
      java.permits('abandon', { name, threads: 2, rounds, leaseMs: SHORT_LEASE_MS, thread: 'abandons' }),
      ...[locks, locks, other].map(abandons),
    ]);
    for (const permits of [2, 1, -1]) await java.permits('addPermits', { name, permits });
    await both;
    await until(async () => (await java.permits('availablePermits', { name })) === 4, {
      what: 'all permits are back',
    });
    expect(await counted(name)).toEqual({ free: 4, taken: 0 });
    const leases = await Promise.all([0, 1, 2, 3].map(() => locks.permits(name).tryAcquire()));
    expect(leases).not.toContain(null);
    expect(await other.permits(name).tryAcquire()).toBeNull();
    expect(await java.permits('tryAcquire', { name })).toBeNull();
  });

  also('wake each other when their number is raised', async () => {
    const name = newName();
    const first = await locks.permits(name, { permits: 1 }).acquire();
    const acquired = other.permits(name).acquire();
    await listening(name);
    const addedAt = await java.permits('addPermits', { name, permits: 1 });
    const second = await acquired;
    expect(now() - addedAt).toBeLessThan(PROMPT_MS);
    await listening(name, 0);

    const got = java.permits('acquire', { name, leaseMs: 60_000 });
    await listening(name);
    const third = await locks.permits(name, { permits: 4 }).acquire();
    const { permit } = await got;
    expect(await java.permits('getPermits', { name })).toBe(4);
    await java.permits('setPermits', { name, permits: 3 });
    expect(await locks.permits(name).tryAcquire()).toBeNull();
    for (const lease of [first, second, third]) expect(await lease.release()).toBe('released');
    await java.permits('release', { name, permit });
    expect(await counted(name)).toEqual({ free: 3, taken: 0 });
  });

  also('of a number that was made here and raised by Java, are Java’s after ours have ended', async () => {
    const name = newName();
    const lease = await locks.permits(name, { permits: 1 }).acquire({ leaseMs: 1_000 });
    await java.permits('addPermits', { name, permits: 1 });
    const { permit } = await java.permits('acquire', { name });
    expect(await lease.release()).toBe('released');
    expect(await admin.pttl(`${inBraces(name)}:timeout`)).toBe(-1);
    await java.permits('release', { name, permit });
    expect(await counted(name)).toEqual({ free: 2, taken: 0 });
  });

  also.each([
    ['braces', 'crm:{eu}'],
    ['Unicode', 'Größe 数 🔒'],
    ['2,000 characters', 'x'.repeat(1_995)],
  ])('have the same keys and channel for a name with %s', async (_what, beginning) => {
    const name = newName(beginning);
    await java.permits('trySetPermits', { name, permits: 1 });
    const { permit } = await java.permits('acquire', { name });
    expect((await locks.inspect(name))!.holders).toMatchObject([{ owner: permit }]);
    const acquired = locks.permits(name).acquire();
    await listening(name);
    await java.permits('release', { name, permit });
    const lease = await acquired;
    await listening(name, 0);
    const got = java.permits('acquire', { name });
    await listening(name);
    await lease.release();
    await got;
  });

  it('leave nothing in the log of Redisson that comes from us', () => {
    expect(java.log).not.toMatch(/ (WARN|ERROR) /);
  });
});
