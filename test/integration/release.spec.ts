import { detached, LockStoreError, type LockService } from 'nest-redis-lock';
import { createTestingLocks } from 'nest-redis-lock/testing';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { Lab, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';
import type { OpenLocks } from '../support/redis/open-locks.js';
import {
  COMMAND_TIMEOUT_MS as commandTimeoutMs,
  expectOneOutage,
  storeFailure,
} from '../support/redis/store-failures.js';
import { failOnUnhandledRejections } from '../support/unhandled-rejections.js';

/** Far below the 30 seconds of a lease: what is gone by then was released. */
const SOON_MS = 8_000;

failOnUnhandledRejections();
const lab = useLab();

const gone = (place: Lab, key: string) =>
  until(async () => !(await place.hold(key)), { timeoutMs: SOON_MS, what: 'the hold is gone' });

describe('a release', () => {
  it('called again, also at the same time, changes nothing and gives the same answer', async () => {
    const { locks, events } = lab.open();
    const lease = await locks.acquire(newKey());
    expect(await Promise.all([lease.release(), lease.release()])).toEqual(['released', 'released']);
    await using again = await locks.acquire(lease.key);
    expect(await lease.release()).toBe('released');
    expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(0);
    expect(again.remainingMs()).toBeGreaterThan(0);
    expect(events('released')).toHaveLength(1);
  });

  it('comes at the end of an await-using block, and twice does no harm', async () => {
    const { locks } = lab.open();
    const key = newKey();
    {
      await using lease = await locks.acquire(key);
      await lease[Symbol.asyncDispose]();
      expect(await lab.hold(key)).toBeNull();
    }
    await lab.nothingLeft();
  });

  it('during a renewal ends the hold for good: the late answer brings nothing back', async () => {
    const proxy = await lab.proxy();
    const opened = lab.open(SHORT_WATCHDOG, proxy.url);
    const lease = await opened.locks.acquire(newKey());
    let renewals = 0;
    proxy.onData((connection, direction, chunk) => {
      if (direction !== 'toServer' || !chunk.includes('evalsha')) return;
      renewals += 1;
      connection.delay(100, ['toClient']);
    });
    await until(() => renewals === 1, { what: 'a renewal is under way' });
    await lease[Symbol.asyncDispose]();
    // On the same connection, behind the answer to the renewal.
    await opened.locks.ping();
    expect(await lab.hold(lease.key)).toBeNull();
    expect(opened.events('lost')).toEqual([]);
    expect(opened.locks.usage.holds).toBe(0);
  });
});

/** A server that keeps its data, and one service on it. */
const startKeeping = async () => {
  const own = lab.track(await Lab.start({ appendFsync: 'always' }));
  const bringBack = async () => {
    await own.server.restart();
    await until(() => own.admin.ping());
  };
  return { own, opened: own.open({ commandTimeoutMs }), bringBack };
};

describe('Redis is down at the release', () => {
  it('the result stands; an event, a line in the log; the hold is gone soon after Redis is back', async () => {
    const { own, opened, bringBack } = await startKeeping();
    const result = await opened.locks.withLock('order', async () => {
      await own.server.kill('SIGKILL');
      return 'paid';
    });
    expect(result).toBe('paid');
    expect(opened.log.filter((line) => line.includes('releasing "order"'))).toHaveLength(1);
    expect(opened.locks.usage).toMatchObject({ leases: 0, holds: 0, undoing: 1 });
    await bringBack();
    await gone(own, 'order');
    await opened.locks.ping();
    expectOneOutage(opened);
    expect(opened.events('lost')).toEqual([]);
    await own.nothingLeft(opened);
  });

  it('the error of the work passes untouched', async () => {
    const { own, opened, bringBack } = await startKeeping();
    const failure = new RangeError('no money');
    const work = opened.locks.withLock('order', async () => {
      await own.server.kill('SIGKILL');
      throw failure;
    });
    expect(await work.catch((error: unknown) => error)).toBe(failure);
    await bringBack();
    await gone(own, 'order');
  });

  it("onLost: 'throw' does not make a loss of it: nothing was lost", async () => {
    const { own, opened } = await startKeeping();
    const work = opened.locks.withLock('order', { onLost: 'throw' }, async () => {
      await own.server.kill('SIGKILL');
      return 'paid';
    });
    expect(await work).toBe('paid');
  });

  it('release() by hand says so, again and again; disposal never throws; both holds are gone soon after Redis is back', async () => {
    const { own, opened, bringBack } = await startKeeping();
    const [lease, disposed] = [await opened.locks.acquire('order'), await opened.locks.acquire('stock')];
    await own.server.kill('SIGKILL');
    await disposed[Symbol.asyncDispose]();
    expect(opened.log.join('\n')).toMatch(/store does not work/);
    const failure = await storeFailure(lease.release(), /releasing "order".*connection/);
    expect(await lease.release().catch((error: unknown) => error)).toBe(failure);
    await bringBack();
    for (const key of ['order', 'stock']) await gone(own, key);
  });

  it('each of several keys is free soon after Redis is back', async () => {
    const { own, opened, bringBack } = await startKeeping();
    const keys = ['a', 'b', 'c'];
    await opened.locks.withLock(keys, () => own.server.kill('SIGKILL'));
    await bringBack();
    for (const key of keys) await gone(own, key);
    await own.nothingLeft(opened);
  });

  it('for good: the result stands, it is tried again until the end of the lease, and nothing is kept', async () => {
    const proxy = await lab.proxy();
    const { locks, log } = lab.open({ commandTimeoutMs: 300, watchdogMs: 3_000 }, proxy.url);
    const result = await locks.withLock('order', { leaseMs: 1_000 }, () => {
      proxy.refuse();
      proxy.cut();
      return 'paid';
    });
    expect(result).toBe('paid');
    await until(() => Object.values(locks.usage).every((size) => size === 0), {
      what: 'it gives up at the end of the lease',
    });
    expect(log.some((line) => line.includes('tried again'))).toBe(true);
  });
});

describe('Redis does not answer the release', () => {
  it('the result stands within the command time-out, and the lock is free soon after it answers again', async () => {
    const own = lab.track(await Lab.start());
    const [opened, other] = [own.open({ commandTimeoutMs }), own.open()];
    const result = opened.locks.withLock('order', async () => {
      await own.server.kill('SIGSTOP');
      return 'paid';
    });
    expect(await within(commandTimeoutMs + 2_000, result)).toBe('paid');
    await own.server.kill('SIGCONT');
    await (await within(SOON_MS, other.locks.acquire('order', { waitMs: 20_000 }))).release();
    await own.nothingLeft(opened, other);
  });

  it('it was lost on its way: it is repeated until that is certain, which is one line, and not only when the lease ends', async () => {
    const proxy = await lab.proxy();
    const opened = lab.open({ commandTimeoutMs }, proxy.url);
    await opened.locks.ping();
    const loseRelease = (): void => {
      const stop = proxy.onData((connection, direction, chunk) => {
        if (direction !== 'toServer' || !chunk.includes('PUBLISH')) return;
        stop();
        connection.blackhole();
      });
    };
    const section = (): string => {
      loseRelease();
      return 'paid';
    };
    expect(await opened.locks.withLock('order', section)).toBe('paid');
    await gone(lab, 'order');
    expect(opened.log.filter((line) => line.includes('order'))).toEqual([
      expect.stringContaining('tried again') as string,
    ]);
    await lab.nothingLeft(opened);
  });

  it('its answer is lost: the hold is gone, and is not mistaken for a lost one', async () => {
    const proxy = await lab.proxy();
    const opened = lab.open({ commandTimeoutMs }, proxy.url);
    expect(await opened.locks.withLock('order', () => void proxy.swallowReplies())).toBeUndefined();
    expect(await lab.hold('order')).toBeNull();
    await proxy.restore();
    await lab.nothingLeft(opened);
    expect(opened.events('lost')).toEqual([]);
  });

  it('callers of the same process who stand behind it get the failure when their time is over, not "taken"', async () => {
    const own = lab.track(await Lab.start());
    const opened = own.open({ commandTimeoutMs });
    const lease = await opened.locks.acquire('order');
    await own.server.kill('SIGSTOP');
    const releasing = storeFailure(lease.release(), /did not answer/);
    const next = opened.locks.acquire('order', { waitMs: 100 }).catch((error: unknown) => error);
    await releasing;
    expect(await next).toBeInstanceOf(LockStoreError);
    await own.server.kill('SIGCONT');
    await own.nothingLeft(opened);
  });
});

describe('a release that its caller does not wait for', () => {
  const options = { awaitRelease: false, waitMs: 0 };
  const idle = (...services: readonly OpenLocks[]) =>
    until(() => services.every(({ locks }) => Object.values(locks.usage).every((size) => size === 0)), {
      what: 'nothing is under way',
    });
  const lockOf = (locks: LockService) => (key: string, section: () => string) =>
    locks.withLock(key, options, section);
  const permitOf = (locks: LockService) => (key: string, section: () => string) =>
    locks.permits(key, { permits: 1 }).withPermit(options, section);

  it.each([
    ['a lock', lockOf],
    ['a permit', permitOf],
  ] as const)(
    '%s: the result is there before the answer to the release, which then comes',
    async (_what, of) => {
      const proxy = await lab.proxy();
      const opened = lab.open({}, proxy.url);
      const key = newKey();
      const result = of(opened.locks)(key, () => {
        proxy.blackhole(['toClient']);
        return 'paid';
      });
      expect(await result).toBe('paid');
      const elsewhere = lab.open().locks;
      await until(async () => !(await elsewhere.isLocked(key)), { what: 'the release was done' });
      expect([opened.events('released'), opened.locks.usage.leases]).toEqual([[], 1]);
      await proxy.restore();
      await idle(opened);
      expect(opened.events('released')).toMatchObject([{ key }]);
    },
  );

  const ROUNDS = 200;

  it.each([
    ['a lock in Redis', () => lockOf(lab.open().locks)],
    ['a permit in Redis', () => permitOf(lab.open().locks)],
    ['a lock in memory', () => lockOf(createTestingLocks())],
    ['a permit in memory', () => permitOf(createTestingLocks())],
  ])('is before what the process asks next, which finds the key free: %s', async (_what, open) => {
    const call = open();
    // Several at once, so that requests are shared in ever other ways; each caller asks once and does not wait.
    const callers = Array.from({ length: 5 }, async () => {
      const key = newKey();
      for (let i = 0; i < ROUNDS; i += 1) expect(await call(key, () => `${i}`)).toBe(`${i}`);
    });
    await Promise.all(callers);
  });

  it('serves waiters of another process and of this one, like any other release', async () => {
    const [one, two] = [lab.open(), lab.open()];
    const key = newKey();
    const began: string[] = [];
    const enter = ({ locks }: OpenLocks, name: string) =>
      locks.withLock(key, { awaitRelease: false }, () => void began.push(name));
    const first = one.locks.withLock(key, { awaitRelease: false }, async () => {
      const waiting = detached(() => [enter(two, 'other process'), enter(one, 'same process')]);
      await until(() => two.locks.usage.leases + one.locks.usage.leases === 3);
      return { waiting };
    });
    await Promise.all((await first).waiting);
    expect(began.sort()).toEqual(['other process', 'same process']);
    await idle(one, two);
    expect(await lab.hold(key)).toBeNull();
  });

  it('fails: the result stands; one line; the hold is gone soon after Redis is back', async () => {
    const { own, opened, bringBack } = await startKeeping();
    const result = await opened.locks.withLock('order', { awaitRelease: false }, async () => {
      await own.server.kill('SIGKILL');
      return 'paid';
    });
    expect(result).toBe('paid');
    await until(() => opened.log.some((line) => line.includes('releasing "order"')));
    await bringBack();
    await gone(own, 'order');
    expect(opened.log.filter((line) => line.includes('releasing "order"'))).toHaveLength(1);
    await idle(opened);
  });
});
