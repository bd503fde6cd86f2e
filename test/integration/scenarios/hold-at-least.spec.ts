import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until } from '../../support/async.js';
import { TestWorker } from '../../support/worker.js';
import type { FromJob, JobSetup, ToJob } from '../workers/job.worker.js';
import { BOOT_MS, Lab, newKey } from './lab.js';

const REPLICA = new URL('../workers/job.worker.ts', import.meta.url);

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

const replica = async (setup: Partial<JobSetup> = {}) => {
  const args = [JSON.stringify({ redis: lab.server.url, ...setup } satisfies JobSetup)];
  const worker = lab.track(TestWorker.start<ToJob, FromJob>(REPLICA, { args }));
  await worker.next('ready', { timeoutMs: BOOT_MS });
  return worker;
};

describe('holdAtLeastMs', () => {
  it('three replicas, a job of 20 ms, triggers 200 ms apart: one run, also when the one that ran has died', async () => {
    const replicas = await Promise.all([replica(), replica(), replica()]);
    const results: (string | undefined)[] = [];
    for (const one of replicas) {
      const next = sleep(200);
      one.send({ type: 'trigger' });
      results.push((await one.next('ran')).result);
      await next;
    }
    expect(results).toEqual(['sent', undefined, undefined]);

    expect((await lab.hold('report'))!.leftMs).toBeGreaterThan(10_000);
    await replicas[0].kill('SIGKILL');
    replicas[1].send({ type: 'trigger' });
    expect((await replicas[1].next('ran')).result).toBeUndefined();
    // Nothing but the time of the hold keeps the job from running again, and nobody stands in its way by hand.
    expect((await lab.hold('report'))!.leftMs).toBeLessThan(30_000);
  });

  it('the hold is not renewed after the work, and ends so long after the grant, not after the lease', async () => {
    const worker = await replica({ watchdogMs: 1_000 });
    worker.send({ type: 'trigger short' });
    expect(await worker.next('ran')).toMatchObject({ result: 'sent', lingering: 1 });
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
    // The process counts from when it heard of the grant, a little later than Redis.
    await until(async () => {
      worker.send({ type: 'trigger short' });
      return (await worker.next('ran')).result === 'sent';
    });
  });

  it('a process that ends in order leaves the hold to its time', async () => {
    const worker = await replica();
    worker.send({ type: 'trigger' });
    await worker.next('ran');
    expect(await worker.finish()).toEqual({ code: 0, signal: null });
    expect((await lab.hold('report'))!.leftMs).toBeGreaterThan(10_000);
  });

  it('is measured from the grant: work that takes longer is followed by a normal release', async () => {
    const { locks, events } = lab.open();
    const key = newKey();
    await locks.withLock(key, { holdAtLeastMs: 30 }, () => sleep(60));
    expect(await lab.hold(key)).toBeNull();
    expect(events('released')).toHaveLength(1);
    await lab.nothingLeft();
  });

  it('a fixed lease that is shorter is lengthened to it', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await locks.withLock(key, { leaseMs: 100, holdAtLeastMs: 10_000 }, () => undefined);
    expect((await lab.hold(key))!.leftMs).toBeGreaterThan(5_000);
    await expect(locks.tryAcquire(key)).resolves.toBeNull();
  });

  it('of an inner section keeps the hold of the outer one', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await locks.withLock(key, () => locks.withLock(key, { holdAtLeastMs: 10_000 }, () => undefined));
    const { leftMs } = (await lab.hold(key))!;
    expect(leftMs).toBeGreaterThan(5_000);
    expect(leftMs).toBeLessThanOrEqual(30_000);
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
