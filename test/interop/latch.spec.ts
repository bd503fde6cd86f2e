import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { casesBeside, SERVERS, VERSIONS } from './extent.js';
import type { Redisson } from '../support/redisson/redisson.js';
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

describe.each(VERSIONS)('an RCountDownLatch of Redisson %s and a latch', (version) => {
  const also = casesBeside(version);
  let sides: Sides;
  let java: Redisson;
  let admin: Redis;
  let opened: OpenLocks;
  let locks: OpenLocks['locks'];
  const newName = (name = 'import'): string => `${name}-${(names += 1)}`;

  beforeAll(async () => {
    sides = await Sides.start();
    java = await sides.java({ version });
    admin = sides.admin();
    opened = sides.open({ keyPrefix: '', waitMs: WAIT_MS });
    ({ locks } = opened);
  });
  afterAll(async () => {
    await opened.close();
    admin.disconnect();
    await sides[Symbol.asyncDispose]();
  });

  const listening = (name: string, count: number): Promise<unknown> =>
    until(
      async () => {
        const channel = `redisson_countdownlatch__channel__{${name}}`;
        return (await sides.listeners(channel)) >= count;
      },
      { what: `${count} listen for the latch ${name}` },
    );

  it('wake the waiters of either side when the other side counts down to zero', async () => {
    const [toNode, toJava]: [number[], number[]] = [[], []];
    for (let i = 0; i < WAKE_UPS; i += 1) {
      const [byJava, byNode] = [newName(), newName()];
      expect(await locks.countDownLatch(byJava).trySetCount(2)).toBe(true);
      const opens = Promise.all([1, 2, 3].map(() => locks.countDownLatch(byJava).wait())).then(now);
      await listening(byJava, 1);
      await java.latch('countDown', { name: byJava });
      const openedAt = await java.latch('countDown', { name: byJava });
      toNode.push((await opens) - openedAt);

      expect(await java.latch('trySetCount', { name: byNode, count: 2 })).toBe(true);
      const goesOn = java.latch('await', { name: byNode, thread: 'waiter', waitMs: WAIT_MS });
      await listening(byNode, 1);
      await locks.countDownLatch(byNode).countDown();
      const countedAt = now();
      await locks.countDownLatch(byNode).countDown();
      const wokenAt = await goesOn;
      expect(wokenAt).not.toBe(-1);
      toJava.push(wokenAt - countedAt);
      expect(await sides.exists(byJava, byNode)).toBe(0);
    }
    console.log(
      `Redisson ${version}, latches: to Node ${median(toNode).toFixed(1)} ms, at most ${Math.max(...toNode).toFixed(1)}; to Java ${median(toJava).toFixed(1)}, at most ${Math.max(...toJava).toFixed(1)}`,
    );
    for (const ms of [...toNode, ...toJava]) expect(ms).toBeLessThan(WAIT_MS / 4);
    expect(median(toNode)).toBeLessThan(MEDIAN_MS);
    expect(median(toJava)).toBeLessThan(MEDIAN_MS);
  });

  also('see the same count, whoever changes it', async () => {
    const name = newName();
    const latch = locks.countDownLatch(name);
    expect(await latch.trySetCount(3)).toBe(true);
    expect(await java.latch('trySetCount', { name, count: 5 })).toBe(false);
    await java.latch('countDown', { name });
    expect(await latch.getCount()).toBe(2);
    await latch.countDown();
    expect(await java.latch('getCount', { name })).toBe(1);
    expect(await java.latch('await', { name, waitMs: 50 })).toBe(-1);
    expect(await latch.tryWait({ waitMs: 50 })).toBe(false);
    await latch.countDown();
    await latch.countDown();
    expect(await java.latch('getCount', { name })).toBe(0);
    expect(await java.latch('trySetCount', { name, count: 1 })).toBe(true);
    expect(await latch.tryWait()).toBe(false);
    expect(await java.latch('delete', { name })).toBe(true);
    expect(await latch.tryWait()).toBe(true);
  });

  also('removed by one side: who waits on the other goes on', async () => {
    const [byNode, byJava] = [newName(), newName()];
    await java.latch('trySetCount', { name: byNode, count: 2 });
    const goesOn = java.latch('await', { name: byNode, thread: 'waiter', waitMs: WAIT_MS });
    await listening(byNode, 1);
    expect(await locks.countDownLatch(byNode).delete()).toBe(true);
    expect(await goesOn).not.toBe(-1);

    await locks.countDownLatch(byJava).trySetCount(2);
    const waiting = locks.countDownLatch(byJava).wait();
    await listening(byJava, 1);
    await java.latch('delete', { name: byJava });
    await waiting;
  });

  also('keep Java waiting for a count that Node has set anew', async () => {
    const name = newName();
    const latch = locks.countDownLatch(name);
    for (let i = 0; i < 3; i += 1) {
      expect(await latch.trySetCount(1)).toBe(true);
      expect(await java.latch('await', { name, waitMs: 30 })).toBe(-1);
      const goesOn = java.latch('await', { name, thread: 'waiter', waitMs: WAIT_MS });
      await listening(name, 1);
      await latch.countDown();
      expect(await goesOn).not.toBe(-1);
    }
  });

  also.each([
    ['braces', 'import:{eu}'],
    ['Unicode', 'Größe 数 🔒'],
    ['2,000 characters', 'x'.repeat(1_995)],
  ])('have the same channel for a name with %s', async (what, beginning) => {
    const name = newName(beginning);
    const latch = locks.countDownLatch(name);
    if (what === 'braces' && SERVERS !== 'one') {
      // Redisson's channel is in another slot than the latch, and it names both as keys of one script: it cannot use it at all.
      await expect(java.latch('trySetCount', { name, count: 1 })).rejects.toThrow(/CROSSSLOT/);
      const set = latch.trySetCount(1);
      if (sides.shardsMessages) return expect(set).rejects.toThrow(/name without braces/);
      expect(await set).toBe(true);
      const opened = latch.wait();
      await listening(name, 1);
      await latch.countDown();
      return opened;
    }
    await latch.trySetCount(1);
    const [ours, theirs] = [latch.wait(), java.latch('await', { name, thread: 'waiter' })];
    await listening(name, 2);
    await java.latch('countDown', { name });
    await ours;
    expect(await theirs).not.toBe(-1);
  });

  it('leave nothing in the log of Redisson that comes from us', () => {
    expect(java.log).not.toMatch(/ (WARN|ERROR) /);
  });
});
