import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const lab = useLab();
const fair = { mode: 'fair' } as const;
/** An entry counts as alive for this long at most without being refreshed. */
const ALIVE_MS = 6_000;
const PATIENT = { mode: 'fair', waitMs: 20_000 } as const;
/** How long a machine with much else to do may take between two looks. */
const SLACK_MS = 3_000;

const listOf = (key: string): string => `redisson_lock_queue:{${holdName(key)}}`;
const setOf = (key: string): string => `redisson_lock_timeout:{${holdName(key)}}`;
const queue = (key: string): Promise<string[]> => lab.admin.lrange(listOf(key), 0, -1);

const untilQueued = (key: string, count: number): Promise<unknown> =>
  until(async () => (await queue(key)).length === count, { what: `${count} wait for ${key}` });

/** No entry lives for longer than without all the others. */
const expectNoDrift = async (key: string): Promise<void> => {
  for (const owner of await queue(key)) {
    const moment = await lab.admin.zscore(setOf(key), owner);
    const [seconds] = await lab.admin.time();
    // A waiter that got the key since has no entry any more.
    if (moment === null) continue;
    expect(Number(moment) - Number(seconds) * 1_000).toBeLessThan(ALIVE_MS + SLACK_MS);
  }
};

describe('the wait queue of a fair lock', () => {
  it('waiters get the key in order, also when each lease expires without a release', async () => {
    const services = [lab.open(), lab.open(), lab.open()];
    const key = newKey();
    const brief = { ...fair, waitMs: 20_000, leaseMs: 300 } as const;
    await services[0]!.locks.acquire(key, brief);
    const served: number[] = [];
    const leases: Promise<unknown>[] = [];
    for (let i = 0; i < 8; i += 1) {
      leases.push(services[i % 3]!.locks.acquire(key, brief).then(() => served.push(i)));
      await untilQueued(key, i + 1);
    }
    await Promise.all(leases);
    expect(served).toEqual([0, 1, 2, 3, 4, 5, 6, 7]);
    await until(async () => (await lab.hold(key)) === null);
    expect(await lab.admin.exists(listOf(key), setOf(key))).toBe(0);
  }, 30_000);

  it('all 500 callers of five processes get the key, one at a time', async () => {
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

  it('fifty callers that gave up lengthen neither the entries of waiters nor those of new callers', async () => {
    const [holder, waiter] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const dead = await lab.worker();
    const lease = await holder.locks.acquire(newKey(), fair);
    const { key } = lease;
    const before = waiter.locks.acquire(key, PATIENT);
    await untilQueued(key, 1);
    const leaving = Promise.allSettled(
      Array.from({ length: 50 }, () => waiter.locks.acquire(key, { ...fair, waitMs: 1_000 })),
    );
    await untilQueued(key, 51);
    const behind = waiter.locks.acquire(key, PATIENT);
    await untilQueued(key, 52);
    for (const one of await leaving) expect(one).toMatchObject({ reason: { code: 'LOCK_TAKEN' } });
    await untilQueued(key, 2);
    await expectNoDrift(key);
    // The last one does not give up: it dies.
    dead.send({ type: 'acquire', id: 'dead', keys: key, options: { ...fair, waitMs: 500 } });
    await untilQueued(key, 3);
    await dead.kill('SIGKILL');
    const newcomer = waiter.locks.acquire(key, PATIENT);
    await untilQueued(key, 4);
    await expectNoDrift(key);
    await lease.release();
    for (const next of [before, behind, newcomer]) await (await next).release();
    await lab.nothingLeft(holder, waiter);
  }, 40_000);

  it('the entries behind the first one keep their time when the first one gets the key', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const serverMs = async (): Promise<number> => {
      const [seconds, micros] = await lab.admin.time();
      return Number(seconds) * 1_000 + Math.floor(Number(micros) / 1_000);
    };
    const lease = await one.locks.acquire(key, fair);
    const first = one.locks.acquire(key, PATIENT);
    await untilQueued(key, 1);
    // As if its process had stood still: it has not been kept for a good while.
    await lab.admin.zadd(setOf(key), 'XX', (await serverMs()) + 3_000, (await queue(key))[0]!);
    const second = two.locks.acquire(key, { ...fair, waitMs: 600 });
    await untilQueued(key, 2);
    const [, owner] = await queue(key);
    await lease.release();
    const served = await first;
    // A waiter that gave up meanwhile has no entry any more.
    const moment = await lab.admin.zscore(setOf(key), owner!);
    expect(Number(moment ?? Infinity)).toBeGreaterThan(await serverMs());
    await served.release();
    const [ended] = await Promise.allSettled([second]);
    if (ended.status === 'fulfilled') await ended.value.release();
    await lab.nothingLeft(one, two);
  });

  it('a new caller joins a queue of dead entries while the lock is held', async () => {
    const [holder, waiter] = [lab.open(), lab.open()];
    const key = newKey();
    const lease = await holder.locks.acquire(key, fair);
    await lab.admin.rpush(listOf(key), 'dead');
    await lab.admin.zadd(setOf(key), Date.now() - 60_000, 'dead');
    const waiting = waiter.locks.acquire(key, PATIENT);
    await until(async () => (await queue(key)).length === 1 && (await queue(key))[0] !== 'dead');
    await lease.release();
    await (await within(5_000, waiting)).release();
    await lab.nothingLeft(holder, waiter);
  });

  it('entries do not live longer and longer while waiters get the key one after the other', async () => {
    const [one, two] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const key = newKey();
    const lease = await one.locks.acquire(key, fair);
    const callers: Promise<unknown>[] = [];
    for (let i = 0; i < 12; i += 1) {
      const { locks } = i % 2 ? one : two;
      callers.push(locks.withLock(key, PATIENT, () => expectNoDrift(key)));
      await untilQueued(key, i + 1);
    }
    const checked = expectNoDrift(key);
    await Promise.all([checked, lease.release(), ...callers]);
    await lab.nothingLeft(one, two);
  }, 30_000);

  it('a dead first entry blocks the queue only while it lives, not for its whole wait', async () => {
    const [holder, waiter] = [lab.open(SHORT_WATCHDOG), lab.open()];
    const dead = await lab.worker();
    const lease = await holder.locks.acquire(newKey(), fair);
    const { key } = lease;
    dead.send({ type: 'acquire', id: 'dead', keys: key, options: PATIENT });
    await untilQueued(key, 1);
    const callers = [1, 2, 3].map((i) => waiter.locks.withLock(key, PATIENT, () => i));
    await untilQueued(key, 4);
    await dead.kill('SIGKILL');
    await expectNoDrift(key);
    const releasedAt = performance.now();
    await lease.release();
    expect(await Promise.all(callers)).toEqual([1, 2, 3]);
    expect(performance.now() - releasedAt).toBeLessThan(ALIVE_MS + SLACK_MS);
    await lab.nothingLeft(holder, waiter);
  }, 30_000);

  it('the next waiter gets the key within 10 s after a process with any number of waiters was killed', async () => {
    const [holder, next] = [lab.open(), lab.open()];
    const dead = await lab.worker();
    const waits = [{}, { waitMs: 20_000 }, { waitMs: Infinity }];
    const cases = [1, 10, 1_000].map((count, i) => ({ key: newKey(), count, wait: waits[i]! }));
    const leases = await Promise.all(cases.map(({ key }) => holder.locks.acquire(key, fair)));
    // What a hold has left when a waiter comes says nothing of how long the waiter lives.
    await leases[1]!.extend(3_600_000);
    for (const { key, count, wait } of cases) {
      for (let i = 0; i < count; i += 1) {
        dead.send({ type: 'acquire', id: `${key}-${i}`, keys: key, options: { ...fair, ...wait } });
      }
      await untilQueued(key, count);
    }
    await dead.kill('SIGKILL');
    await Promise.all(leases.map((lease) => lease.release()));
    await within(
      10_000,
      Promise.all(cases.map(({ key }) => next.locks.withLock(key, PATIENT, () => undefined))),
    );
    await lab.nothingLeft(holder, next);
  }, 40_000);

  it('entries get their short life back when the Redisson entries before them have gone', async () => {
    const [holder, one, two] = [lab.open(), lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey(), fair);
    const { key } = lease;
    const [thread, waitMs] = ['1b4e28ba-2fa1-41d2-883f-0016d3cca427:7', 300_000];
    const [seconds] = await lab.admin.time();
    await lab.admin.zadd(setOf(key), Number(seconds) * 1_000 + waitMs, thread);
    await lab.admin.rpush(listOf(key), thread);
    const waiting = [one.locks.acquire(key, PATIENT)];
    await untilQueued(key, 2);
    waiting.push(two.locks.acquire(key, PATIENT));
    await untilQueued(key, 3);
    const ours = (await queue(key)).slice(1);
    const leftOf = async (owner: string): Promise<number> =>
      Number(await lab.admin.zscore(setOf(key), owner)) - Number((await lab.admin.time())[0]) * 1_000;
    for (const owner of ours) expect(await leftOf(owner)).toBeGreaterThan(waitMs);
    // Its thread is interrupted: nothing is subtracted.
    await lab.admin.lrem(listOf(key), 1, thread);
    await lab.admin.zrem(setOf(key), thread);
    await until(async () => (await Promise.all(ours.map(leftOf))).every((left) => left < 8_000));
    await lease.release();
    for (const next of waiting) await (await next).release();
    await lab.nothingLeft(holder, one, two);
  });

  it('a caller that does not wait gets a free lock, although another caller gave up just before', async () => {
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
