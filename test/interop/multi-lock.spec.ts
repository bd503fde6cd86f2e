import type { Redis } from 'ioredis';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../support/async.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import { casesBeside, LOAD_MS, roundsFor, VERSIONS } from './extent.js';
import { several, type Redisson } from '../support/redisson/redisson.js';
import { Sides, type Contender } from './sides.js';

const WATCHDOG_MS = 3_000;
/** Less than the second after which a waiter looks by itself. */
const PROMPT_MS = 900;
const kind = 'multi';

let names = 0;
/** Two names, in the order in which callers here take them. */
const newNames = (): [string, string] => {
  names += 1;
  return [`seat-${names}-a`, `seat-${names}-b`];
};
/** Java tells the time of the machine, so Node has to as well. */
const now = (): number => performance.timeOrigin + performance.now();

describe.each(VERSIONS)('an RMultiLock of Redisson %s and several keys of one call', (version) => {
  const also = casesBeside(version);
  let sides: Sides;
  let java: Redisson;
  let admin: Redis;
  let opened: OpenLocks;
  let locks: OpenLocks['locks'];

  beforeAll(async () => {
    sides = await Sides.start();
    java = await sides.java({ version, watchdogMs: WATCHDOG_MS });
    admin = sides.admin();
    opened = sides.open({ keyPrefix: '', waitMs: 20_000, watchdogMs: WATCHDOG_MS });
    ({ locks } = opened);
  });
  afterAll(async () => {
    await opened.close();
    admin.disconnect();
    await sides[Symbol.asyncDispose]();
  });

  const listening = (name: string): Promise<unknown> =>
    until(async () => (await sides.listeners(`redisson_lock__channel:{${name}}`)) > 0, {
      what: `somebody listens for the end of ${name}`,
    });

  it(
    'exclude each other under load: a counter that both increment loses no update',
    async () => {
      const [one, two] = newNames();
      const counter = `counter-of-${one}`;
      const processes: Contender[] = [await sides.node(), await sides.node()];
      const [threads, callers] = [3, 3];
      const rounds = roundsFor(threads + processes.length * callers);
      for (const node of processes) node.send({ type: 'count', key: [two, one], counter, callers, rounds });
      await Promise.all([
        java.send('count', { name: several(one, two), kind, counter, threads, rounds }),
        ...processes.map((node) => node.next('counted', { timeoutMs: LOAD_MS })),
      ]);
      expect(Number(await admin.get(counter))).toBe((threads + processes.length * callers) * rounds);
      for (const node of processes) await node.finish();
      expect(await sides.exists(one, two)).toBe(0);
    },
    2 * LOAD_MS,
  );

  also('get all keys or none, on either side', async () => {
    const [one, two] = newNames();
    const both = { name: several(one, two), kind } as const;
    const lease = await locks.acquire([one, two]);
    expect(await java.send('tryLock', both)).toBe(false);
    await lease.release();
    const second = await locks.acquire(two);
    expect(await java.send('tryLock', both)).toBe(false);
    expect(await sides.exists(one)).toBe(0);
    await second.release();

    expect(await java.send('tryLock', both)).toBe(true);
    expect(await locks.tryAcquire(one)).toBeNull();
    expect(await locks.tryAcquire([one, two])).toBeNull();
    await java.send('unlock', both);
    await java.send('lock', { name: two });
    expect(await locks.tryAcquire([one, two])).toBeNull();
    expect(await sides.exists(one)).toBe(0);
    await java.send('unlock', { name: two });
  });

  also('wait for the other side, and get the keys when it has released all of them', async () => {
    const [one, two] = newNames();
    const both = { name: several(one, two), kind } as const;
    await java.send('lock', both);
    const acquired = locks.acquire([one, two]);
    await listening(one);
    await java.send('unlock', both);
    const lease = await acquired;
    const locked = java.send('lock', { ...both, thread: 'waiter' });
    await listening(one);
    const releasedAt = now();
    await lease.release();
    expect((await locked) - releasedAt).toBeLessThan(PROMPT_MS);
    await java.send('unlock', { ...both, thread: 'waiter' });
    expect(await sides.exists(one, two)).toBe(0);
  });

  it('leave nothing in the log of Redisson that comes from us', () => {
    expect(java.log).not.toMatch(/ (WARN|ERROR) /);
  });
});
