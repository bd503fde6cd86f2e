import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LockService } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import type { Curator } from '../../support/curator/curator.js';
import { LOAD_MS, roundsFor } from '../extent.js';
import { median, mostAtOnce, NodeContender, overlapsOf } from './contest.js';
import { CuratorSides } from './sides.js';

const SESSION_MS = 4_000;
/** A wait that has to be in vain. */
const SHORT_WAIT_MS = 200;
const WAKE_UPS = 15;
const PROMPT_MS = 1_000;
/** The median of wake-ups stays under it. */
const MEDIAN_MS = 100;
/** The server notices expired sessions once a tick. A busy machine takes longer. */
const EXPIRY_MS = 3_000;

/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();

describe('an InterProcessSemaphoreV2 of Curator and permits', () => {
  let sides: CuratorSides;
  let java: Curator;
  let locks: LockService;
  let second: LockService;
  let third: LockService;
  let names = 0;
  const newName = () => `/semaphore/crm-${(names += 1)}`;

  beforeAll(async () => {
    sides = await CuratorSides.start();
    java = await sides.java({ sessionTimeoutMs: SESSION_MS });
    [locks, second, third] = [1, 2, 3].map(() => sides.node().locks) as [
      LockService,
      LockService,
      LockService,
    ];
  });
  afterAll(() => sides[Symbol.asyncDispose]());

  const held = (name: string, count: number) =>
    until(
      async () => {
        const nodes = await java
          .send('participants', { kind: 'semaphore', name, thread: 'observer' })
          .catch(() => []);
        return nodes.length === count && nodes;
      },
      { what: `there are ${count} nodes of permits of ${name}` },
    );

  it(
    'admit no more Java threads and Node callers at once than there are permits, and all have their share',
    async () => {
      const [name, permits, threads] = [newName(), 3, 5];
      const how = { rounds: roundsFor(2 * threads), workMs: 3 };
      const contenders = [locks, locks, second, second, third].map((one) => new NodeContender(one, permits));
      const [had] = await Promise.all([
        java.send('contend', {
          ...{ kind: 'semaphore', name, leases: permits, threads, forMs: LOAD_MS },
          ...how,
        } as const),
        ...contenders.map((one) => one.contend({ key: name, ...how })),
      ]);
      const all = [...had, ...contenders];
      expect(all.map(({ times }) => times.length)).toEqual(Array(all.length).fill(how.rounds));
      expect(mostAtOnce(all)).toBe(permits);
      await held(name, 0);
    },
    2 * LOAD_MS,
  );

  it('count each other: all are taken when both sides together have them', async () => {
    const on = { kind: 'semaphore', name: newName(), leases: 3 } as const;
    const permits = locks.permits(on.name, { permits: 3 });
    const [one, two] = [await permits.acquire(), await second.permits(on.name, { permits: 3 }).acquire()];
    expect(await java.send('tryLock', { ...on, waitMs: PROMPT_MS })).toBe(true);
    expect(await java.send('tryLock', { ...on, thread: 'other', waitMs: SHORT_WAIT_MS })).toBe(false);
    expect(await permits.tryAcquire()).toBeNull();
    expect(await permits.tryAcquire({ waitMs: SHORT_WAIT_MS })).toBeNull();
    const nodes = await held(on.name, 3);
    const { kind, holders, waiting } = (await third.inspect(on.name))!;
    expect([kind, waiting]).toEqual(['permit', []]);
    expect(holders.map(({ owner }) => owner)).toEqual(nodes.map((node) => /_c_(.*)-lease-/.exec(node)![1]));
    expect(holders.map(({ owner }) => owner).slice(0, 2)).toEqual([one.owner, two.owner]);
    await one.release();
    expect(await java.send('tryLock', { ...on, thread: 'other', waitMs: PROMPT_MS })).toBe(true);
    await java.send('unlock', on);
    await java.send('unlock', { ...on, thread: 'other' });
    await two.release();
    await held(on.name, 0);
  });

  it('wake each other: a waiter has its permit when the other side releases one', async () => {
    const [toNode, toJava]: [number[], number[]] = [[], []];
    for (let i = 0; i < WAKE_UPS; i += 1) {
      const on = { kind: 'semaphore', name: newName() } as const;
      await java.send('lock', on);
      const acquired = locks
        .permits(on.name, { permits: 1 })
        .acquire()
        .then((lease) => ({ lease, at: now() }));
      await held(on.name, 2);
      const unlockedAt = await java.send('unlock', on);
      const { lease, at } = await acquired;
      toNode.push(at - unlockedAt);

      const locked = java.send('lock', on);
      await held(on.name, 2);
      const releasedAt = now();
      expect(await lease.release()).toBe('released');
      toJava.push(((await locked) as number) - releasedAt);
      await java.send('unlock', on);
    }
    console.log(
      `Curator, wake-ups for permits: to Node ${median(toNode).toFixed(1)} ms; to Java ${median(toJava).toFixed(1)} ms`,
    );
    for (const ms of [...toNode, ...toJava]) expect(ms).toBeLessThan(PROMPT_MS);
    expect(median(toNode)).toBeLessThan(MEDIAN_MS);
    expect(median(toJava)).toBeLessThan(MEDIAN_MS);
  });

  it('are granted to waiters of both sides in the order in which they came', async () => {
    const on = { kind: 'semaphore', name: newName() } as const;
    const served: string[] = [];
    await java.send('lock', on);
    const waiters: Promise<void>[] = [];
    const queued = (count: number) =>
      until(async () => (await third.inspect(on.name))?.waiting.length === count, { what: `${count} wait` });
    const inNode = async (who: string, one: LockService): Promise<void> => {
      const lease = await one.permits(on.name, { permits: 1 }).acquire();
      served.push(who);
      await lease.release();
    };
    const inJava = async (thread: string): Promise<void> => {
      await java.send('lock', { ...on, thread });
      served.push(thread);
      await java.send('unlock', { ...on, thread });
    };
    const enqueue = async (waiter: Promise<void>): Promise<void> => {
      waiters.push(waiter);
      await queued(waiters.length);
    };
    await enqueue(inNode('node 1', locks));
    await enqueue(inJava('java 1'));
    await enqueue(inNode('node 2', second));
    await enqueue(inJava('java 2'));
    await java.send('unlock', on);
    await Promise.all(waiters);
    expect(served).toEqual(['node 1', 'java 1', 'node 2', 'java 2']);
  });

  it('leave nothing of a waiter that gives up, on either side', async () => {
    const on = { kind: 'semaphore', name: newName() } as const;
    const permits = locks.permits(on.name, { permits: 1 });
    await java.send('lock', on);
    expect(await permits.tryAcquire({ waitMs: SHORT_WAIT_MS })).toBeNull();
    await held(on.name, 1);
    await java.send('unlock', on);
    const lease = await permits.acquire({ waitMs: 0 });
    expect(await java.send('tryLock', { ...on, waitMs: SHORT_WAIT_MS })).toBe(false);
    await lease.release();
    expect(await java.send('tryLock', { ...on, waitMs: PROMPT_MS })).toBe(true);
    await java.send('unlock', on);
    expect(await locks.inspect(on.name)).toBeNull();
  });

  it('of a Java process that is killed go to a waiter of Node when its session has expired', async () => {
    const on = { kind: 'semaphore', name: newName() } as const;
    const victim = await sides.java({ sessionTimeoutMs: SESSION_MS });
    await victim.send('lock', on);
    const acquired = locks.permits(on.name, { permits: 1 }).acquire();
    await held(on.name, 2);
    const killedAt = now();
    await victim.kill();
    const lease = await acquired;
    expect(now() - killedAt).toBeLessThan(SESSION_MS + EXPIRY_MS);
    await lease.release();
  });

  it('one permit is an InterProcessSemaphoreMutex: it excludes both sides from each other', async () => {
    const name = newName();
    const permits = locks.permits(name, { permits: 1 });
    const lease = await permits.acquire();
    const mutex = { kind: 'semaphore-mutex', name } as const;
    expect(await java.send('tryLock', { ...mutex, waitMs: SHORT_WAIT_MS })).toBe(false);
    await lease.release();
    expect(await java.send('tryLock', { ...mutex, waitMs: PROMPT_MS })).toBe(true);
    expect(await permits.tryAcquire()).toBeNull();
    await java.send('unlock', mutex);

    const how = { rounds: 20, workMs: 2 };
    const contenders = [locks, second].map((one) => new NodeContender(one, 1));
    const [had] = await Promise.all([
      java.send('contend', { ...mutex, threads: 2, forMs: LOAD_MS, ...how }),
      ...contenders.map((one) => one.contend({ key: name, ...how })),
    ]);
    expect(overlapsOf([...had, ...contenders])).toEqual([]);
    expect(contenders.map(({ failures }) => failures)).toEqual([0, 0]);
  });

  it('and a mutex on one path: Node refuses the second one by name', async () => {
    const name = newName();
    await java.send('lock', { kind: 'semaphore', name });
    await expect(locks.acquire(name)).rejects.toThrow('A key is for permits or for a lock');
    await java.send('unlock', { kind: 'semaphore', name });
    const other = newName();
    await java.send('lock', { name: other });
    await expect(locks.permits(other, { permits: 1 }).acquire()).rejects.toThrow(
      'A key is for permits or for a lock',
    );
    await java.send('unlock', { name: other });
  });
});
