import { setTimeout as sleep } from 'node:timers/promises';
import { LockAbortedError } from 'nest-redis-lock';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { until, within } from '../../support/async.js';
import { holdName, Lab, newKey, SHORT_WATCHDOG } from '../../support/redis/lab.js';

const WATCHDOG_MS = SHORT_WATCHDOG.watchdogMs;
const PERIOD_MS = WATCHDOG_MS / 3;

let lab: Lab;
beforeAll(async () => {
  lab = await Lab.start();
});
afterAll(() => lab[Symbol.asyncDispose]());

/** Looks for so long whether the same owner has the key all the time. */
const staysHeld = async (place: Lab, key: string, ms: number) => {
  const { owner } = (await place.hold(key))!;
  for (const end = performance.now() + ms; performance.now() < end; await sleep(20)) {
    expect(await place.hold(key)).toMatchObject({ owner });
  }
};

// Each spends its time waiting for leases, so they wait together.
describe.concurrent('4. Redis restarts without its data while a lock is held', () => {
  it('the release reports the loss, and the next lock of that name is renewed as any other', async () => {
    await using own = await Lab.start();
    const { locks, events, log } = own.open(SHORT_WATCHDOG);
    const lease = await locks.acquire('order');
    await own.server.restart({ keepData: false });
    expect(await lease.release()).toBe('lost');
    expect(events('lost')).toEqual([expect.objectContaining({ key: 'order' })]);
    expect(log).toContainEqual(expect.stringMatching(/"order" was lost/));

    await using next = await locks.acquire('order');
    expect(next.fencingToken).toBeGreaterThan(lease.fencingToken);
    await staysHeld(own, 'order', 2 * WATCHDOG_MS);
    expect(await next.release()).toBe('released');
  });
});

describe.concurrent('5. a lock taken twice and let go twice', () => {
  it('is renewed for its next holder over ten periods', async () => {
    const { locks } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    await locks.withLock(key, () => locks.withLock(key, () => undefined));
    await using lease = await locks.acquire(key);
    await staysHeld(lab, key, 10 * PERIOD_MS);
    expect(lease.remainingMs()).toBeGreaterThan(0);
    expect(await lease.release()).toBe('released');
  });
});

describe.concurrent('6. an acquire called off while its request is under way', () => {
  it('leaves no hold behind', async () => {
    const proxy = await lab.proxy();
    const opened = lab.open({}, proxy.url);
    await opened.locks.ping();
    const key = newKey();
    proxy.delay(500, ['toClient']);
    const caller = new AbortController();
    const acquiring = opened.locks.acquire(key, { signal: caller.signal });
    await until(() => lab.hold(key), { what: 'the request has arrived' });
    caller.abort();
    await expect(within(400, acquiring)).rejects.toBeInstanceOf(LockAbortedError);

    await until(async () => !(await lab.hold(key)), { what: 'the hold is given back' });
    await until(() => Object.values(opened.locks.usage).every((size) => size === 0));
  });
});

describe.concurrent('7. sixteen callers who try, hold and release in turns', () => {
  it('whoever holds is known to the watchdog, and after thousands of turns the last one is still renewed', async () => {
    const { locks } = lab.open(SHORT_WATCHDOG);
    const key = newKey();
    let granted = 0;
    const caller = async () => {
      for (let turn = 0; turn < 500; turn += 1) {
        const lease = await locks.tryAcquire(key, { waitMs: turn % 5 });
        if (!lease) continue;
        granted += 1;
        expect(locks.held().map((held) => held.key)).toContain(key);
        expect(await lease.release()).toBe('released');
      }
    };
    await Promise.all(Array.from({ length: 16 }, caller));
    expect(granted).toBeGreaterThan(100);
    expect(locks.held().map((held) => held.key)).not.toContain(key);

    await using _last = await locks.acquire(key);
    await staysHeld(lab, key, 2 * WATCHDOG_MS);
  });
});

describe.concurrent('8. the end of an inner lock', () => {
  it('keeps the time of the outer one', async () => {
    const { locks } = lab.open();
    const key = newKey();
    await locks.withLock(key, { leaseMs: 60_000 }, async () => {
      await locks.withLock(key, { leaseMs: 1_000 }, async () => {
        expect((await lab.hold(key))!.leftMs).toBeGreaterThan(30_000);
      });
      expect((await lab.hold(key))!.leftMs).toBeGreaterThan(30_000);
    });
    expect(await lab.hold(key)).toBeNull();
  });
});

describe.concurrent('9. an event loop blocked for longer than the lease', () => {
  it('the holder learns at once, does not take the lock again by itself, and does not disturb the next one', async () => {
    const holder = await lab.worker({ options: SHORT_WATCHDOG });
    const { locks } = lab.open();
    const key = newKey();
    holder.send({ type: 'acquire', id: 'one', keys: key });
    const { token } = await holder.next('acquired');
    const next = locks.acquire(key, { waitMs: 20_000 });
    await lab.waiting(key);

    holder.send({ type: 'block', ms: 2 * WATCHDOG_MS });
    await using lease = await next;
    expect(lease.fencingToken).toBeGreaterThan(token);
    // Not even code that runs before the first timer believes in the lease any more.
    expect((await holder.next('unblocked')).remainingMs).toEqual({ one: 0 });
    expect(await holder.next('lost')).toMatchObject({ id: 'one', code: 'LOCK_LOST', remainingMs: 0 });

    const { owner } = (await lab.hold(key))!;
    await sleep(PERIOD_MS * 1.5);
    holder.send({ type: 'release', id: 'one' });
    expect((await holder.next('released')).outcome).toBe('lost');
    expect(await lab.hold(key)).toMatchObject({ owner });
    holder.send({ type: 'look' });
    expect(await holder.next('seen')).toMatchObject({ usage: { holds: 0, leases: 0 }, unhandled: [] });
  });
});

describe.concurrent('one watchdog for all', () => {
  it('a hold that cannot be renewed costs no other its renewal', async () => {
    const { locks, events } = lab.open(SHORT_WATCHDOG);
    const [bad, ...good] = Array.from({ length: 20 }, () => newKey());
    const leases = await Promise.all([bad!, ...good].map((key) => locks.acquire(key)));
    await lab.admin.set(holdName(bad!), 'a string');
    await staysHeld(lab, good[0]!, 2 * WATCHDOG_MS);
    expect(leases.filter((lease) => lease.remainingMs() > 0).map(({ key }) => key)).toEqual(good);
    expect(events('lost').map(({ key }) => key)).toEqual([bad]);
    expect(leases[0]!.signal.aborted).toBe(true);
    await Promise.all(leases.map((lease) => lease[Symbol.asyncDispose]()));
    await lab.admin.del(holdName(bad!));
  });
});
