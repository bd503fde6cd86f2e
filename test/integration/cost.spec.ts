import { describe, expect, it } from 'vitest';
import { deferred, until } from '../support/async.js';
import { newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import { ManualClock } from '../support/redis/manual-clock.js';

const lab = useLab();
const AN_HOUR_MS = 3_600_000;

/** The scripts that were run for locks. */
const requestCount = async (): Promise<number> => (await lab.calls())['evalsha'] ?? 0;

/** Records of processes, and looks for holders, are counted in test/unit/core/holders.spec.ts. */
const NO_RECORDS = { holderInfo: false };

describe('what a lock costs Redis', () => {
  it('free: one command takes it, and one gives it back', async () => {
    const { locks } = lab.open();
    await locks.withLock(newKey(), () => undefined);
    await lab.admin.config('RESETSTAT');
    for (let i = 0; i < 10; i += 1) await locks.withLock(newKey(), () => undefined);
    const { evalsha, eval: evals, subscribe, script } = await lab.calls();
    expect({ evalsha, evals, subscribe, script }).toEqual({ evalsha: 20 });
  });

  it('a process that starts: no script is sent to a server that has it', async () => {
    await lab.open().locks.ping();
    await lab.admin.config('RESETSTAT');
    const { locks } = lab.open();
    await locks.withLock(newKey(), () => undefined);
    const calls = await lab.calls();
    expect([calls['script|exists'], calls['script|load']]).toEqual([1, undefined]);
  });

  it('taken: however long a process waits, it refreshes its entry with one command a second', async () => {
    const clock = new ManualClock();
    const [holder, waiter] = [lab.open(NO_RECORDS), lab.open(NO_RECORDS, undefined, clock.runtime('waiter'))];
    await Promise.all([holder.locks.ping(), waiter.locks.ping()]);
    await lab.admin.config('RESETSTAT');
    const lease = await holder.locks.acquire(newKey(), { leaseMs: 10 * AN_HOUR_MS });
    const waiting = waiter.locks.acquire(lease.key, { waitMs: 2 * AN_HOUR_MS });
    await lab.waiting(lease.key);
    // One question of the holder, and two of the waiter: before it has subscribed, and after.
    await until(async () => (await requestCount()) === 3);
    await waiter.locks.ping();
    // In steps: Redis replies to each command before the time of the next one comes.
    for (let at = 1_000; at <= AN_HOUR_MS; at += 1_000) {
      clock.moveTo(at);
      await waiter.locks.ping();
    }
    expect(await requestCount()).toBe(3 + AN_HOUR_MS / 1_000);
    await lease.release();
    await (await waiting).release();
  });

  it('released: nothing is sent any more, whatever became of the attempts before', async () => {
    const clock = new ManualClock();
    const opened = lab.open(SHORT_WATCHDOG, undefined, clock.runtime('released'));
    const { locks } = opened;
    const key = newKey();
    const first = await locks.acquire(key);
    expect(await locks.tryAcquire(key)).toBeNull();
    const patient = locks.tryAcquire(key, { waitMs: 20 });
    clock.moveTo(20);
    expect(await patient).toBeNull();
    const second = locks.acquire(key);
    await first.release();
    await (await second).release();
    await lab.nothingLeft(opened);
    await lab.admin.config('RESETSTAT');
    clock.moveTo(AN_HOUR_MS);
    await locks.ping();
    expect(Object.keys(await lab.calls()).filter((name) => !/^(config|info)/.test(name))).toEqual(['ping']);
  });
});

describe('what a lock costs its process', () => {
  it('no timer is left of waits that ended early', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const go = deferred();
    const first = locks.withLock(key, () => go.promise);
    await until(() => lab.hold(key));
    const timers = () => process.getActiveResourcesInfo().filter((name) => name === 'Timeout').length;
    const before = timers();
    const callers = Array.from({ length: 200 }, () =>
      locks.withLock(key, { waitMs: 600_000 }, () => undefined),
    );
    expect(timers()).toBeGreaterThan(before + 100);
    go.resolve();
    await Promise.all([first, ...callers]);
    // The keeper's own one, and whatever the test framework has of its own at the moment.
    expect(timers()).toBeLessThan(before + 5);
  });
});
