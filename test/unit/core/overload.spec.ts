import { beforeEach, describe, expect, it } from 'vitest';
import {
  LockAbortedError,
  LockNotAcquiredError,
  LockStoreError,
} from '../../../lib/core/errors/lock.errors.js';
import { ANOTHER_TRY_MS } from '../../../lib/core/outage/another-try.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { coreUnderTest, watched, type Watched } from '../../support/core/core-under-test.js';
import { granted, QueueStore, taken } from '../../support/core/scripted-store.js';
import { newEntry, queued } from '../../support/core/queue-entries.js';
import { settled } from '../../support/core/virtual-runtime.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';

const overload = (): StoreFailure =>
  new StoreFailure('this process asks it for more than it serves', 'not-executed', { overloaded: true });
/** A connection takes longer than the caller has. */
const opening = (): StoreFailure =>
  new StoreFailure('there was no connection yet', 'not-executed', { transient: true });

describe('a process that asks for more than its store serves', () => {
  let core: ReturnType<typeof coreUnderTest>;
  let events: string[];

  const acquire = (options: Partial<LockCall> = {}): Watched<Lease> =>
    watched(core.manager.acquire(['k'], core.call({ waitMs: 5_000, ...options })));

  beforeEach(() => {
    core = coreUnderTest();
    events = [];
    core.manager.on('store-down', () => events.push('down'));
  });

  it('tells a caller whose request was never sent so, and does not call that an outage', async () => {
    const caller = acquire();
    await core.runtime.pass(5_000);
    await core.store.next('acquire').fail(overload());
    expect(caller.error).toBeInstanceOf(LockStoreError);
    expect(caller.error).toMatchObject({
      ...{ code: 'LOCK_STORE_FAILED', reason: 'overloaded', outcome: 'not-executed', retryable: true },
      message:
        'No request was sent while acquiring "k", after 5000 ms: this process asks it for more than it serves. ' +
        'This says nothing about whether the lock is taken. ' +
        'Ask for fewer locks at once, or try again later. More connections help a database.',
    });
    expect([events, core.log.lines]).toEqual([[], []]);
  });

  it.each([overload, opening])(
    'leaves the callers behind the one that hears of it their own time: %o',
    async (why) => {
      const [first, second] = [acquire({ waitMs: 1_000 }), acquire()];
      await core.runtime.pass(1_000);
      await core.store.next('acquire').fail(why());
      expect([first.state, second.state]).toEqual(['rejected', 'pending']);
      await core.store.next('acquire').reply(granted());
      expect([second.state, ...events]).toEqual(['fulfilled']);
    },
  );

  it('ends the wait of a caller behind an unsent request in its time', async () => {
    core.store.unsent = () => overload();
    const [, second] = [acquire({ waitMs: 60_000 }), acquire({ waitMs: 1_000 })];
    await core.runtime.pass(1_000);
    expect(second.error).toMatchObject({ reason: 'overloaded' });
  });

  it.each([0, 50])('leaves a caller with waitMs %i behind an unsent request a moment', async (waitMs) => {
    core.store.unsent = () => overload();
    acquire();
    const early = acquire({ waitMs });
    await core.runtime.pass(199);
    expect(early.state).toBe('pending');
    await core.runtime.pass(1);
    expect(early.error).toMatchObject({ reason: 'overloaded' });
    const inTime = acquire({ waitMs });
    await core.runtime.pass(150);
    await core.store.next('acquire').reply(granted());
    expect(inTime.error).toBeInstanceOf(LockNotAcquiredError);
    expect(core.runtime.due, 'of the moment no timer is left').toHaveLength(1);
  });

  it.each([overload, opening])(
    'leaves a caller that has just come its moment, when the one before it ends: %o',
    async (why) => {
      core.store.unsent = () => (why === overload ? overload() : undefined);
      acquire({ waitMs: 300 });
      await core.runtime.pass(290);
      const late = acquire({ waitMs: 0 });
      await core.runtime.pass(10);
      await core.store.next('acquire').fail(why());
      expect(late.state).toBe('pending');
      await core.store.next('acquire').reply(granted());
      expect(late.state).toBe('fulfilled');
    },
  );

  it('gives several keys that are not waited for one time-out of requests', async () => {
    const all = watched(core.manager.acquire(['a', 'b'], core.call({ waitMs: 0 })));
    const first = core.store.next('acquire');
    const until = core.runtime.now() + core.store.commandTimeoutMs;
    await core.runtime.pass(700);
    await first.reply(granted());
    const second = core.store.next('acquire');
    expect([first.claim.until, second.claim.until]).toEqual([until, until]);
    await second.reply(granted());
    expect(all.state).toBe('fulfilled');
  });

  it('sets the lease of several keys within the time of the call, and withdraws that no more', async () => {
    const controller = new AbortController();
    const call = core.call({ waitMs: 1_000, leaseMs: 5_000, signal: controller.signal });
    watched(core.manager.acquire(['a', 'b'], call));
    const until = core.runtime.now() + 1_000;
    for (let i = 0; i < 2; i += 1) await core.store.next('acquire').reply(granted());
    const { claim } = core.store.next('acquire');
    expect(claim).toMatchObject({ leaseMs: 5_000, reacquires: true, until });
    expect(claim.withdrawnBy).toBeUndefined();
  });

  it('a waiter that was told "taken" before its last request hears that again', async () => {
    const caller = acquire({ waitMs: 1_000 });
    await core.store.next('acquire').reply(taken(999));
    await core.runtime.pass(1_000);
    const last = core.store.next('acquire');
    expect(last.claim.until, 'it has a moment, and not a time-out of its own').toBe(core.runtime.now() + 200);
    await last.fail(overload());
    expect(caller.error).toBeInstanceOf(LockNotAcquiredError);
  });

  it('lets a caller with a queue entry wait for all of its time, although its entry could not be refreshed', async () => {
    core = coreUnderTest({}, new QueueStore());
    const caller = acquire();
    await core.store.next('acquire').reply(queued(newEntry().entry));
    await core.runtime.pass(1_000);
    // The keeper of the entries fails, and then the caller itself.
    await core.store.next('keep').fail(overload());
    await core.store.next('keep').fail(overload());
    expect(caller.state).toBe('pending');
    await core.runtime.pass(ANOTHER_TRY_MS + 1);
    await core.store.next('keep').reply([{ status: 'held' }]);
    await core.store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
  });

  it('counts a lease from when its request was sent', async () => {
    const caller = acquire({ waitMs: 60_000, leaseMs: 1_000 });
    await core.runtime.pass(20_000);
    await core.store
      .next('acquire')
      .reply({ status: 'granted', validForMs: 1_000, token: 1, since: core.runtime.now() });
    expect(caller.value?.remainingMs()).toBe(1_000);
  });

  it('withdraws unsent requests when a caller gives up, and when the app stops', async () => {
    const controller = new AbortController();
    const caller = acquire({ signal: controller.signal });
    const { claim } = core.store.next('acquire');
    const aborted = (): boolean[] => claim.withdrawnBy!.map((signal) => signal.aborted);
    expect(aborted()).toEqual([false, false]);
    controller.abort();
    await settled();
    expect(aborted()).toEqual([false, true]);
    expect(caller.error).toBeInstanceOf(LockAbortedError);
    void core.manager.close();
    await settled();
    expect(aborted()).toEqual([true, true]);
  });

  it('tells callers behind a withdrawn request, whose time is over, why it was unsent', async () => {
    const controller = new AbortController();
    const first = acquire({ signal: controller.signal });
    const [due, waiting] = [acquire({ waitMs: 50 }), acquire()];
    const request = core.store.next('acquire');
    await core.runtime.pass(50);
    expect(due.state).toBe('pending');
    controller.abort();
    const cause = new StoreFailure('there was no connection', 'not-executed', { passing: true });
    await request.fail(new StoreFailure('withdrawn', 'not-executed', { claimOnly: true, cause }));
    expect(first.error).toBeInstanceOf(LockAbortedError);
    expect(due.error).toMatchObject({ code: 'LOCK_STORE_FAILED', cause });
    await core.store.next('acquire').reply(granted());
    expect(waiting.state).toBe('fulfilled');
  });

  it('a renewal and a release may be sent until their lease ends', async () => {
    const caller = acquire();
    await core.store.next('acquire').reply(granted());
    const { validUntil } = caller.value!.parts[0]!.hold;
    await core.runtime.pass(10_000);
    const renewal = core.store.next('extend');
    expect(renewal.claim.until).toBe(validUntil);
    await renewal.reply([{ status: 'held', validForMs: 30_000 }]);
    void caller.value!.release();
    await settled();
    expect(core.store.next('release').until).toBeGreaterThanOrEqual(validUntil);
  });
});
