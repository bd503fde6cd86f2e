import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const lab = useLab();
const fair = { fair: true } as const;
/** A place counts as alive for this long at most beyond the one before it. */
const ALIVE_MS = 6_000;
const PATIENT = { fair: true, waitMs: 20_000, watchdogMs: ALIVE_MS } as const;
/** So long does the hold in the way last. */
const LEASE_MS = SHORT_WATCHDOG.watchdogMs;
/** How long a machine with much else to do may take between two looks. */
const SLACK_MS = 3_000;

const listOf = (key: string): string => `redisson_lock_queue:{${holdName(key)}}`;
const setOf = (key: string): string => `redisson_lock_timeout:{${holdName(key)}}`;
const line = (key: string): Promise<string[]> => lab.admin.lrange(listOf(key), 0, -1);

const inLine = (key: string, count: number): Promise<unknown> =>
  until(async () => (await line(key)).length === count, { what: `${count} wait for ${key}` });

/** The end of each place is no further away than the hold in the way may last, and what each place up to it may live. */
const expectNoDrift = async (key: string, leaseMs: number = LEASE_MS): Promise<void> => {
  const owners = await line(key);
  for (const [i, owner] of owners.entries()) {
    const moment = await lab.admin.zscore(setOf(key), owner);
    const [seconds] = await lab.admin.time();
    // Who has been served since has none any more.
    if (moment === null) continue;
    expect(Number(moment) - Number(seconds) * 1_000).toBeLessThan(leaseMs + (i + 1) * ALIVE_MS + SLACK_MS);
  }
};

describe('the line of a fair lock', () => {
  it('is served in its order also where nobody releases, and each lease runs out', async () => {
    const services = [lab.open(), lab.open(), lab.open()];
    const key = newKey();
    const brief = { ...fair, waitMs: 20_000, leaseMs: 300 } as const;
    await services[0]!.locks.acquire(key, brief);
    const served: number[] = [];
    const leases: Promise<unknown>[] = [];
    for (let i = 0; i < 8; i += 1) {
      leases.push(services[i % 3]!.locks.acquire(key, brief).then(() => served.push(i)));
      await inLine(key, i + 1);
    }
    await Promise.all(leases);
    expect(served).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    await until(async () => (await lab.hold(key)) === null);
    expect(await lab.admin.exists(listOf(key), setOf(key))).toBe(0);
  }, 30_000);

  it('serves all of 500 callers of five processes, one at a time', async () => {
    const services = Array.from({ length: 5 }, () => lab.open());
    const key = newKey();
    let [inside, served] = [0, 0];
    await Promise.all(
      Array.from({ length: 500 }, (_, i) =>
        services[i % 5]!.locks.withLock(key, { ...fair, waitMs: 60_000 }, async () => {
          expect((inside += 1)).toBe(1);
          await lab.admin.ping();
          inside -= 1;
          served += 1;
        }),
      ),
    );
    expect(served).toBe(500);
    await lab.nothingLeft(...services);
  }, 60_000);

  it('keeps no time of fifty who gave up: neither for who stands there, nor for who comes', async () => {
    const [holder, waiter] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const dead = await lab.worker();
    const lease = await holder.locks.acquire(newKey(), fair);
    const { key } = lease;
    const before = waiter.locks.acquire(key, PATIENT);
    await inLine(key, 1);
    const leaving = Promise.allSettled(
      Array.from({ length: 50 }, () => waiter.locks.acquire(key, { ...fair, waitMs: 1_000 })),
    );
    await inLine(key, 51);
    const behind = waiter.locks.acquire(key, PATIENT);
    await inLine(key, 52);
    for (const one of await leaving) expect(one).toMatchObject({ reason: { code: 'LOCK_TAKEN' } });
    await inLine(key, 2);
    await expectNoDrift(key);
    // The last one does not give up: it dies.
    dead.send({ type: 'acquire', id: 'dead', keys: key, options: { ...fair, waitMs: 500 } });
    await inLine(key, 3);
    await dead.kill('SIGKILL');
    const newcomer = waiter.locks.acquire(key, PATIENT);
    await inLine(key, 4);
    await expectNoDrift(key);
    await lease.release();
    for (const next of [before, behind, newcomer]) await (await next).release();
    await lab.nothingLeft(holder, waiter);
  }, 40_000);

  it('leaves those behind the first one their time when that one is served', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const serverMs = async (): Promise<number> => {
      const [seconds, micros] = await lab.admin.time();
      return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
    };
    const lease = await one.locks.acquire(key, fair);
    const first = one.locks.acquire(key, PATIENT);
    await inLine(key, 1);
    // As if its process had stood still: it has not been kept for a good while.
    await lab.admin.zadd(setOf(key), 'XX', (await serverMs()) + 3_000, (await line(key))[0]!);
    const second = two.locks.acquire(key, { ...fair, waitMs: 600 });
    await inLine(key, 2);
    const [, owner] = await line(key);
    await lease.release();
    const served = await first;
    // Who has given up meanwhile has no moment any more.
    const moment = await lab.admin.zscore(setOf(key), owner!);
    expect(Number(moment ?? Infinity)).toBeGreaterThan(await serverMs());
    await served.release();
    const [ended] = await Promise.allSettled([second]);
    if (ended.status === 'fulfilled') await ended.value.release();
    await lab.nothingLeft(one, two);
  });

  it('is joined by who comes when all in it are dead and the lock is held', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await holder.locks.acquire(key, fair);
    await lab.admin.rpush(listOf(key), 'dead');
    await lab.admin.zadd(setOf(key), Date.now() - 60_000, 'dead');
    const waiting = waiter.locks.acquire(key, PATIENT);
    await until(async () => (await line(key)).length === 1 && (await line(key))[0] !== 'dead');
    await lease.release();
    await (await within(5_000, waiting)).release();
    await lab.nothingLeft(holder, waiter);
  });

  it('does not grow longer in time while those in it are served one after the other', async () => {
    const [one, two] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const key = newKey();
    const lease = await one.locks.acquire(key, fair);
    const callers: Promise<unknown>[] = [];
    for (let i = 0; i < 12; i += 1) {
      const { locks } = i % 2 ? one : two;
      callers.push(locks.withLock(key, PATIENT, () => expectNoDrift(key, ALIVE_MS)));
      await inLine(key, i + 1);
    }
    const checked = expectNoDrift(key);
    await Promise.all([checked, lease.release(), ...callers]);
    await lab.nothingLeft(one, two);
  }, 30_000);

  it('ages by no more for a first waiter that has died than that one was patient', async () => {
    const [holder, waiter] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const dead = await lab.worker();
    const lease = await holder.locks.acquire(newKey(), fair);
    const { key } = lease;
    const patienceMs = 2_000;
    dead.send({ type: 'acquire', id: 'dead', keys: key, options: { ...fair, waitMs: patienceMs } });
    await inLine(key, 1);
    const callers = [1, 2, 3].map((i) => waiter.locks.withLock(key, PATIENT, () => i));
    await inLine(key, 4);
    await dead.kill('SIGKILL');
    await expectNoDrift(key);
    const releasedAt = performance.now();
    await lease.release();
    expect(await Promise.all(callers)).toEqual([1, 2, 3]);
    expect(performance.now() - releasedAt).toBeLessThan(LEASE_MS + patienceMs + SLACK_MS);
    await lab.nothingLeft(holder, waiter);
  }, 30_000);

  it('lets who only tries have a free lock although somebody gave up just before', async () => {
    const [holder, other] = [lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey(), fair);
    const startedAt = performance.now();
    expect(await other.locks.tryAcquire(lease.key, { ...fair, waitMs: 400 })).toBeNull();
    const tookMs = performance.now() - startedAt;
    // A timer may come up to a millisecond early; the upper bound leaves room for a busy machine only.
    expect(tookMs).toBeGreaterThan(398);
    expect(tookMs).toBeLessThan(400 + 600);
    expect(await other.locks.tryAcquire(lease.key, fair)).toBeNull();
    await lease.release();
    await using again = await within(1_000, other.locks.tryAcquire(lease.key, fair));
    expect(again).not.toBeNull();
  });
});
