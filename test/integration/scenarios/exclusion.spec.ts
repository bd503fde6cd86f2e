import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { within } from '../../support/async.js';
import { Lab, newKey, SHORT_WATCHDOG } from '../../support/redis/lab.js';

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

describe('1. processes on a non-atomic counter', () => {
  it('lose no update on either of two locks, with one short-lived process among them', async () => {
    const counters = ['counter-a', 'counter-b'];
    const workers = await Promise.all([lab.worker(), lab.worker(), lab.worker()]);
    const rounds = [150, 150, 15];
    workers.forEach((worker, i) => worker.send({ type: 'count', counters, rounds: rounds[i]! }));
    await workers[2].next('counted');
    expect(await workers[2].finish()).toEqual({ code: 0, signal: null });
    await Promise.all([workers[0].next('counted'), workers[1].next('counted')]);
    expect(await lab.admin.mget(counters)).toEqual(['315', '315']);
    await lab.admin.del(counters);
    await lab.nothingLeft();
  });
});

describe('2. a hundred tasks on one key', () => {
  it('are never two inside, whether they share a service or not', async () => {
    const services = [lab.open(), lab.open()];
    const key = newKey();
    let inside = 0;
    let runs = 0;
    const task = async () => {
      inside += 1;
      runs += 1;
      expect(inside).toBe(1);
      await sleep(1);
      expect(inside).toBe(1);
      inside -= 1;
    };
    const tasks = Array.from({ length: 100 }, (_, i) =>
      services[i % 2]!.locks.withLock(key, { waitMs: 30_000 }, task),
    );
    await Promise.all(tasks);
    expect(runs).toBe(100);
    await lab.nothingLeft(...services);
  });
});

describe('3. a process that goes away while it holds', () => {
  it('frees its lock at once when it releases and ends by itself', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const holder = await lab.worker();
    holder.send({ type: 'acquire', id: 'one', keys: key });
    await holder.next('acquired');
    const waiting = locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);
    expect(await lab.hold(key)).toMatchObject({ leftMs: expect.any(Number) });
    holder.send({ type: 'release', id: 'one' });
    await (await within(5_000, waiting)).release();
    expect((await holder.next('released')).outcome).toBe('released');
    expect(await holder.finish()).toEqual({ code: 0, signal: null });
  });

  it('killed with SIGKILL, leaves the lock to a waiter when its lease has run out, not before', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const holder = await lab.worker({ options: SHORT_WATCHDOG });
    holder.send({ type: 'acquire', id: 'one', keys: key });
    const { token } = await holder.next('acquired');
    const waiting = locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);
    await holder.kill('SIGKILL');
    const killedAt = performance.now();
    const { leftMs } = (await lab.hold(key))!;
    const lookedAt = performance.now();
    await using lease = await waiting;
    // Neither clock is finer than a millisecond.
    expect(performance.now()).toBeGreaterThanOrEqual(killedAt + leftMs - 2);
    expect(performance.now()).toBeLessThan(lookedAt + leftMs + 1_000);
    expect(lease.fencingToken).toBeGreaterThan(token);
  });
});
