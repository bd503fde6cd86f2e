import { readFileSync } from 'node:fs';
import { describe, expect, it } from 'vitest';
import { hashSlot, tagOfSlot } from '../../lib/stores/redis/hash-slot.js';
import { until } from '../support/async.js';
import { holdName, useLab, SHORT_WATCHDOG } from '../support/redis/lab.js';

/*
 * The harm that a client with write access can do, as SECURITY.md says. A test that fails here is good news: delete its
 * line there.
 */
const SECURITY = readFileSync(new URL('../../SECURITY.md', import.meta.url), 'utf8').replaceAll(/\s+/g, ' ');
const NAME = holdName('order');

const lab = useLab();

/** Resolves once every lease of a service has been renewed from now on, as the server counted. */
const renewed = async (times: number): Promise<void> => {
  const requestCount = async () => (await lab.calls())['evalsha'] ?? 0;
  const before = await requestCount();
  await until(async () => (await requestCount()) >= before + times, { what: `${times} renewals` });
};

describe('a client with write access to Redis can, as SECURITY.md says,', () => {
  it('put an owner into the hold of another, so that both believe to hold the lock', async () => {
    expect(SECURITY).toContain('put the id of a holder into the hold of another one');
    const [one, two] = [lab.open(SHORT_WATCHDOG), lab.open(SHORT_WATCHDOG)];
    const first = await one.locks.acquire('order');
    const { owner } = (await lab.hold('order'))!;
    await lab.admin.del(NAME);
    const second = await two.locks.acquire('order', { waitMs: 0 });
    await lab.admin.hset(NAME, owner, '1');
    await renewed(4);
    expect([first.lost, second.lost]).toEqual([false, false]);
    expect(second.fencingToken).toBeGreaterThan(first.fencingToken);
  });

  it('prepare a hold with owner ids that come next, so that both are granted the lock', async () => {
    expect(SECURITY).toContain('Owner ids are not secret and can be foretold');
    const [one, two] = [lab.open(), lab.open()];
    for (const { locks } of [one, two]) {
      const lease = await locks.acquire('another');
      const [instance, count] = (await lab.hold('another'))!.owner.split(':');
      await lease.release();
      await lab.admin.hset(NAME, `${instance}:${Number(count) + 1}`, '1');
    }
    const leases = [await one.locks.tryAcquire('order'), await two.locks.tryAcquire('order')];
    expect(leases.map((lease) => lease?.lost)).toEqual([false, false]);
  });

  it('set fencing tokens back, from where they were set ahead before', async () => {
    expect(SECURITY).toContain('tokens can then be smaller than earlier ones');
    const { locks } = lab.open();
    const fence = `nest_redis_lock:fence:{${tagOfSlot(hashSlot(NAME))}}`;
    await lab.admin.set(fence, '8000000000000000');
    const ahead = await locks.withLock('order', ({ fencingToken }) => fencingToken);
    await lab.admin.del(fence);
    expect(await locks.withLock('order', ({ fencingToken }) => fencingToken)).toBeLessThan(ahead);
  });

  it('end every lock with one command, and each holder learns of it at its next renewal', async () => {
    expect(SECURITY).toContain('delete a hold');
    const { locks } = lab.open(SHORT_WATCHDOG);
    const leases = [await locks.acquire('a'), await locks.acquire('b')];
    await lab.server.cli('FLUSHALL');
    await until(() => leases.every(({ signal }) => signal.aborted));
    expect(await Promise.all(leases.map((lease) => lease.release()))).toEqual(['lost', 'lost']);
  });
});
