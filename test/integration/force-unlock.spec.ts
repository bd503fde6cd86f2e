import { describe, expect, it } from 'vitest';
import { until, within } from '../support/async.js';
import { newKey, SHORT_WATCHDOG, useLab } from '../support/redis/lab.js';

const lab = useLab();

describe('forceUnlock', () => {
  it('ends a hold of another process, wakes who waits, and its holder hears of it at the next renewal', async () => {
    const [holder, other, waiter] = [lab.open(SHORT_WATCHDOG), lab.open(), lab.open()];
    const lease = await holder.locks.acquire(newKey());
    const waiting = waiter.locks.acquire(lease.key, { waitMs: 20_000 });
    await lab.waiting(lease.key);
    expect(await other.locks.forceUnlock(lease.key)).toBe(true);
    await using next = await within(5_000, waiting);
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await until(() => lease.signal.aborted);
    expect(holder.events('lost')).toMatchObject([{ key: lease.key, reason: 'refused' }]);
    expect(await lease.release()).toBe('lost');
    expect(await next.release()).toBe('released');
  });

  it('ends a hold of this process at once, with the reason', async () => {
    const { locks, events } = lab.open();
    const lease = await locks.acquire(newKey());
    const signal = lease.signal;
    expect(await locks.forceUnlock(lease.key)).toBe(true);
    expect(signal.aborted).toBe(true);
    expect(events('lost')).toMatchObject([{ key: lease.key, reason: 'force-unlocked' }]);
    // Its place is free for the next caller, before it has let go of the lease.
    await using _next = await within(5_000, locks.acquire(lease.key));
    expect(await lease.release()).toBe('lost');
    expect(await lab.hold(lease.key)).not.toBeNull();
  });

  it('of a free lock is false', async () => {
    expect(await lab.open().locks.forceUnlock(newKey())).toBe(false);
  });
});
