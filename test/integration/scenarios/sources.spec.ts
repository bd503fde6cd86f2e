import { setTimeout as sleep } from 'node:timers/promises';
import { LockNotAcquiredError, LockStoreError, type Lease } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import type { Claim } from '../../../lib/core/claim.js';
import { until, within } from '../../support/async.js';
import { ToldClock } from '../workers/told-clock.js';
import { holdName, Lab, newKey } from './lab.js';
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
    const claim: Claim = {
      kind: 'exclusive',
      key: holdName(lease.key),
      owner: 'somebody-else:1',
      leaseMs: 1,
      fenceBlock: 0,
    };
    expect(await two.store.release(claim)).toMatchObject({ wasHeld: false });
    expect(await two.store.extendMany([claim])).toEqual([{ status: 'lost' }]);
    expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(10_000);
    expect(await lease.release()).toBe('released');
  });
});

describe('B1. deleting by mistake', () => {
  it('never happens, however close the end of the lease, the next grant and the release are together', async () => {
    const [one, two] = [lab.open().store, lab.open().store];
    for (let round = 0; round < 150; round += 1) {
      const key = holdName(newKey());
      const late: Claim = { kind: 'exclusive', key, owner: `late:${round}`, leaseMs: 1, fenceBlock: 1 };
      const next: Claim = { ...late, owner: `next:${round}`, leaseMs: 30_000 };
      await one.acquire(late);
      const [, reply] = await Promise.all([one.release(late), two.acquire(next), one.release(late)]);
      if (reply.status === 'granted') expect(await lab.admin.hkeys(key)).toEqual([next.owner]);
      await two.release(next);
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
    const [one, two] = [lab.open({ watchdogMs: 1_000 }), lab.open()];
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

describe('C2. six properties', () => {
  it('available: a cut connection costs the commands under way at most, and no lock that is held', async () => {
    const proxy = await lab.proxy();
    const { locks, events } = lab.open({}, proxy.url);
    await using lease = await locks.acquire(newKey());
    for (let cuts = 0; cuts < 5; cuts += 1) {
      proxy.cut();
      const underWay: unknown = await locks
        .withLock(newKey(), () => undefined)
        .catch((error: unknown) => error);
      if (underWay !== undefined) expect(underWay).toBeInstanceOf(LockStoreError);
      await (await locks.acquire(newKey())).release();
    }
    expect([events('lost'), await lease.release()]).toEqual([[], 'released']);
  });

  it('fast: one command takes a free lock, and one gives it back', async () => {
    const { locks } = lab.open();
    await locks.withLock(newKey(), () => undefined);
    await lab.admin.config('RESETSTAT');
    for (let i = 0; i < 10; i += 1) await locks.withLock(newKey(), () => undefined);
    const { evalsha, eval: evals, subscribe, script } = await lab.calls();
    expect({ evalsha, evals, subscribe, script }).toEqual({ evalsha: 20 });
  });

  it('one holder across machines: what another process holds is taken here', async () => {
    const worker = await lab.worker();
    const { locks } = lab.open();
    const key = newKey();
    worker.send({ type: 'acquire', id: 'one', keys: key });
    await worker.next('acquired');
    expect(await locks.tryAcquire(key)).toBeNull();
    expect(await locks.isLocked(key)).toBe(true);
    worker.send({ type: 'release', id: 'one' });
    await worker.next('released');
    expect(await locks.isLocked(key)).toBe(false);
  });

  it('invalidation: a hold nobody renews any more ends by itself', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const crashed = await lab.worker({ options: { watchdogMs: 1_000 } });
    crashed.send({ type: 'acquire', id: 'one', keys: key });
    await crashed.next('acquired');
    await crashed.kill('SIGSTOP');
    await (await within(10_000, locks.acquire(key, { waitMs: 20_000 }))).release();
  });

  it('blocking: acquire waits until the lock is free; non-blocking: tryAcquire answers at once', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const lease = await locks.acquire(key);
    let granted: Lease | undefined;
    const waiting = locks.acquire(key, { waitMs: Infinity }).then((got) => (granted = got));
    expect(await locks.tryAcquire(key)).toBeNull();
    expect(granted).toBeUndefined();
    await lease.release();
    await (await within(5_000, waiting)).release();
  });

  it('reentrant: also through code that does not know that its caller has the lock', async () => {
    const { locks } = lab.open();
    const key = newKey();
    const deduct = () => locks.withLock(key, { waitMs: 0 }, () => 'deducted');
    expect(await locks.withLock(key, async () => [await deduct(), await deduct()])).toEqual([
      'deducted',
      'deducted',
    ]);
  });
});

describe('D1. a hold without a time to live', () => {
  // Every moment that another client can see lies between two commands; this looks at one of them.
  const ENDLESS = `
    local endless = 0
    for _, name in ipairs(redis.call('keys', 'lock:*')) do
      if redis.call('pttl', name) == -1 then endless = endless + 1 end
    end
    return endless`;

  it('never exists, also when clients are killed in the middle of their work', async () => {
    const looks: number[] = [];
    let looking = true;
    const sampler = (async () => {
      while (looking) looks.push((await lab.admin.eval(ENDLESS, 0)) as number);
    })();
    for (let round = 0; round < 3; round += 1) {
      const worker = await lab.worker({ options: { watchdogMs: 1_000 } });
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

describe('E2. three outcomes of asking', () => {
  it('got it; did not get it; do not know: a lease, a typed refusal, a typed doubt that is resolved', async () => {
    const proxy = await lab.proxy();
    const [one, two] = [lab.open(), lab.open({ commandTimeoutMs: 200 }, proxy.url)];
    const key = newKey();
    const lease = await one.locks.acquire(key);
    expect(lease.key).toBe(key);
    await expect(two.locks.acquire(key, { waitMs: 50 })).rejects.toBeInstanceOf(LockNotAcquiredError);
    await lease.release();

    proxy.swallowReplies();
    const doubt: unknown = await two.locks.acquire(key).catch((error: unknown) => error);
    expect(doubt).toBeInstanceOf(LockStoreError);
    expect(doubt).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'unknown', key });
    // It was done; nobody owns it; and nobody has to wait for its 30 seconds.
    expect(await lab.hold(key)).not.toBeNull();
    await proxy.restore();
    await (await within(5_000, one.locks.acquire(key, { waitMs: 20_000 }))).release();
    await lab.nothingLeft(one, two);
  });
});

describe('E3. the lease', () => {
  it('knows its key, its id and its token, and its release says whether it was still ours', async () => {
    const { locks } = lab.open();
    const [one, two] = [await locks.acquire(newKey()), await locks.acquire(newKey())];
    expect(one.keys).toEqual([one.key]);
    expect(one.id).not.toBe(two.id);
    expect([one.fencingToken, two.tokenFor(two.key)].every(Number.isSafeInteger)).toBe(true);
    await lab.admin.del(holdName(two.key));
    expect([await one.release(), await two.release()]).toEqual(['released', 'lost']);
    expect([one.remainingMs(), two.remainingMs()]).toEqual([0, 0]);
  });

  it('of an earlier holder never tells a resource more than that of a later one', async () => {
    const services = [lab.open(), lab.open()];
    const key = newKey();
    const tokens: number[] = [];
    for (let i = 0; i < 20; i += 1) {
      await services[i % 2]!.locks.withLock(key, ({ fencingToken }) => void tokens.push(fencingToken));
      await sleep(0);
    }
    expect(tokens).toEqual([...new Set(tokens)].sort((a, b) => a - b));
  });
});
