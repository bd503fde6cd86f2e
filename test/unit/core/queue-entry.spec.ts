import { describe, expect, it } from 'vitest';
import type { QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import { StoreQueueEntry } from '../../../lib/core/seam/store-queue-entry.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { LockAbortedError, LockNotAcquiredError } from '../../../lib/core/errors/lock.errors.js';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import { newEntry, queued } from '../../support/core/queue-entries.js';
import { granted, grantedFor, released, taken, unknown } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

const GRANT: Grant = { status: 'granted', validForMs: 30_000, token: 7 };
const GONE: QueueEntryOutcome = { status: 'gone' };

/** A core whose first caller stands in the store's line. */
const oneQueued = async (waitMs = 5_000, outcome?: QueueEntryOutcome, signal?: AbortSignal) => {
  const core = coreUnderTest();
  const { manager, store, call } = core;
  const { entry, left } = newEntry();
  if (outcome) entry.notify(outcome);
  const caller = watched(manager.acquire(['k'], call({ waitMs, signal })));
  await settled();
  await store.next('acquire').reply(queued(entry));
  return { ...core, entry, caller, left };
};

describe('a place in line', () => {
  const listenTo = (entry: StoreQueueEntry) => {
    const outcomes: (QueueEntryOutcome | 'uncertain')[] = [];
    entry.listen({
      notified: (outcome) => outcomes.push(outcome),
      missedNotification: () => outcomes.push('uncertain'),
    });
    return outcomes;
  };

  it('tells its outcome once, and only the first one', () => {
    const { entry } = newEntry();
    const outcomes = listenTo(entry);
    entry.notify(GRANT);
    entry.notify(GONE);
    expect(outcomes).toEqual([GRANT]);
  });

  it.each([
    ['a grant', GRANT],
    ['that it is gone', GONE],
  ])('keeps what came before anybody listened: %s, as it was told', (_, outcome) => {
    const { entry } = newEntry();
    entry.notify(outcome);
    expect(listenTo(entry)).toEqual([outcome]);
  });

  it('tells that an outcome may have been missed, also who listens later, but not once there is one', () => {
    const { entry } = newEntry();
    entry.mayHaveMissed();
    const outcomes = listenTo(entry);
    entry.mayHaveMissed();
    expect(outcomes).toEqual(['uncertain', 'uncertain']);
    entry.notify(GRANT);
    expect(listenTo(entry)).toEqual([GRANT]);
  });

  it('tells nothing any more after it was left, and hands the doubt on', async () => {
    const { entry, left } = newEntry();
    const outcomes = listenTo(entry);
    const uncertain = unknown();
    await entry.leave(uncertain);
    entry.notify(GRANT);
    expect([outcomes, left]).toEqual([[], [uncertain]]);
  });
});

describe('a caller whose claim stands in line', () => {
  it('has the lock when the place is granted, and asks nothing meanwhile', async () => {
    const { store, runtime, entry, caller, left } = await oneQueued();
    await runtime.pass(4_000);
    expect([store.sent.length, caller.state]).toEqual([1, 'pending']);
    entry.notify(GRANT);
    await settled();
    expect(caller.value!.fencingToken).toBe(7);
    expect(caller.value!.remainingMs(), 'from the send of the last request answered "queued"').toBe(26_000);
    expect([store.sent.length, left]).toEqual([1, []]);
  });

  it('has it also when the grant came before the answer that it stands in line', async () => {
    const { caller, left } = await oneQueued(5_000, GRANT);
    expect(caller.state).toBe('fulfilled');
    expect(left).toEqual([]);
  });

  it.each([
    ['before the answer', true],
    ['while it waits', false],
  ])('asks again as another owner when its place is gone: %s', async (_, before) => {
    const { store, entry, caller, left } = await oneQueued(5_000, before ? GONE : undefined);
    if (!before) entry.notify(GONE);
    await settled();
    const [first, second] = store.sent;
    expect(second!.claim.owner).not.toBe(first!.claim.owner);
    await store.next('acquire').reply(granted());
    expect([caller.state, left.length]).toEqual(['fulfilled', 0]);
  });

  it('is not sent round and round by places that are gone when its time is over', async () => {
    const { store, runtime, entry, caller } = await oneQueued(1_000);
    runtime.jump(1_000);
    entry.notify(GONE);
    await settled();
    expect(store.sent).toHaveLength(1);
    expect(caller.error).toBeInstanceOf(LockNotAcquiredError);
  });

  it('leaves the line when its time is over, once, and then the lock is said to be taken', async () => {
    const { runtime, caller, left, entry, manager, store } = await oneQueued(1_000);
    await runtime.pass(999);
    expect([caller.state, left.length]).toEqual(['pending', 0]);
    await runtime.pass(1);
    // A store that does not reply is not reported as a lock that is taken.
    expect([caller.state, left.length]).toEqual(['pending', 0]);
    await store.next('inspect').reply(null);
    expect(caller.error).toBeInstanceOf(LockNotAcquiredError);
    expect(left).toHaveLength(1);
    // What is granted now was given back by leaving.
    entry.notify(GRANT);
    await settled();
    expect([left.length, manager.usage]).toEqual([1, { leases: 0, keys: 0, holds: 0, undoing: 0 }]);
  });

  it('leaves the line when the store fails at the end of its time, and is told so', async () => {
    const { runtime, caller, left, store } = await oneQueued(1_000);
    await runtime.pass(1_000);
    await store.next('inspect').fail(new StoreFailure('cut off', 'unknown', { passing: true }));
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    expect(left).toHaveLength(1);
  });

  it('leaves the line when it is aborted', async () => {
    const controller = new AbortController();
    const { caller, left, manager } = await oneQueued(5_000, undefined, controller.signal);
    controller.abort();
    await settled();
    expect(caller.error).toBeInstanceOf(LockAbortedError);
    expect([left.length, manager.usage.keys]).toEqual([1, 0]);
  });

  it('leaves the line when the app stops', async () => {
    const { caller, left, manager } = await oneQueued(Infinity);
    manager.refuseNew();
    await settled();
    expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(left).toHaveLength(1);
  });

  it('goes on trying to leave until the store has answered', async () => {
    const { manager, store, runtime, call } = coreUnderTest();
    let tries = 0;
    const entry = new StoreQueueEntry(() => (++tries < 3 ? Promise.reject(unknown()) : Promise.resolve()));
    watched(manager.acquire(['k'], call({ waitMs: 100 })));
    await settled();
    await store.next('acquire').reply(queued(entry));
    await runtime.pass(100);
    await store.next('inspect').reply(null);
    await runtime.pass(10_000);
    expect([tries, manager.usage.undoing]).toEqual([3, 0]);
  });

  it('counts a grant from before its request was sent, however late it hears of it', async () => {
    const { runtime, entry, caller } = await oneQueued();
    await runtime.pass(400);
    void Promise.resolve().then(() => runtime.jump(300));
    entry.notify(GRANT);
    await settled();
    expect(caller.value!.remainingMs()).toBe(29_300);
  });

  it('asks whether it has what it was granted when the time of that was over before it heard of it', async () => {
    const { store, entry, runtime, caller } = await oneQueued();
    const { owner } = store.sent[0]!.claim;
    void Promise.resolve().then(() => runtime.jump(600));
    entry.notify({ ...GRANT, validForMs: 500 });
    await settled();
    expect([store.unanswered.length, caller.state]).toEqual([1, 'pending']);
    expect(store.next('acquire').claim).toMatchObject({ owner, waits: false, reacquires: true });
    await store.next('acquire').reply(taken());
    expect(store.next('acquire').claim).toMatchObject({ waits: true });
    expect(store.next('acquire').claim.owner).not.toBe(owner);
    await store.next('acquire').reply(granted(8));
    expect(caller.value!.fencingToken).toBe(8);
  });

  it('says in its claim whether it waits', async () => {
    const { manager, store, call } = coreUnderTest();
    watched(manager.acquire(['a'], call({ waitMs: 0 })));
    watched(manager.acquire(['b'], call({ waitMs: 1 })));
    await settled();
    expect(store.sent.map(({ claim }) => claim.waits)).toEqual([false, true]);
  });
});

describe('a grant', () => {
  it('that is told to be lost ends the lease with that reason, and asks nothing', async () => {
    const { manager, store, call, log } = coreUnderTest();
    const lost = new AbortController();
    const caller = watched(manager.acquire(['k'], call()));
    await settled();
    await store.next('acquire').reply({ ...GRANT, lost: lost.signal });
    const reasons: unknown[] = [];
    manager.on('lost', (event) => reasons.push(event.reason));
    lost.abort();
    expect(caller.value!.lost).toBe(true);
    expect(caller.value!.signal.aborted).toBe(true);
    expect(reasons).toEqual(['refused']);
    expect([store.sent.length, log.lines.length, manager.usage.holds]).toEqual([1, 1, 0]);
  });

  it('that is released is not listened to any more', async () => {
    const { manager, store, call, log } = coreUnderTest();
    const lost = new AbortController();
    const caller = watched(manager.acquire(['k'], call()));
    await settled();
    await store.next('acquire').reply({ ...GRANT, lost: lost.signal });
    const releasing = caller.value!.release();
    await store.next('release').reply(released());
    expect(await releasing).toBe('released');
    lost.abort();
    expect([caller.value!.lost, log.lines]).toEqual([false, []]);
  });

  it('that is lost before its caller has it is given back, and asked for again', async () => {
    const { manager, store, call } = coreUnderTest();
    const caller = watched(manager.acquire(['k'], call()));
    await settled();
    await store.next('acquire').reply({ ...GRANT, lost: AbortSignal.abort() });
    expect(store.sent.map(({ name }) => name)).toEqual(['acquire', 'release', 'acquire']);
    expect(caller.state).toBe('pending');
  });

  it.each([
    ['in the answer', 1, 0],
    ['in the answer', 2, 1],
    ['in the answer', undefined, 0],
    ['by message', 1, 0],
    ['by message', 2, 1],
    ['by message', undefined, 0],
  ])('%s, with %s tokens for four callers, is handed over %s times', async (how, tokens, handed) => {
    const byMessage = how === 'by message';
    const { manager, store, call } = coreUnderTest();
    const callers = [watched(manager.acquire(['k'], call()))];
    await settled();
    for (let i = 0; i < 3; i += 1) callers.push(watched(manager.acquire(['k'], call())));
    callers.push(watched(manager.acquire(['k'], call())));
    await store.next('acquire').reply(grantedFor(1));
    watched(callers[0]!.value!.release());
    await store.next('release').reply(released());
    const { entry } = newEntry();
    if (byMessage) await store.next('acquire').reply(queued(entry));
    const grant = { ...GRANT, ...(tokens === undefined ? {} : { tokens }) };
    if (byMessage) entry.notify(grant);
    else await store.next('acquire').reply(grant);
    await settled();
    let leases = 0;
    while (store.unanswered.length === 0) {
      leases += 1;
      const holder = callers[leases]!;
      expect(holder.value!.fencingToken).toBe(6 + leases);
      watched(holder.value!.release());
      await settled();
    }
    expect(leases - 1).toBe(handed);
  });
});

describe('a refusal', () => {
  it('without an end is waited for until a hint comes, however long', async () => {
    const { manager, store, runtime, call } = coreUnderTest();
    const caller = watched(manager.acquire(['k'], call({ waitMs: Infinity })));
    await settled();
    await store.next('acquire').reply({ status: 'taken', retryInMs: Infinity });
    await store.watching[0]!.becomeLive();
    await store.next('acquire').reply({ status: 'taken', retryInMs: Infinity });
    await runtime.pass(3_600_000);
    expect([store.sent.length, caller.state]).toEqual([2, 'pending']);
    await store.watching[0]!.wake();
    await store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
  });
});
