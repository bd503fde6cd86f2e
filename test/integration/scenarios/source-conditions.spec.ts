import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { ExclusiveClaim } from '../../../lib/core/seam/claim.js';
import { until, within } from '../../support/async.js';
import { ToldClock } from '../workers/told-clock.js';
import { holdName, Lab, newKey, SHORT_WATCHDOG } from './lab.js';
import { openLocks } from './open-locks.js';

/** What the project's source documents ask of a lock, by their numbers. */
let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

describe('A2. the four conditions, on one node', () => {
  it('mutual exclusion: of processes that ask at the same moment exactly one gets the lock, every time', async () => {
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

  it('no deadlock: the lock of a process killed with SIGKILL is free after its lease', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const holder = await lab.worker();
    holder.send({ type: 'acquire', id: 'one', keys: key, options: { leaseMs: 700 } });
    await holder.next('acquired');
    await holder.kill('SIGKILL');
    expect(await lab.hold(key)).not.toBeNull();
    await (await within(10_000, locks.acquire(key, { waitMs: 20_000 }))).release();
  });

  it('fault tolerance, as far as one node goes: holds survive its crash, and it goes on where it was', async () => {
    await using own = await Lab.start({ appendFsync: 'always' });
    const [one, two] = [own.open({ watchdogMs: 3_000 }), own.open()];
    const lease = await one.locks.acquire('order');
    const waiting = two.locks.acquire('stock', { waitMs: 10_000 });
    await (await waiting).release();
    await own.server.kill('SIGKILL');
    await own.server.restart();
    expect(await two.locks.tryAcquire('order')).toBeNull();
    await lease.extend(5_000);
    expect(lease.signal.aborted).toBe(false);
    const next = two.locks.acquire('order', { waitMs: 20_000 });
    await own.waiting('order');
    expect(await lease.release()).toBe('released');
    expect((await within(5_000, next)).fencingToken).toBeGreaterThan(lease.fencingToken);
    await (await next).release();
  });

  it('only the owner unlocks: a request in the name of anybody else changes nothing', async () => {
    const [one, two] = [lab.open(), lab.open()];
    await using lease = await one.locks.acquire(newKey());
    const claim: ExclusiveClaim = {
      kind: 'exclusive',
      finalKey: holdName(lease.key),
      owner: 'somebody-else:1',
      leaseMs: 1,
      tokens: 0,
      waits: false,
    };
    expect(await two.store.kinds.exclusive.release(claim)).toMatchObject({ wasHeld: false });
    expect(await two.store.kinds.exclusive.extendMany([claim])).toEqual([{ status: 'lost' }]);
    expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(10_000);
    expect(await lease.release()).toBe('released');
  });
});

describe('B1. deleting by mistake', () => {
  it('never happens, however close the end of the lease, the next grant and the release are together', async () => {
    const [one, two] = [lab.open().store, lab.open().store];
    for (let round = 0; round < 150; round += 1) {
      const key = holdName(newKey());
      const late: ExclusiveClaim = { kind: 'exclusive', finalKey: key, owner: `late:${round}`, leaseMs: 1, tokens: 1, waits: false };
      const next: ExclusiveClaim = { ...late, owner: `next:${round}`, leaseMs: 30_000 };
      await one.kinds.exclusive.acquire(late);
      const [, reply] = await Promise.all([one.kinds.exclusive.release(late), two.kinds.exclusive.acquire(next), one.kinds.exclusive.release(late)]);
      if (reply.status === 'granted') expect(await lab.admin.hkeys(key)).toEqual([next.owner]);
      await two.kinds.exclusive.release(next);
    }
  });
});

describe('B2. reentrancy', () => {
  it('a caller goes in again without asking Redis; only the outermost exit deletes', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await locks.withLock(key, async (outer) => {
      const before = await lab.calls();
      const hold = (await lab.hold(key))!;
      await locks.withLock(key, () =>
        locks.withLock(key, async (innermost) => {
          expect(innermost.fencingToken).toBe(outer.fencingToken);
          expect(await lab.hold(key)).toMatchObject({ owner: hold.owner });
        }),
      );
      expect(await lab.hold(key)).toMatchObject({ owner: hold.owner });
      expect((await lab.calls())['evalsha']).toBe(before['evalsha']);
    });
    expect(await lab.hold(key)).toBeNull();
  });

  it('does not let in another call of the same process', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await using _lease = await locks.acquire(key);
    expect(await locks.tryAcquire(key)).toBeNull();
  });
});

describe('B3. tryLock(wait, lease)', () => {
  it('gives up when the wait is over, and takes for as long as the lease says and no longer', async () => {
    const [one, two] = [lab.open(SHORT_WATCHDOG), lab.open()];
    await one.locks.ping();
    const key = newKey();
    const lease = (await one.locks.tryAcquire(key, { leaseMs: 800 }))!;
    expect(await two.locks.tryAcquire(key, { waitMs: 100 })).toBeNull();
    const next = (await two.locks.tryAcquire(key, { waitMs: 10_000, leaseMs: 5_000 }))!;
    expect(next.remainingMs()).toBeLessThanOrEqual(5_000);
    expect(lease.signal.aborted).toBe(true);
    expect([await lease.release(), await next.release()]).toEqual(['lost', 'released']);
  });
});

describe('B4. the watchdog', () => {
  const renewals = async () => {
    const { pexpire = 0 } = await lab.calls();
    return pexpire;
  };

  it('gives 30 s, renews every 10 s, and ends with the release', async () => {
    const clock = new ToldClock();
    await using opened = openLocks(lab.server.url, {}, clock.runtime('watched'));
    const lease = await opened.locks.acquire(newKey());
    expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(25_000);
    for (const second of [10, 20, 30, 40]) {
      // As if the time had gone by in Redis as well.
      await lab.admin.pexpire(holdName(lease.key), 20_000);
      const before = await renewals();
      clock.tell(second * 1_000 - 1);
      await opened.locks.ping();
      expect(await renewals()).toBe(before);
      clock.tell(second * 1_000);
      await until(async () => (await renewals()) === before + 1, { what: 'a renewal' });
      await until(() => lease.remainingMs() > 29_000);
      expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(25_000);
    }
    expect(await lease.release()).toBe('released');
    const before = await renewals();
    clock.tell(200_000);
    await opened.locks.ping();
    expect(await renewals()).toBe(before);
  });

  it('leaves a lock with a lease time alone', async () => {
    const clock = new ToldClock();
    await using opened = openLocks(lab.server.url, {}, clock.runtime('fixed'));
    const lease = await opened.locks.acquire(newKey(), { leaseMs: 60_000 });
    const before = await renewals();
    clock.tell(50_000);
    await opened.locks.ping();
    expect(await renewals()).toBe(before);
    expect(lease.remainingMs()).toBe(10_000);
    clock.tell(60_000);
    expect(lease.signal.aborted).toBe(true);
    expect(await lease.release()).toBe('lost');
  });
});
