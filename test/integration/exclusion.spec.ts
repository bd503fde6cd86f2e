import { setImmediate as turn } from 'node:timers/promises';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import { claimFor } from '../support/stores/harness.js';

const lab = useLab();

describe('a lock has one holder', () => {
  it('of processes that request it at the same time exactly one gets it, every time', async () => {
    const workers = await Promise.all([lab.worker(), lab.worker()]);
    const { locks } = lab.open();
    for (let round = 0; round < 25; round += 1) {
      const key = newKey();
      for (const worker of workers) {
        worker.send({ type: 'acquire', id: key, keys: key, options: { waitMs: 0 } });
      }
      const mine = await locks.tryAcquire(key);
      await until(() =>
        workers.every(({ messages }) => messages.some((one) => 'id' in one && one.id === key)),
      );
      const granted = workers.flatMap((worker) => worker.all('acquired').filter(({ id }) => id === key));
      expect(granted.length + (mine ? 1 : 0)).toBe(1);
    }
  });

  it('processes that increment a counter lose no update, with one short-lived process among them', async () => {
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

  it('a hundred tasks on one key run one at a time, whether they share a service or not', async () => {
    const services = [lab.open(), lab.open()];
    const key = newKey();
    let inside = 0;
    let runs = 0;
    const task = async () => {
      inside += 1;
      runs += 1;
      expect(inside).toBe(1);
      await lab.admin.ping();
      await turn();
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

  it('a late release never ends the hold of the next owner, however close it is to the end of the lease', async () => {
    const [one, two] = [lab.open().store.kinds.exclusive, lab.open().store.kinds.exclusive];
    const grantsAfter = { 'a release in time': 0, 'the end of the lease': 0 };
    const bothSeen = () => Object.values(grantsAfter).every((grants) => grants > 0);
    for (let round = 0; round < 150 || !bothSeen(); round += 1) {
      expect(round, `grants came after: ${JSON.stringify(grantsAfter)}`).toBeLessThan(5_000);
      const finalKey = holdName(newKey());
      const late = claimFor(finalKey, { owner: `late:${round}`, leaseMs: 1 + (round % 4) });
      const next = { ...late, owner: `next:${round}`, leaseMs: 30_000 };
      expect(await one.acquire(late)).toMatchObject({ status: 'granted' });
      // Half of the rounds ask a moment later, when the shortest leases are over.
      if (round % 8 >= 4) await lab.admin.ping();
      const [release, reply] = await Promise.all([one.release(late), two.acquire(next), one.release(late)]);
      const isGranted = reply.status === 'granted';
      if (isGranted) grantsAfter[release.wasHeld ? 'a release in time' : 'the end of the lease'] += 1;
      expect(await lab.admin.hkeys(finalKey)).toEqual(isGranted ? [next.owner] : []);
      expect((await one.release(late)).wasHeld).toBe(false);
      expect((await two.release(next)).wasHeld).toBe(isGranted);
    }
  });
});

describe('a process that goes away while it holds', () => {
  it('frees its lock at once when it releases and exits', async () => {
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

  it('by SIGKILL leaves its lock to a waiter when the lease expires, not before', async () => {
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

  // Every moment that another client can see lies between two commands; this looks at one of them.
  const ENDLESS = `
    local endless = 0
    for _, name in ipairs(redis.call('keys', 'lock:*')) do
      if redis.call('pttl', name) == -1 then endless = endless + 1 end
    end
    return endless`;

  it('leaves no hold without an end, also when it is killed in the middle of its work', async () => {
    const looks: number[] = [];
    let looking = true;
    const sampler = (async () => {
      while (looking) looks.push((await lab.admin.eval(ENDLESS, 0)) as number);
    })();
    for (let round = 0; round < 3; round += 1) {
      const worker = await lab.worker({ options: SHORT_WATCHDOG });
      worker.send({ type: 'churn', prefix: 'churn-' });
      await worker.next('churning');
      const soFar = looks.length;
      await until(() => looks.length > soFar + 100 + round * 37);
      await worker.kill('SIGKILL');
    }
    looking = false;
    await sampler;
    expect(looks.length).toBeGreaterThan(300);
    expect(looks.filter((endless) => endless > 0)).toEqual([]);
    await lab.nothingLeft();
  });
});
