import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { mkdtemp } from 'node:fs/promises';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import type { LockService } from 'nest-redis-lock';
import { until } from '../../support/async.js';
import type { Curator } from '../../support/curator/curator.js';
import { guardFolder, guardProcess } from '../../support/process-guard.js';
import { SCRATCH } from '../../support/scratch.js';
import { LOAD_MS, roundsFor } from '../extent.js';
import { counterIn, median, NodeContender, nodeCounts, overlapsOf } from './contest.js';
import { CuratorSides, participants, watched } from './sides.js';

const SESSION_MS = 4_000;
/** The server notices expired sessions once a tick. A busy machine takes longer. */
const EXPIRY_MS = 3_000;
const SHORT_WAIT_MS = 200;
const WAKE_UPS = 15;
const PROMPT_MS = 1_000;
/** The median of wake-ups stays under it. */
const MEDIAN_MS = 100;

/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();

describe('an InterProcessMutex of Curator and an exclusive lock', () => {
  let sides: CuratorSides;
  let java: Curator;
  let locks: LockService;
  let second: LockService;
  let third: LockService;
  let names = 0;
  const newName = () => `/mutex/order-${(names += 1)}`;

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

  it(
    'exclude each other under load: a counter that both increment loses no update',
    async () => {
      const folder = await mkdtemp(join(SCRATCH, 'nest-redis-lock-curator-'));
      guardFolder(folder);
      const on = { key: newName(), file: join(folder, 'counter') };
      const [threads, callers] = [3, 2];
      const sessions = [locks, second, third];
      const all = threads + sessions.length * callers;
      const rounds = roundsFor(all);
      const beganAt = now();
      await Promise.all([
        java.send('count', { name: on.key, file: on.file, threads, rounds }),
        ...sessions.flatMap((one) =>
          Array.from({ length: callers }, () => nodeCounts(one, { ...on, rounds })),
        ),
      ]);
      console.log(`${all * rounds} increments in ${Math.round(now() - beganAt)} ms`);
      expect(await counterIn(on.file)).toBe(all * rounds);
    },
    2 * LOAD_MS,
  );

  it('never overlap in sections, and each caller has its share', async () => {
    const key = newName();
    const how = { rounds: 40, workMs: 2 };
    const contenders = [locks, second, third].map((one) => new NodeContender(one));
    const [had] = await Promise.all([
      java.send('contend', { name: key, threads: 3, forMs: 60_000, ...how }),
      ...contenders.map((one) => one.contend({ key, ...how })),
    ]);
    expect(overlapsOf([...had, ...contenders])).toEqual([]);
    expect([...had, ...contenders].map(({ times }) => times.length)).toEqual(Array(6).fill(how.rounds));
    expect(contenders.map(({ failures }) => failures)).toEqual([0, 0, 0]);
  });

  it('wake each other: a waiter has the lock when the other side releases it', async () => {
    const [toNode, toJava]: [number[], number[]] = [[], []];
    for (let i = 0; i < WAKE_UPS; i += 1) {
      const name = newName();
      await java.send('lock', { name });
      const acquired = locks.acquire(name).then((lease) => ({ lease, at: now() }));
      await watched(sides.server, (await java.send('node', { name }))!);
      const unlockedAt = await java.send('unlock', { name });
      const { lease, at } = await acquired;
      toNode.push(at - unlockedAt);

      const locked = java.send('lock', { name });
      await java.asleep();
      const releasedAt = now();
      expect(await lease.release()).toBe('released');
      toJava.push(((await locked) as number) - releasedAt);
      await java.send('unlock', { name });
    }
    const took = [toNode, toJava].map(
      (ms) => `${median(ms).toFixed(1)} ms, at most ${Math.max(...ms).toFixed(1)}`,
    );
    console.log(`Curator, wake-ups: to Node ${took[0]}; to Java ${took[1]}`);
    expect([toNode.length, toJava.length]).toEqual([WAKE_UPS, WAKE_UPS]);
    for (const ms of [...toNode, ...toJava]) expect(ms).toBeLessThan(PROMPT_MS);
    expect(median(toNode)).toBeLessThan(MEDIAN_MS);
    expect(median(toJava)).toBeLessThan(MEDIAN_MS);
  });

  it('are granted to waiters of both sides in the order of their nodes, with tokens that grow', async () => {
    const name = newName();
    const served: string[] = [];
    const tokens: number[] = [];
    await java.send('lock', { name });
    const inNode = async (who: string, one: LockService): Promise<void> => {
      const lease = await one.acquire(name);
      served.push(who);
      tokens.push(lease.fencingToken);
      await lease.release();
    };
    const inJava = async (thread: string): Promise<void> => {
      await java.send('lock', { name, thread });
      served.push(thread);
      tokens.push((await java.send('token', { name, thread }))!);
      await java.send('unlock', { name, thread });
    };
    const waiters: Promise<void>[] = [];
    const enqueue = async (waiter: Promise<void>): Promise<void> => {
      waiters.push(waiter);
      await participants(java, { name, count: waiters.length + 1 });
    };
    await enqueue(inNode('node 1', locks));
    await enqueue(inJava('java 1'));
    await enqueue(inJava('java 2'));
    await enqueue(inNode('node 2', second));
    await enqueue(inNode('node 3', third));
    await enqueue(inJava('java 3'));
    tokens.push((await java.send('token', { name }))!);
    await java.send('unlock', { name });
    await Promise.all(waiters);
    expect(served).toEqual(['node 1', 'java 1', 'java 2', 'node 2', 'node 3', 'java 3']);
    expect(tokens).toEqual(tokens.toSorted((a, b) => a - b));
    expect(new Set(tokens).size).toBe(served.length + 1);
  });

  it('have tokens that grow from one uncontended grant to the next, whichever side has it', async () => {
    const name = newName();
    const tokens: number[] = [];
    for (let i = 0; i < 12; i += 1) {
      const one = [locks, second][i % 3];
      if (one) await one.withLock(name, (lease) => void tokens.push(lease.fencingToken));
      else {
        await java.send('lock', { name });
        tokens.push((await java.send('token', { name }))!);
        await java.send('unlock', { name });
      }
    }
    for (const [i, token] of tokens.entries()) if (i > 0) expect(token).toBeGreaterThan(tokens[i - 1]!);
  });

  it('list the same holder and waiters in the same order', async () => {
    const name = newName();
    const ofNode = (node: string) => /_c_(.*)-lock-\d+$/.exec(node)![1]!;
    const lease = await locks.acquire(name);
    const inJava = java.send('lock', { name });
    await participants(java, { name, count: 2 });
    const inNode = second.acquire(name);
    await participants(java, { name, count: 3 });
    const inJavaToo = java.send('lock', { name, thread: 'other' });
    const nodes = await participants(java, { name, count: 4 });
    const seen = (await locks.inspect(name))!;
    expect(seen.kind).toBe('exclusive');
    expect([...seen.holders.map(({ owner }) => owner), ...seen.waiting]).toEqual(nodes.map(ofNode));
    expect(ofNode(nodes[0]!)).toBe(lease.owner);
    expect(await third.inspect(name)).toEqual(seen);
    await lease.release();
    await inJava;
    expect(await java.send('node', { name })).toBe(nodes[1]);
    await java.send('unlock', { name });
    await (await inNode).release();
    await inJavaToo;
    await java.send('unlock', { name, thread: 'other' });
    expect(await locks.inspect(name)).toBeNull();
  });

  it('leave no node of a caller of Node that gives up', async () => {
    const name = newName();
    await java.send('lock', { name });
    const before = await participants(java, { name, count: 1 });
    const waiting = locks.tryAcquire(name, { waitMs: SHORT_WAIT_MS });
    const controller = new AbortController();
    const aborted = second.acquire(name, { signal: controller.signal });
    await participants(java, { name, count: 3 });
    expect(await waiting).toBeNull();
    controller.abort();
    await expect(aborted).rejects.toThrow('abort');
    expect(await third.tryAcquire(name)).toBeNull();
    expect(await participants(java, { name, count: 1 })).toEqual(before);
    await java.send('unlock', { name });
    await (await locks.acquire(name, { waitMs: 0 })).release();
  });

  it('leave no node of a thread of Java that gives up', async () => {
    const name = newName();
    const lease = await locks.acquire(name);
    expect(await java.send('tryLock', { name, waitMs: SHORT_WAIT_MS })).toBe(false);
    expect(await second.inspect(name)).toMatchObject({ holders: [{ owner: lease.owner }], waiting: [] });
    await lease.release();
    expect(await java.send('tryLock', { name })).toBe(true);
    await java.send('unlock', { name });
  });

  it('outlive a Java process that is killed: a waiter of Node has the lock when its session has expired', async () => {
    const name = newName();
    const victim = await sides.java({ sessionTimeoutMs: SESSION_MS });
    await victim.send('lock', { name });
    const acquired = locks.acquire(name);
    await watched(sides.server, (await victim.send('node', { name }))!);
    const killedAt = now();
    await victim.kill();
    const lease = await acquired;
    const tookMs = now() - killedAt;
    // It last sent a ping at most a third of the time-out before.
    expect(tookMs).toBeGreaterThan(SESSION_MS / 2);
    expect(tookMs).toBeLessThan(SESSION_MS + EXPIRY_MS);
    expect(await lease.release()).toBe('released');
  });

  it('outlive a Node process that is killed: a waiter of Java has the lock when its session has expired', async () => {
    const name = newName();
    const path = (relative: string): string => fileURLToPath(new URL(relative, import.meta.url));
    const child = spawn(
      process.execPath,
      [
        ...['--import', path('../../support/typescript/register.mjs'), path('holder.process.ts')],
        ...[sides.connect, name, String(SESSION_MS)],
      ],
      { stdio: ['ignore', 'pipe', 'inherit'] },
    );
    guardProcess(child);
    await once(child.stdout, 'data');
    const locked = java.send('lock', { name });
    await java.asleep();
    const killedAt = now();
    child.kill('SIGKILL');
    const tookMs = ((await locked) as number) - killedAt;
    expect(tookMs).toBeGreaterThan(SESSION_MS / 2);
    expect(tookMs).toBeLessThan(SESSION_MS + EXPIRY_MS);
    await java.send('unlock', { name });
  });

  it('forced open by Node: a waiter of Java has the lock at once, and its former holder is not told', async () => {
    const name = newName();
    await java.send('lock', { name, thread: 'holder' });
    const locked = java.send('lock', { name, thread: 'waiter' });
    await java.asleep('waiter');
    const forcedAt = now();
    expect(await locks.forceUnlock(name)).toBe(true);
    expect(((await locked) as number) - forcedAt).toBeLessThan(PROMPT_MS);
    // Curator looks for the node that it has lost: it is not there.
    await expect(java.send('token', { name, thread: 'holder' })).rejects.toThrow('null');
    await java.send('unlock', { name, thread: 'holder' });
    await expect(java.send('unlock', { name, thread: 'holder' })).rejects.toThrow('IllegalMonitorState');
    expect(await locks.isLocked(name)).toBe(true);
    await java.send('unlock', { name, thread: 'waiter' });
    expect(await locks.forceUnlock(name)).toBe(false);
  });

  it('ask each other to release a lock, which stays held', async () => {
    const name = newName();
    const asked: string[] = [];
    const events: string[] = [];
    const stop = locks.on('revocation-requested', ({ key }) => void events.push(key));
    const lease = await locks.acquire(name);
    lease.onRevocationRequested(({ key }) => void asked.push(key));
    const [node] = await participants(java, { name, count: 1 });
    expect(await java.send('revoke', { name })).toBe(node);
    await until(() => asked.length > 0, { what: 'Node hears of the request' });
    // The server has ended the watch with that change, and the store sets it again.
    await watched(sides.server, node!);
    expect([asked, events]).toEqual([[name], [name]]);
    expect([lease.signal.aborted, await lease.verify(), lease.lost]).toEqual([false, true, false]);
    expect(await lease.release()).toBe('released');
    stop();

    await java.send('lock', { name, revocable: true });
    expect(await second.revoke(name)).toBe(true);
    expect(await java.event('revoke', (event) => event.name === name)).toMatchObject({ kind: 'mutex' });
    await java.send('unlock', { name });
    expect(await second.revoke(name)).toBe(false);
  });
});
