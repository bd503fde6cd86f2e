import { LockStoreError } from 'nest-redis-lock';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { collectUnhandledRejections, until, within, type RejectionCollector } from '../../support/async.js';
import { Lab } from './lab.js';
import { COMMAND_TIMEOUT_MS as commandTimeoutMs, expectOneOutage, storeFailure } from './store-failures.js';

/** Far below the 30 seconds of a lease: what is gone by then was released. */
const SOON_MS = 8_000;

let rejections: RejectionCollector;
beforeEach(() => {
  rejections = collectUnhandledRejections();
});
afterEach(async () => {
  expect(await rejections.finish()).toEqual([]);
});

const gone = (lab: Lab, key: string) =>
  until(async () => !(await lab.hold(key)), { timeoutMs: SOON_MS, what: 'the hold is gone' });

describe('Redis is down at the release', () => {
  it('the result stands; an event, a line in the log; the hold is gone soon after Redis is back', async () => {
    await using lab = await Lab.start({ appendFsync: 'always' });
    const opened = lab.open({ commandTimeoutMs });
    const result = await opened.locks.withLock('order', async () => {
      await lab.server.kill('SIGKILL');
      return 'paid';
    });
    expect(result).toBe('paid');
    expect(opened.log.filter((line) => line.includes('releasing "order"'))).toHaveLength(1);
    expect(opened.locks.usage).toMatchObject({ leases: 0, holds: 0, undoing: 1 });
    await lab.server.restart();
    await until(() => lab.admin.ping());
    await gone(lab, 'order');
    await opened.locks.ping();
    expectOneOutage(opened);
    expect(opened.events('lost')).toEqual([]);
    await lab.nothingLeft(opened);
  });

  it('the error of the work passes untouched', async () => {
    await using lab = await Lab.start({ appendFsync: 'always' });
    const opened = lab.open({ commandTimeoutMs });
    const failure = new RangeError('no money');
    const work = opened.locks.withLock('order', async () => {
      await lab.server.kill('SIGKILL');
      throw failure;
    });
    expect(await work.catch((error: unknown) => error)).toBe(failure);
    await lab.server.restart();
    await until(() => lab.admin.ping());
    await gone(lab, 'order');
  });

  it("onLost: 'throw' does not make a loss of it: nothing was lost", async () => {
    await using lab = await Lab.start({ appendFsync: 'always' });
    const opened = lab.open({ commandTimeoutMs });
    const work = opened.locks.withLock('order', { onLost: 'throw' }, async () => {
      await lab.server.kill('SIGKILL');
      return 'paid';
    });
    expect(await work).toBe('paid');
  });

  it('release() by hand says so, again and again, and the hold is gone soon after Redis is back', async () => {
    await using lab = await Lab.start({ appendFsync: 'always' });
    const opened = lab.open({ commandTimeoutMs });
    const lease = await opened.locks.acquire('order');
    await lab.server.kill('SIGKILL');
    const failure = await storeFailure(lease.release(), /releasing "order".*connection/);
    expect(await lease.release().catch((error: unknown) => error)).toBe(failure);
    await lab.server.restart();
    await until(() => lab.admin.ping());
    await gone(lab, 'order');
  });

  it('several keys: each of them', async () => {
    await using lab = await Lab.start({ appendFsync: 'always' });
    const opened = lab.open({ commandTimeoutMs });
    const keys = ['a', 'b', 'c'];
    await opened.locks.withLock(keys, () => lab.server.kill('SIGKILL'));
    await lab.server.restart();
    await until(() => lab.admin.ping());
    for (const key of keys) await gone(lab, key);
    await lab.nothingLeft(opened);
  });
});

describe('Redis does not answer the release', () => {
  it('the result stands within the command time-out, and the lock is free soon after it answers again', async () => {
    await using lab = await Lab.start();
    const [opened, other] = [lab.open({ commandTimeoutMs }), lab.open()];
    const result = opened.locks.withLock('order', async () => {
      await lab.server.kill('SIGSTOP');
      return 'paid';
    });
    expect(await within(commandTimeoutMs + 2_000, result)).toBe('paid');
    await lab.server.kill('SIGCONT');
    await (await within(SOON_MS, other.locks.acquire('order', { waitMs: 20_000 }))).release();
    await lab.nothingLeft(opened, other);
  });

  it('its answer is lost: the hold is gone, and is not mistaken for a lost one', async () => {
    await using lab = await Lab.start();
    const proxy = await lab.proxy();
    const opened = lab.open({ commandTimeoutMs }, proxy.url);
    expect(await opened.locks.withLock('order', () => void proxy.swallowReplies())).toBeUndefined();
    expect(await lab.hold('order')).toBeNull();
    await proxy.restore();
    await lab.nothingLeft(opened);
    expect(opened.events('lost')).toEqual([]);
  });

  it('callers of the same process who stand behind it get the failure when their time is over, not "taken"', async () => {
    await using lab = await Lab.start();
    const opened = lab.open({ commandTimeoutMs });
    const lease = await opened.locks.acquire('order');
    await lab.server.kill('SIGSTOP');
    const releasing = storeFailure(lease.release(), /did not answer/);
    const next = opened.locks.acquire('order', { waitMs: 100 }).catch((error: unknown) => error);
    await releasing;
    expect(await next).toBeInstanceOf(LockStoreError);
    await lab.server.kill('SIGCONT');
    await lab.nothingLeft(opened);
  });
});

describe('a renewal fails', () => {
  it('once, and the next succeeds: nothing is lost', async () => {
    await using lab = await Lab.start();
    const proxy = await lab.proxy();
    const opened = lab.open({ watchdogMs: 3_000, commandTimeoutMs: 300 }, proxy.url);
    const lease = await opened.locks.acquire('order');
    let renewals = 0;
    proxy.onData((connection, direction, chunk) => {
      if (direction !== 'toServer' || !chunk.includes('evalsha')) return;
      renewals += 1;
      if (renewals === 1) connection.cut();
    });
    const grantedAt = performance.now();
    await until(() => renewals >= 2 && performance.now() - grantedAt > 3_000);
    expect((await lab.hold('order'))!.leftMs).toBeGreaterThan(0);
    expect([opened.events('lost'), lease.signal.aborted]).toEqual([[], false]);
    expect(await lease.release()).toBe('released');
  });

  it('until the lease is over: that is the loss, at that time and not later', async () => {
    await using lab = await Lab.start();
    const opened = lab.open({ watchdogMs: 1_000, commandTimeoutMs: 300 });
    const lease = await opened.locks.acquire('order');
    const sentBefore = performance.now();
    await lab.server.kill('SIGSTOP');
    await until(() => lease.signal.aborted);
    expect(performance.now() - sentBefore).toBeLessThan(1_000 + 500);
    expect(opened.events('lost')).toMatchObject([{ key: 'order', reason: 'expired' }]);
    await lab.server.kill('SIGCONT');
    await until(async () => !(await lab.hold('order')));
    expect(await lease.release()).toBe('lost');
  });
});
