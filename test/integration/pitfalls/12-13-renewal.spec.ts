import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { holdName, Lab, newKey } from '../../support/redis/lab.js';

let lab: Lab;

beforeAll(async () => {
  lab = await Lab.start();
});

afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

const WATCHDOG_MS = 1_500;

/** Resolves after the watchdog has renewed this often since. */
const renewals = async (count: number): Promise<void> => {
  const extended = async () => (await lab.calls())['pttl'] ?? 0;
  const before = await extended();
  await until(async () => (await extended()) >= before + count, { what: `${count} renewals` });
};

describe('pitfall 12: a renewal', () => {
  it('never shortens: after extend(60 s) the watchdog leaves 60 s, on both sides', async () => {
    const { locks } = lab.open({ watchdogMs: WATCHDOG_MS });
    const key = newKey();
    const lease = await locks.acquire(key);
    await lease.extend(60_000);
    await renewals(3);
    expect(await lab.admin.pttl(holdName(key))).toBeGreaterThan(50_000);
    expect(lease.remainingMs()).toBeGreaterThan(50_000);
  });

  it('a holder never believes in more than Redis has: also cut off right after extend', async () => {
    const proxy = await lab.proxy();
    const { locks } = lab.open({ watchdogMs: WATCHDOG_MS, commandTimeoutMs: 300 }, proxy.url);
    const key = newKey();
    const lease = await locks.acquire(key);
    await lease.extend(3_000);
    proxy.blackhole();
    for (;;) {
      // Redis is asked first: time that passes in between makes the belief shorter, never longer.
      const left = await lab.admin.pttl(holdName(key));
      const believed = lease.remainingMs();
      if (lease.lost) break;
      expect(believed).toBeLessThanOrEqual(Math.max(left, 0) + 1);
    }
    expect(lease.remainingMs()).toBe(0);
  });

  it('extend never shortens either', async () => {
    const { locks } = lab.open();
    const lease = await locks.acquire(newKey());
    await lease.extend(90_000);
    await lease.extend(1_000);
    expect(lease.remainingMs()).toBeGreaterThan(80_000);
  });

  it('never brings back a hold that is gone', async () => {
    const { locks, events } = lab.open({ watchdogMs: WATCHDOG_MS });
    const key = newKey();
    const lease = await locks.acquire(key);
    await lab.admin.del(holdName(key));
    await until(() => events('lost').length > 0);
    expect(lease.lost).toBe(true);
    expect(await lab.admin.exists(holdName(key))).toBe(0);
    expect(await lease.release()).toBe('lost');
  });
});

describe('pitfall 13: one bad key in a batch', () => {
  it('does not cost its neighbours their leases: 99 healthy ones outlive a WRONGTYPE in the middle', async () => {
    const { locks, events } = lab.open({ watchdogMs: WATCHDOG_MS });
    const keys = Array.from({ length: 100 }, () => newKey());
    const leases = await Promise.all(keys.map((key) => locks.acquire(key)));
    const bad = 37;
    await lab.admin.set(holdName(keys[bad]!), 'a foreign value');
    await until(() => events('lost').length > 0, { timeoutMs: 10_000, what: 'the bad one is lost' });
    // Long after every lease would have ended without renewal.
    await renewals(3 * 99);
    expect(events('lost').map(({ key, reason }) => [key, reason])).toEqual([[keys[bad], 'refused']]);
    expect(leases.map(({ lost }) => lost)).toEqual(keys.map((_, i) => i === bad));
    expect(events('store-down'), 'one bad key is no outage').toEqual([]);
    const endings = await Promise.all(leases.map((lease) => lease.release()));
    expect(endings.filter((ending) => ending === 'released')).toHaveLength(99);
    expect(await lab.admin.get(holdName(keys[bad]!)), 'what is not ours is left alone').toBe(
      'a foreign value',
    );
    await lab.admin.del(holdName(keys[bad]!));
  });
});
