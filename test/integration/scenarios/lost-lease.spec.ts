import { setTimeout as sleep } from 'node:timers/promises';
import { LockConfigurationError, LockLostError, LockStoreError } from 'nest-redis-lock';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { collectUnhandledRejections, until } from '../../support/async.js';
import { holdName, Lab, newKey, SHORT_WATCHDOG } from './lab.js';

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterEach(() => lab.reset());
afterAll(() => lab[Symbol.asyncDispose]());

/** Lets the hold vanish behind the holder's back, and waits until the holder has heard of it. */
const lose = async (key: string, lost: () => readonly unknown[]) => {
  await lab.admin.del(holdName(key));
  await until(() => lost().length > 0, { what: 'the loss is noticed' });
};

describe('10. the news of a loss', () => {
  it('aborts the signal once, with the reason; a release never does', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    const [kept, taken] = await Promise.all([locks.acquire(newKey()), locks.acquire(newKey())]);
    let aborts = 0;
    taken.signal.addEventListener('abort', () => (aborts += 1));
    const keptSignal = kept.signal;
    await lose(taken.key, () => events('lost'));
    expect(aborts).toBe(1);
    expect(taken.signal.reason).toBeInstanceOf(LockLostError);
    expect(taken.signal.reason).toMatchObject({ code: 'LOCK_LOST', key: taken.key });
    expect(events('lost')).toEqual([
      { key: taken.key, reason: 'refused', heldMs: expect.any(Number) as number },
    ]);
    expect([await taken.release(), await kept.release()]).toEqual(['lost', 'released']);
    expect(keptSignal.aborted).toBe(false);
    expect([aborts, events('lost').length]).toEqual([1, 1]);
  });

  it('reaches whoever asks for it late: the signal is aborted already', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    const lease = await locks.acquire(newKey());
    await lose(lease.key, () => events('lost'));
    expect(lease.signal.aborted).toBe(true);
    expect(lease.remainingMs()).toBe(0);
    expect(lease.loss).toBe(lease.signal.reason);
    await lease.release();
  });

  it('reaches every listener, whatever the one before it does', async () => {
    const { locks, events, log } = lab.open(SHORT_WATCHDOG);
    const lease = await locks.acquire(newKey());
    const heard: string[] = [];
    locks.on('lost', () => {
      throw new Error('a broken listener');
    });
    locks.on('lost', () => Promise.reject(new Error('a broken async listener')) as never);
    locks.on('lost', ({ key }) => void heard.push(key));
    await lose(lease.key, () => events('lost'));
    expect(heard).toEqual([lease.key]);
    await until(() => log.filter((line) => line.includes('a broken')).length === 2);
    await lease.release();
  });

  it('tells all leases of a section, nested ones included', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    await locks.withLock(key, async (outer) => {
      await locks.withLock(key, async (inner) => {
        await lose(key, () => events('lost'));
        expect([outer.signal.aborted, inner.signal.aborted]).toEqual([true, true]);
      });
    });
    expect(events('lost')).toHaveLength(1);
  });
});

describe('10. a key that is overwritten with another type', () => {
  it.each([
    ['a text', (name: string) => lab.admin.set(name, 'x')],
    ['a list', (name: string) => lab.admin.multi().del(name).rpush(name, 'x').exec()],
  ])('(%s) is lost at the next renewal, and said once; what is there now stays', async (_what, overwrite) => {
    const { locks, events, log } = lab.open(SHORT_WATCHDOG);
    const [lease, other] = [await locks.acquire(newKey()), await locks.acquire(newKey())];
    const { signal } = lease;
    await overwrite(holdName(lease.key));
    await until(() => events('lost').length > 0);
    expect(events('lost')).toMatchObject([{ key: lease.key, reason: 'refused' }]);
    expect(signal.reason).toMatchObject({ code: 'LOCK_LOST', key: lease.key });
    expect(log.filter((line) => line.includes(`"${lease.key}"`))).toHaveLength(1);
    expect(await lease.release()).toBe('lost');
    expect(await lab.admin.exists(holdName(lease.key))).toBe(1);
    expect([other.lost, events('store-down')]).toEqual([false, []]);
    await other.release();
  });

  it('is lost, and said once, when its holder releases it before a renewal', async () => {
    const { locks, events, log } = lab.open();
    const key = newKey();
    const result = await locks.withLock(key, async () => {
      await lab.admin.set(holdName(key), 'x');
      return 'done';
    });
    expect(result).toBe('done');
    expect(events('lost')).toMatchObject([{ key, reason: 'refused' }]);
    expect(log).toHaveLength(1);
    expect(await lab.admin.get(holdName(key))).toBe('x');
    expect(locks.usage.undoing).toBe(0);
  });
});

describe('11. a holder whose lease ran out', () => {
  it('cannot release, extend or renew what another one has by now', async () => {
    const [one, two] = [lab.open(), lab.open()];
    await one.locks.ping();
    const key = newKey();
    const late = await one.locks.acquire(key, { leaseMs: 400 });
    await using next = await two.locks.acquire(key, { waitMs: 10_000 });
    const held = await lab.hold(key);
    expect(next.fencingToken).toBeGreaterThan(late.fencingToken);
    await expect(late.extend(60_000)).rejects.toBeInstanceOf(LockLostError);
    expect(await late.release()).toBe('lost');
    expect(await lab.hold(key)).toMatchObject({ owner: held!.owner });
    expect(one.events('lost')).toMatchObject([{ key, reason: 'expired' }]);
    expect(await next.release()).toBe('released');
  });
});

describe('12. release and disposal', () => {
  it('calling release again, also at the same time, changes nothing and gives the same answer', async () => {
    const { locks, events } = lab.open();
    const lease = await locks.acquire(newKey());
    expect(await Promise.all([lease.release(), lease.release()])).toEqual(['released', 'released']);
    await using again = await locks.acquire(lease.key);
    expect(await lease.release()).toBe('released');
    expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(0);
    expect(again.remainingMs()).toBeGreaterThan(0);
    expect(events('released')).toHaveLength(1);
  });

  it('releases at the end of an await-using block, and twice does no harm', async () => {
    const { locks } = lab.open();
    const key = newKey();
    {
      await using lease = await locks.acquire(key);
      await lease[Symbol.asyncDispose]();
      expect(await lab.hold(key)).toBeNull();
    }
    await lab.nothingLeft();
  });

  it('disposal during a renewal ends the hold for good: the late answer brings nothing back', async () => {
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
    await sleep(500);
    expect(await lab.hold(lease.key)).toBeNull();
    expect(opened.events('lost')).toEqual([]);
    expect(opened.locks.usage.holds).toBe(0);
  });

  it('disposal never throws, not even with Redis down; release says so', async () => {
    await using own = await Lab.start();
    const { locks, log } = own.open({ commandTimeoutMs: 400 });
    const [one, two] = [await locks.acquire('one'), await locks.acquire('two')];
    await own.server.kill('SIGKILL');
    const rejections = collectUnhandledRejections();
    await one[Symbol.asyncDispose]();
    await expect(two.release()).rejects.toBeInstanceOf(LockStoreError);
    await expect(two.release()).rejects.toBeInstanceOf(LockStoreError);
    expect(await rejections.finish()).toEqual([]);
    expect(log.join('\n')).toMatch(/store does not work/);
  });
});

describe('what becomes of work whose lock was lost', () => {
  const losing = async (onLost?: 'event' | 'throw') => {
    const opened = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    const run = (end: () => string) =>
      opened.locks.withLock(key, { onLost }, async () => {
        await lose(key, () => opened.events('lost'));
        return end();
      });
    return { ...opened, key, run };
  };
  const fail = (): never => {
    throw new RangeError('the work failed');
  };

  it('by default its result stands; the loss is an event and one line in the log', async () => {
    const { run, events, log, key } = await losing();
    expect(await run(() => 'done')).toBe('done');
    expect(events('lost')).toHaveLength(1);
    expect(log.filter((line) => line.includes(`"${key}" was lost`))).toHaveLength(1);
    expect(events('released')).toEqual([]);
  });

  it("onLost: 'throw' turns its success into LockLostError", async () => {
    const { run, key } = await losing('throw');
    await expect(run(() => 'done')).rejects.toMatchObject({ name: 'LockLostError', code: 'LOCK_LOST', key });
  });

  it.each(['event', 'throw'] as const)('its own error passes untouched (onLost: %s)', async (onLost) => {
    const { run } = await losing(onLost);
    await expect(run(fail)).rejects.toThrow(new RangeError('the work failed'));
  });

  it("onLost: 'throw' also notices a loss that only the release shows", async () => {
    const { locks, events } = lab.open();
    const key = newKey();
    const work = locks.withLock(key, { onLost: 'throw' }, async () => lab.admin.del(holdName(key)));
    await expect(work).rejects.toBeInstanceOf(LockLostError);
    expect(events('lost')).toMatchObject([{ key, reason: 'refused' }]);
  });
});

describe('extend', () => {
  it('lengthens a fixed lease from now, and never shortens one', async () => {
    const { locks } = lab.open();
    await using lease = await locks.acquire(newKey(), { leaseMs: 5_000 });
    await lease.extend(60_000);
    expect(lease.remainingMs()).toBeGreaterThan(50_000);
    await lease.extend(1_000);
    expect(lease.remainingMs()).toBeGreaterThan(50_000);
    expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(50_000);
  });

  it('of a lease on the watchdog survives the renewals that follow', async () => {
    const { locks } = lab.open(SHORT_WATCHDOG);
    await using lease = await locks.acquire(newKey());
    await lease.extend(60_000);
    await sleep(500);
    expect((await lab.hold(lease.key))!.leftMs).toBeGreaterThan(50_000);
    expect(lease.remainingMs()).toBeGreaterThan(50_000);
  });

  it('of a lost lease is LockLostError, and takes nothing back', async () => {
    const { locks } = lab.open();
    const lease = await locks.acquire(newKey());
    await lab.admin.del(holdName(lease.key));
    await expect(lease.extend(60_000)).rejects.toBeInstanceOf(LockLostError);
    expect(await lab.hold(lease.key)).toBeNull();
    expect(lease.signal.aborted).toBe(true);
    expect(await lease.release()).toBe('lost');
  });

  it('after the release changes nothing in Redis and says that it is over', async () => {
    const { locks } = lab.open();
    const lease = await locks.acquire(newKey());
    await lease.release();
    await using next = await locks.acquire(lease.key, { leaseMs: 5_000 });
    await expect(lease.extend(60_000)).rejects.toBeInstanceOf(LockConfigurationError);
    expect((await lab.hold(lease.key))!.leftMs).toBeLessThanOrEqual(5_000);
    expect(next.remainingMs()).toBeLessThanOrEqual(5_000);
  });
});
