import { once } from 'node:events';
import { LockLostError } from 'nest-redis-lock';
import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { holdName, newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const lab = useLab();

/** Lets the hold vanish behind the holder's back, and waits until the holder has heard of it. */
const lose = async (key: string, lost: () => readonly unknown[]) => {
  await lab.admin.del(holdName(key));
  await until(() => lost().length > 0, { what: 'the loss is noticed' });
};

describe('the news of a loss', () => {
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
      {
        ...{ key: taken.key, kind: 'exclusive', label: 'acquire' },
        ...{ reason: 'refused', heldMs: expect.any(Number) as number },
      },
    ]);
    expect([await taken.release(), await kept.release()]).toEqual(['lost', 'released']);
    expect(keptSignal.aborted).toBe(false);
    expect([aborts, events('lost').length]).toEqual([1, 1]);
  });

  it('reaches a holder that reads the signal late: it is already aborted', async () => {
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
    const received: string[] = [];
    locks.on('lost', () => {
      throw new Error('a broken listener');
    });
    locks.on('lost', () => Promise.reject(new Error('a broken async listener')) as never);
    locks.on('lost', ({ key }) => void received.push(key));
    await lose(lease.key, () => events('lost'));
    expect(received).toEqual([lease.key]);
    await until(() => log.filter((line) => line.includes('a broken')).length === 2);
    await lease.release();
  });

  it('tells all leases of a section, nested ones included', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    await locks.withLock(key, async (outer) => {
      await locks.withLock(key, { inside: outer }, async (inner) => {
        await lose(key, () => events('lost'));
        expect([outer.signal.aborted, inner.signal.aborted]).toEqual([true, true]);
      });
    });
    expect(events('lost')).toHaveLength(1);
  });

  it('frees its place: another call of the holder is served while its work goes on', async () => {
    const { locks } = lab.open({ waitMs: 20_000, ...SHORT_WATCHDOG });
    const key = newKey();
    const tokens = await within(
      8_000,
      locks.withLock(key, async (lease) => {
        await lab.admin.del(holdName(key));
        await until(() => lease.lost);
        return [lease.fencingToken, await locks.withLock(key, (own) => own.fencingToken)];
      }),
      'the section',
    );
    expect(tokens[1]).toBeGreaterThan(tokens[0]!);
    await lab.nothingLeft();
  });
});

describe('a key that is overwritten with another type', () => {
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

  it('is lost, and said once, when its holder releases it before a renewal; the result of the work stands', async () => {
    const opened = lab.open();
    const key = newKey();
    const result = await opened.locks.withLock(key, async () => {
      await lab.admin.set(holdName(key), 'x');
      return 'done';
    });
    expect(result).toBe('done');
    expect(opened.events('lost')).toMatchObject([{ key, reason: 'refused' }]);
    expect(opened.log).toEqual([expect.stringContaining(`"${key}" was lost`)]);
    expect(await lab.admin.get(holdName(key))).toBe('x');
    await lab.admin.del(holdName(key));
    await lab.nothingLeft(opened);
  });
});

describe('a holder whose lease ran out', () => {
  it('cannot release, extend or renew the lock of the next owner', async () => {
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

describe('a lease that is over when its answer comes', () => {
  // Answers are later than the lease is long, and both are far within the command time-out.
  const slow = async () => {
    const proxy = await lab.proxy();
    const opened = lab.open({}, proxy.url);
    await opened.locks.ping();
    return { ...opened, opened, delay: () => proxy.delay(800, ['toClient']) };
  };

  it('is not handed out, and not told as a failure of the store: acquire says that it lost it, and nothing stays behind', async () => {
    const { opened, locks, events, delay } = await slow();
    delay();
    const error: unknown = await locks.acquire(newKey(), { leaseMs: 500 }).catch((thrown: unknown) => thrown);
    expect(error).toBeInstanceOf(LockLostError);
    expect((error as Error).message).toContain('a fixed leaseMs was too short');
    expect(events('store-down')).toEqual([]);
    await lab.nothingLeft(opened);
  });

  it('is not extended: extend says that it is lost', async () => {
    const { locks, delay } = await slow();
    const lease = await locks.acquire(newKey(), { leaseMs: 500 });
    delay();
    await expect(lease.extend(60_000)).rejects.toBeInstanceOf(LockLostError);
    expect(lease.remainingMs()).toBe(0);
    expect(await lease.release()).toBe('lost');
    await until(async () => !(await lab.hold(lease.key)), { what: 'what was extended is given back' });
  });
});

describe('what becomes of work whose lock was lost', () => {
  const losing = (onLost?: 'event' | 'throw') => {
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
    const { run, events, log, key } = losing();
    expect(await run(() => 'done')).toBe('done');
    expect(events('lost')).toHaveLength(1);
    expect(log.filter((line) => line.includes(`"${key}" was lost`))).toHaveLength(1);
    expect(events('released')).toEqual([]);
  });

  it('its result stands too when it took longer than its fixed lease', async () => {
    const { locks, events } = lab.open();
    await locks.ping();
    const key = newKey();
    const work = locks.withLock(key, { leaseMs: 400 }, async ({ signal }) => {
      await once(signal, 'abort');
      return 'done';
    });
    expect(await work).toBe('done');
    expect(events('lost')).toMatchObject([{ key, reason: 'expired' }]);
  });

  it("onLost: 'throw' turns its success into LockLostError", async () => {
    const { run, key } = losing('throw');
    await expect(run(() => 'done')).rejects.toMatchObject({ name: 'LockLostError', code: 'LOCK_LOST', key });
  });

  it.each(['event', 'throw'] as const)('its own error passes untouched (onLost: %s)', async (onLost) => {
    const { run } = losing(onLost);
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
