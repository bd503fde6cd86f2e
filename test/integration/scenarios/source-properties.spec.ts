import { setTimeout as sleep } from 'node:timers/promises';
import { LockNotAcquiredError, LockStoreError, type Lease } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { until, within } from '../../support/async.js';
import { holdName, Lab, newKey, SHORT_WATCHDOG } from '../../support/redis/lab.js';

/** What the project's source documents ask of a lock, by their numbers. */
let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

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
    const crashed = await lab.worker({ options: SHORT_WATCHDOG });
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

describe('E2. three outcomes of asking', () => {
  it('got it; did not get it; do not know: a lease, a typed refusal, a typed doubt that is resolved', async () => {
    const proxy = await lab.proxy();
    const [one, two] = [lab.open(), lab.open({ commandTimeoutMs: 400 }, proxy.url)];
    await until(() => two.locks.ping().then(() => true));
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
