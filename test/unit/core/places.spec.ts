import { describe, expect, it } from 'vitest';
import { StoreQueueEntry, type QueueEntryOutcome } from '../../../lib/core/seam/queue-entry.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import { LockAbortedError, LockNotAcquiredError } from '../../../lib/core/errors/lock.errors.js';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import { newPlace, queued } from '../../support/core/queue-entries.js';
import { granted, grantedFor, released, taken, unknown } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

const GRANT: Grant = { status: 'granted', validForMs: 30_000, token: 7 };
const GONE: QueueEntryOutcome = { status: 'gone' };

/** A core whose first caller stands in the store's line. */
const inLine = async (waitMs = 5_000, told?: QueueEntryOutcome, signal?: AbortSignal) => {
  const core = coreUnderTest();
  const { manager, store, call } = core;
  const { place, left } = newPlace();
  if (told) place.notify(told);
  const caller = watched(manager.acquire(['k'], call({ waitMs, signal })));
  await settled();
  await store.next('acquire').answer(queued(place));
  return { ...core, place, caller, left };
};

describe('a place in line', () => {
  const listenTo = (place: StoreQueueEntry) => {
    const heard: (QueueEntryOutcome | 'doubt')[] = [];
    place.listen({
      notified: (outcome) => heard.push(outcome),
      missedNotification: () => heard.push('doubt'),
    });
    return heard;
  };

  it('tells its outcome once, and only the first one', () => {
    const { place } = newPlace();
    const heard = listenTo(place);
    place.notify(GRANT);
    place.notify(GONE);
    expect(heard).toEqual([GRANT]);
  });

  it.each([
    ['a grant', GRANT],
    ['that it is gone', GONE],
  ])('keeps what came before anybody listened: %s, as it was told', (_, outcome) => {
    const { place } = newPlace();
    place.notify(outcome);
    expect(listenTo(place)).toEqual([outcome]);
  });

  it('tells that an outcome may have been missed, also who listens later, but not once there is one', () => {
    const { place } = newPlace();
    place.mayHaveMissed();
    const heard = listenTo(place);
    place.mayHaveMissed();
    expect(heard).toEqual(['doubt', 'doubt']);
    place.notify(GRANT);
    expect(listenTo(place)).toEqual([GRANT]);
  });

  it('tells nothing any more after it was left, and hands the doubt on', async () => {
    const { place, left } = newPlace();
    const heard = listenTo(place);
    const doubt = unknown();
    await place.leave(doubt);
    place.notify(GRANT);
    expect([heard, left]).toEqual([[], [doubt]]);
  });
});

describe('a caller whose claim stands in line', () => {
  it('has the lock when the place is granted, and asks nothing meanwhile', async () => {
    const { store, runtime, place, caller, left } = await inLine();
    await runtime.pass(4_000);
    expect([store.sent.length, caller.state]).toEqual([1, 'pending']);
    place.notify(GRANT);
    await settled();
    expect(caller.value!.fencingToken).toBe(7);
    expect(caller.value!.remainingMs(), 'from the send of the last request answered "queued"').toBe(26_000);
    expect([store.sent.length, left]).toEqual([1, []]);
  });

  it('has it also when the grant came before the answer that it stands in line', async () => {
    const { caller, left } = await inLine(5_000, GRANT);
    expect(caller.state).toBe('fulfilled');
    expect(left).toEqual([]);
  });

  it.each([
    ['before the answer', true],
    ['while it waits', false],
  ])('asks again as another owner when its place is gone: %s', async (_, before) => {
    const { store, place, caller, left } = await inLine(5_000, before ? GONE : undefined);
    if (!before) place.notify(GONE);
    await settled();
    const [first, second] = store.sent;
    expect(second!.claim.owner).not.toBe(first!.claim.owner);
    await store.next('acquire').answer(granted());
    expect([caller.state, left.length]).toEqual(['fulfilled', 0]);
  });

  it('is not sent round and round by places that are gone when its time is over', async () => {
    const { store, runtime, place, caller } = await inLine(1_000);
    runtime.jump(1_000);
    place.notify(GONE);
    await settled();
    expect(store.sent).toHaveLength(1);
    expect(caller.error).toBeInstanceOf(LockNotAcquiredError);
  });

  it('leaves the line when its time is over, once, and then the lock is said to be taken', async () => {
    const { runtime, caller, left, place, manager } = await inLine(1_000);
    await runtime.pass(999);
    expect([caller.state, left.length]).toEqual(['pending', 0]);
    await runtime.pass(1);
    expect(caller.error).toBeInstanceOf(LockNotAcquiredError);
    expect(left).toHaveLength(1);
    // What is granted now was given back by leaving.
    place.notify(GRANT);
    await settled();
    expect([left.length, manager.usage]).toEqual([1, { leases: 0, keys: 0, holds: 0, undoing: 0 }]);
  });

  it('leaves the line when it is aborted', async () => {
    const controller = new AbortController();
    const { caller, left, manager } = await inLine(5_000, undefined, controller.signal);
    controller.abort();
    await settled();
    expect(caller.error).toBeInstanceOf(LockAbortedError);
    expect([left.length, manager.usage.keys]).toEqual([1, 0]);
  });

  it('leaves the line when the app stops', async () => {
    const { caller, left, manager } = await inLine(Infinity);
    manager.refuseNew();
    await settled();
    expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(left).toHaveLength(1);
  });

  it('goes on trying to leave until the store has answered', async () => {
    const { manager, store, runtime, call } = coreUnderTest();
    let tries = 0;
    const place = new StoreQueueEntry(() => (++tries < 3 ? Promise.reject(unknown()) : Promise.resolve()));
    watched(manager.acquire(['k'], call({ waitMs: 100 })));
    await settled();
    await store.next('acquire').answer(queued(place));
    await runtime.pass(10_000);
    expect([tries, manager.usage.undoing]).toEqual([3, 0]);
  });

  it('counts a grant from before its request was sent, however late it hears of it', async () => {
    const { runtime, place, caller } = await inLine();
    await runtime.pass(400);
    void Promise.resolve().then(() => runtime.jump(300));
    place.notify(GRANT);
    await settled();
    expect(caller.value!.remainingMs()).toBe(29_300);
  });

  it('asks whether it has what it was granted when the time of that was over before it heard of it', async () => {
    const { store, place, runtime, caller } = await inLine();
    const { owner } = store.sent[0]!.claim;
    void Promise.resolve().then(() => runtime.jump(600));
    place.notify({ ...GRANT, validForMs: 500 });
    await settled();
    expect([store.open.length, caller.state]).toEqual([1, 'pending']);
    expect(store.next('acquire').claim).toMatchObject({ owner, waits: false, reacquires: true });
    await store.next('acquire').answer(taken());
    expect(store.next('acquire').claim).toMatchObject({ waits: true });
    expect(store.next('acquire').claim.owner).not.toBe(owner);
    await store.next('acquire').answer(granted(8));
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
    await store.next('acquire').answer({ ...GRANT, lost: lost.signal });
    const told: unknown[] = [];
    manager.on('lost', (event) => told.push(event.reason));
    lost.abort();
    expect(caller.value!.lost).toBe(true);
    expect(caller.value!.signal.aborted).toBe(true);
    expect(told).toEqual(['refused']);
    expect([store.sent.length, log.lines.length, manager.usage.holds]).toEqual([1, 1, 0]);
  });

  it('that is released is not listened to any more', async () => {
    const { manager, store, call, log } = coreUnderTest();
    const lost = new AbortController();
    const caller = watched(manager.acquire(['k'], call()));
    await settled();
    await store.next('acquire').answer({ ...GRANT, lost: lost.signal });
    const releasing = caller.value!.release();
    await store.next('release').answer(released());
    expect(await releasing).toBe('released');
    lost.abort();
    expect([caller.value!.lost, log.lines]).toEqual([false, []]);
  });

  it('that is lost before its caller has it is given back, and asked for again', async () => {
    const { manager, store, call } = coreUnderTest();
    const caller = watched(manager.acquire(['k'], call()));
    await settled();
    await store.next('acquire').answer({ ...GRANT, lost: AbortSignal.abort() });
    expect(store.sent.map(({ name }) => name)).toEqual(['acquire', 'release', 'acquire']);
    expect(caller.state).toBe('pending');
  });

  it.each([
    ['in the answer', 1, 0],
    ['in the answer', 2, 1],
    ['in the answer', undefined, 3],
    ['by message', 1, 0],
    ['by message', 2, 1],
    ['by message', undefined, 3],
  ])('%s, with %s tokens for four callers, is handed over %s times', async (how, tokens, handed) => {
    const byMessage = how === 'by message';
    const { manager, store, call } = coreUnderTest();
    const callers = [watched(manager.acquire(['k'], call()))];
    await settled();
    for (let i = 0; i < 3; i += 1) callers.push(watched(manager.acquire(['k'], call())));
    callers.push(watched(manager.acquire(['k'], call())));
    await store.next('acquire').answer(grantedFor(1));
    watched(callers[0]!.value!.release());
    await store.next('release').answer(released());
    const { place } = newPlace();
    if (byMessage) await store.next('acquire').answer(queued(place));
    const grant = { ...GRANT, ...(tokens === undefined ? {} : { tokens }) };
    if (byMessage) place.notify(grant);
    else await store.next('acquire').answer(grant);
    await settled();
    let leases = 0;
    while (store.open.length === 0) {
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
    await store.next('acquire').answer({ status: 'taken', retryInMs: Infinity });
    await store.watching[0]!.becomeLive();
    await store.next('acquire').answer({ status: 'taken', retryInMs: Infinity });
    await runtime.pass(3_600_000);
    expect([store.sent.length, caller.state]).toEqual([2, 'pending']);
    await store.watching[0]!.hint();
    await store.next('acquire').answer(granted());
    expect(caller.state).toBe('fulfilled');
  });
});
