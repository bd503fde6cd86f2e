import type { LockUsage } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { deferred, until } from '../support/async.js';
import { TestWorker } from '../support/worker.js';
import type { FromJob, JobSetup, ToJob } from './workers/job.worker.js';
import { BOOT_MS, useLab, newKey } from '../support/redis/lab.js';
import { ManualClock } from '../support/redis/manual-clock.js';

const NOTHING: LockUsage = { leases: 0, keys: 0, holds: 0, undoing: 0 };
const REPLICA = new URL('./workers/job.worker.ts', import.meta.url);

const lab = useLab();

const replica = async (setup: Partial<JobSetup> = {}) => {
  const args = [JSON.stringify({ redis: lab.server.url, ...setup } satisfies JobSetup)];
  const worker = lab.track(TestWorker.start<ToJob, FromJob>(REPLICA, { args }));
  await worker.next('ready', { timeoutMs: BOOT_MS });
  return worker;
};

describe('oncePerMs', () => {
  it('a job runs once in its window over all replicas, and again after an error and after a SIGKILL', async () => {
    const [one, two] = await Promise.all([replica({ watchdogMs: 2_000 }), replica({ watchdogMs: 2_000 })]);
    one.send({ type: 'trigger hourly', how: 'fail' });
    expect((await one.next('ran')).result).toBe('no paper');
    one.send({ type: 'trigger hourly', how: 'hang' });
    await until(() => one.all('begins').length === 2);
    two.send({ type: 'trigger hourly', how: 'succeed' });
    expect((await two.next('ran')).result).toBeUndefined();
    await one.kill('SIGKILL');
    expect((await lab.hold('hourly'))!.leftMs).toBeLessThanOrEqual(2_000);
    await until(async () => (await lab.hold('hourly')) === null, {
      what: 'the lease of the crashed one ends',
    });
    for (const result of ['sent', undefined]) {
      two.send({ type: 'trigger hourly', how: 'succeed' });
      expect(await two.next('ran')).toMatchObject({ result, usage: NOTHING });
    }
    const { leftMs } = (await lab.hold('hourly'))!;
    expect([leftMs > 3_500_000, leftMs <= 3_600_100]).toEqual([true, true]);
  });
});

describe('holdAtLeastMs', () => {
  it('three replicas, a job of 20 ms, triggers one after the other: one run, also when the one that ran has died', async () => {
    const replicas = await Promise.all([replica(), replica(), replica()]);
    const results: (string | undefined)[] = [];
    for (const one of replicas) {
      one.send({ type: 'trigger' });
      results.push((await one.next('ran')).result);
    }
    expect(results).toEqual(['sent', undefined, undefined]);

    expect((await lab.hold('report'))!.leftMs).toBeGreaterThan(10_000);
    await replicas[0].kill('SIGKILL');
    replicas[1].send({ type: 'trigger' });
    expect((await replicas[1].next('ran')).result).toBeUndefined();
    // Only the time of the hold keeps the job from running again.
    expect((await lab.hold('report'))!.leftMs).toBeLessThan(30_000);
  });

  it('the hold has just that time left after the work, and no caller of the process holds it any more', async () => {
    const worker = await replica();
    worker.send({ type: 'trigger short' });
    expect(await worker.next('ran')).toMatchObject({ result: 'sent', usage: NOTHING });
    const { owner, leftMs } = (await lab.hold('digest'))!;
    expect(leftMs).toBeLessThanOrEqual(1_500);
    const end = performance.now() + leftMs;
    let before = leftMs;
    await until(async () => {
      const hold = await lab.hold('digest');
      if (!hold) return true;
      expect(hold.owner).toBe(owner);
      expect(hold.leftMs).toBeLessThanOrEqual(before);
      before = hold.leftMs;
      return false;
    });
    expect(performance.now()).toBeLessThan(end + 500);
    worker.send({ type: 'trigger short' });
    expect((await worker.next('ran')).result).toBe('sent');
  });

  it.each(['in order', 'by SIGKILL'])(
    'a process that ends %s while it lasts leaves just its time',
    async (how) => {
      // A lease would be there for longer than either of the two minimums.
      const worker = await replica({ watchdogMs: 60_000 });
      for (const type of ['trigger', 'trigger short'] as const) {
        worker.send({ type });
        expect((await worker.next('ran', { timeoutMs: BOOT_MS })).result).toBe('sent');
      }
      const { owner, leftMs } = (await lab.hold('report'))!;
      if (how === 'in order') expect(await worker.finish()).toEqual({ code: 0, signal: null });
      else await worker.kill('SIGKILL');
      const left = (await lab.hold('report'))!;
      expect(left.owner).toBe(owner);
      expect(left.leftMs).toBeLessThanOrEqual(Math.min(leftMs, 30_000));
      await until(async () => (await lab.hold('digest')) === null, { what: 'the shorter one is over' });
      expect(await lab.hold('report')).toMatchObject({ owner });
    },
  );

  it('a waiter elsewhere goes in when it is over, not when the lease would have been', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const startedAt = performance.now();
    const go = deferred();
    const work = one.locks.withLock(key, { holdAtLeastMs: 400 }, () => go.promise);
    await until(async () => (await lab.hold(key)) !== null);
    const waiting = two.locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);
    go.resolve();
    await work;
    await (await waiting).release();
    expect(performance.now() - startedAt).toBeGreaterThanOrEqual(399);
    expect(performance.now() - startedAt).toBeLessThan(10_000);
  });

  it('a forced unlock ends it, and callers of this process notice', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    await one.locks.withLock(key, { holdAtLeastMs: 20_000 }, () => undefined);
    await expect(one.locks.tryAcquire(key)).resolves.toBeNull();
    const waiting = one.locks.acquire(key, { waitMs: 15_000 });
    await lab.waiting(key);
    expect(await two.locks.forceUnlock(key)).toBe(true);
    await (await waiting).release();
    await lab.nothingLeft();
  });

  it('is measured from the grant: work that takes longer is followed by a normal release', async () => {
    const clock = new ManualClock();
    const { locks, events } = lab.open({}, undefined, clock.runtime('measured'));
    const [short, long] = [newKey(), newKey()];
    await locks.withLock(short, { holdAtLeastMs: 8_000 }, () => clock.moveTo(5_000));
    expect((await lab.hold(short))!.leftMs).toBeLessThanOrEqual(3_000);
    await locks.withLock(long, { holdAtLeastMs: 2_000 }, () => clock.moveTo(5_000 + 2_000));
    expect(await lab.hold(long)).toBeNull();
    expect(events('released').map(({ key }) => key)).toEqual([short, long]);
    await lab.nothingLeft();
  });

  it('of an inner section keeps the hold of the outer one', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await locks.withLock(key, (inside) =>
      locks.withLock(key, { holdAtLeastMs: 10_000, inside }, () => undefined),
    );
    const { leftMs } = (await lab.hold(key))!;
    expect(leftMs).toBeGreaterThan(5_000);
    expect(leftMs).toBeLessThanOrEqual(10_000);
  });

  it('work that fails holds as well: its replicas are not to try again a moment later', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const work = locks.withLock(key, { holdAtLeastMs: 10_000 }, () =>
      Promise.reject(new RangeError('failed')),
    );
    await expect(work).rejects.toThrow(new RangeError('failed'));
    expect(await lab.hold(key)).not.toBeNull();
  });
});
