import { beforeEach, describe, expect, it } from 'vitest';
import type { Lease } from '../../../lib/core/lease/lease.js';
import {
  LockAbortedError,
  LockNotAcquiredError,
  LockStoreError,
} from '../../../lib/core/errors/lock.errors.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { coreUnderTest, watched, type Watched } from '../../support/core/core-under-test.js';
import {
  granted,
  grantedFor,
  notExecuted,
  notHeld,
  released,
  taken,
  unknown,
  type Request,
  type ScriptedStore,
} from '../../support/core/scripted-store.js';
import { settled, type VirtualRuntime } from '../../support/core/virtual-runtime.js';

let core: ReturnType<typeof coreUnderTest>;
let runtime: VirtualRuntime;
let store: ScriptedStore;

const acquire = (options: Partial<LockCall> = {}): Watched<Lease> =>
  watched(core.manager.acquire(['k'], core.call(options)));

const watchOf = () => store.watching[0]!;

const transient = () => new StoreFailure('TRYAGAIN', 'not-executed', { transient: true });

beforeEach(() => {
  core = coreUnderTest();
  ({ runtime, store } = core);
});

describe('a free key', () => {
  it('costs one request and no watch', async () => {
    const caller = acquire();
    await store.next('acquire').reply(granted(7));
    expect(caller.value?.fencingToken).toBe(7);
    expect([store.sent.length, store.watches.length]).toEqual([1, 0]);
  });

  it('is valid from before the request was sent: what the answer took is gone', async () => {
    const caller = acquire();
    await runtime.pass(2_500);
    await store.next('acquire').reply(granted(1, 30_000));
    expect(caller.value?.remainingMs()).toBe(27_500);
  });

  it('every request of a new caller has an owner of its own', async () => {
    for (let i = 0; i < 3; i += 1) {
      const caller = acquire();
      await store.next('acquire').reply(granted());
      void caller.value!.release();
      await store.next('release').reply(released());
    }
    const owners = store.sent.filter(({ name }) => name === 'acquire').map(({ claim }) => claim.owner);
    expect(new Set(owners).size).toBe(3);
  });
});

describe('a taken key', () => {
  it('of another kind is named to the waiters whose time was over before the reply', async () => {
    const callers = [acquire({ waitMs: 50 }), acquire({ waitMs: 50 })];
    await runtime.pass(60);
    expect(callers.map(({ state }) => state)).toEqual(['pending', 'pending']);
    await store.next('acquire').reply({ status: 'taken', retryInMs: 30_000, heldAs: 'read' });
    for (const { error } of callers) expect(error).toMatchObject({ code: 'LOCK_TAKEN', heldAs: 'read' });
  });

  it('is listened for, and asked for again as soon as that can be heard', async () => {
    const caller = acquire();
    await store.next('acquire').reply(taken());
    expect([watchOf().key, store.unanswered.length]).toEqual(['k', 0]);
    await watchOf().becomeLive();
    await store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
    expect(store.watching, 'nobody waits any more, but the hold may go on to be waited for').toHaveLength(1);
  });

  it('repeats with the same owner, so that an answer that was lost takes nothing twice', async () => {
    acquire();
    await store.next('acquire').reply(taken());
    await watchOf().becomeLive();
    const owners = store.sent.map(({ claim }) => claim.owner);
    expect(owners).toHaveLength(2);
    expect(owners[0]).toBe(owners[1]);
  });

  it('a message that is there before the answer "taken" counts', async () => {
    acquire();
    await store.next('acquire').reply(taken());
    await watchOf().becomeLive();
    // The holder releases between our question and its answer; the message overtakes the answer.
    await watchOf().wake();
    await store.next('acquire').reply(taken(30_000));
    expect(store.unanswered, 'asks again at once').toHaveLength(1);
  });

  it('there is no polling: one question when it can be heard, one for each message', async () => {
    acquire({ waitMs: 25_000 });
    await store.next('acquire').reply(taken());
    await watchOf().becomeLive();
    await store.next('acquire').reply(taken());
    await runtime.pass(20_000);
    expect(store.sent).toHaveLength(2);
    await watchOf().wake();
    await store.next('acquire').reply(taken());
    expect(store.sent).toHaveLength(3);
  });

  it('is asked for again at the end of the hold in the way, in case its holder crashed', async () => {
    const caller = acquire();
    await store.next('acquire').reply(taken());
    await watchOf().becomeLive();
    await store.next('acquire').reply(taken(800));
    await runtime.pass(800);
    expect(store.unanswered).toHaveLength(0);
    await runtime.pass(1);
    await store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
  });

  it('is asked for every second while nothing can be heard', async () => {
    acquire({ waitMs: 60_000 });
    await store.next('acquire').reply(taken(30_000));
    for (let second = 0; second < 3; second += 1) {
      await runtime.pass(1_001);
      await store.next('acquire').reply(taken(30_000));
    }
    expect(store.sent).toHaveLength(4);
  });

  it('the wait ends at its deadline, with one more question: what was said before tells nothing of now', async () => {
    const caller = acquire({ waitMs: 500 });
    await store.next('acquire').reply(taken());
    await watchOf().becomeLive();
    await store.next('acquire').reply(taken());
    await runtime.pass(499);
    expect(caller.state).toBe('pending');
    await runtime.pass(1);
    expect(caller.state).toBe('pending');
    await store.next('acquire').reply(taken());
    expect(caller.error).toBeInstanceOf(LockNotAcquiredError);
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'k' });
    expect([store.watching.length, runtime.due, core.manager.usage.keys]).toEqual([0, [], 0]);
  });

  it('is asked for again when the hold in the way ends, however late that was heard of', async () => {
    acquire({ waitMs: 60_000 });
    await runtime.pass(900);
    await store.next('acquire').reply(taken(1_000));
    await watchOf().becomeLive();
    await runtime.pass(900);
    await store.next('acquire').reply(taken(100));
    await runtime.pass(1);
    expect(store.unanswered.map(({ name }) => name)).toEqual(['acquire']);
  });

  it("is the caller's when it became free in the last moment of the wait", async () => {
    const caller = acquire({ waitMs: 500 });
    await store.next('acquire').reply(taken());
    await runtime.pass(500);
    await store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
  });

  it('a store that hangs meanwhile is never told as a lock that is taken', async () => {
    const contender = acquire({ waitMs: 10_000 });
    await store.next('acquire').reply(taken());
    const behind = acquire({ waitMs: 300 });
    await runtime.pass(300);
    expect([contender.state, behind.state]).toEqual(['pending', 'pending']);
    await store.next('acquire').fail(unknown('no answer for 2,000 ms'));
    expect(contender.error).toBeInstanceOf(LockStoreError);
    expect(behind.error).toBeInstanceOf(LockStoreError);
  });

  it('a caller that does not wait, behind a waiter, gets the next reply of the store', async () => {
    acquire({ waitMs: 10_000 });
    await store.next('acquire').reply(taken());
    const once = acquire({ waitMs: 0 });
    await settled();
    expect(once.state).toBe('pending');
    await store.next('acquire').reply(taken());
    expect(once.error).toMatchObject({ code: 'LOCK_TAKEN' });
  });

  it('a waiter behind an aborted contender sends its own request before it reports "taken"', async () => {
    const gone = new AbortController();
    acquire({ signal: gone.signal });
    const behind = acquire({ waitMs: 100 });
    await runtime.pass(100);
    expect(behind.state).toBe('pending');
    await store.next('acquire').reply(taken());
    expect(behind.error).toMatchObject({ code: 'LOCK_TAKEN' });
    const next = acquire({ waitMs: 100 });
    await runtime.pass(100);
    gone.abort();
    await settled();
    expect(next.state).toBe('pending');
    while (next.state === 'pending') await store.next('acquire').reply(taken());
    expect(next.error).toMatchObject({ code: 'LOCK_TAKEN' });
  });

  it('with waitMs 0 it is asked for once and not listened for', async () => {
    const caller = acquire({ waitMs: 0 });
    await store.next('acquire').reply(taken());
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN' });
    expect([store.sent.length, store.watches.length]).toEqual([1, 0]);
  });

  it('a message at the last moment is worth one more question', async () => {
    const caller = acquire({ waitMs: 500 });
    await store.next('acquire').reply(taken());
    await watchOf().becomeLive();
    await runtime.pass(600);
    await watchOf().wake();
    await store.next('acquire').reply(taken());
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN' });
  });

  it('a wait without end goes on for days, and ends with a message', async () => {
    const caller = acquire({ waitMs: Infinity });
    await store.next('acquire').reply(taken(1_000_000_000));
    await watchOf().becomeLive();
    await store.next('acquire').reply(taken(1_000_000_000));
    await runtime.pass(500_000_000);
    expect(caller.state).toBe('pending');
    await watchOf().wake();
    await store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
  });

  it('when listening is refused, all who wait hear it as a failure of the store', async () => {
    const [contender, behind] = [acquire(), acquire()];
    await store.next('acquire').reply(taken());
    await watchOf().fail(notExecuted('NOPERM subscribe'));
    await store.next('acquire').reply(taken());
    for (const caller of [contender, behind]) {
      expect(caller.error).toBeInstanceOf(LockStoreError);
      expect((caller.error as Error).message).toContain('NOPERM subscribe');
    }
    expect(core.manager.usage).toMatchObject({ keys: 0, leases: 0 });
  });
});

describe('a store that fails', () => {
  it('reaches the head and all who wait behind it, at once', async () => {
    const callers = [acquire(), acquire(), acquire({ waitMs: Infinity })];
    await store.next('acquire').fail(notExecuted('ECONNREFUSED'));
    for (const caller of callers) {
      expect(caller.error).toBeInstanceOf(LockStoreError);
      expect(caller.error).toMatchObject({ outcome: 'not-executed', key: 'k' });
    }
    expect(core.manager.usage).toMatchObject({ keys: 0, leases: 0, undoing: 0 });
  });

  it('after an unknown outcome the acquire is undone, with the failure as doubt, until that is certain', async () => {
    const caller = acquire();
    const failure = unknown();
    await store.next('acquire').fail(failure);
    expect(caller.error).toMatchObject({ outcome: 'unknown' });
    expect(String(caller.error)).toContain(
      'It may have been done; the library undoes what nobody owns. This says',
    );
    const { finalKey, owner } = store.sent[0]!.claim;
    expect(store.next('release')).toMatchObject({ uncertain: failure, claim: { finalKey, owner } });
    await store.next('release').fail(unknown());
    await runtime.pass(50);
    await store.next('release').reply(notHeld);
    expect(core.manager.usage.undoing).toBe(0);
  });

  it.each<[string, Partial<LockCall>, number]>([
    ['the lease', { waitMs: 0 }, 700],
    ['its place in line and the hold it is granted there', { waitMs: 1 }, 5_000 + 10_000],
  ])('an undo and its repetitions are sent for no longer than %s can last', async (_, options, lastsMs) => {
    acquire({ leaseMs: 700, ...options });
    await store.next('acquire').fail(unknown());
    let lastSentAt = 0;
    while (store.unanswered.length > 0) {
      lastSentAt = runtime.now();
      await store.next('release').fail(unknown());
      for (let ms = 0; ms < 1_000 && store.unanswered.length === 0; ms += 10) await runtime.pass(10);
    }
    expect(lastSentAt).toBe(1_000 + lastsMs);
    expect(core.manager.usage.undoing).toBe(0);
  });

  it('the next caller does not reuse the owner whose undo was sent', async () => {
    acquire();
    await store.next('acquire').fail(unknown());
    acquire();
    const [first, , second] = store.sent;
    expect(second).toMatchObject({ name: 'acquire' });
    expect(second!.claim.owner).not.toBe(first!.claim.owner);
  });

  it('one event and one line for an outage, and one when it is over', async () => {
    const events: string[] = [];
    core.manager.on('store-down', () => events.push('down'));
    core.manager.on('store-up', () => events.push('up'));
    for (let i = 0; i < 3; i += 1) {
      acquire();
      await store.next('acquire').fail(notExecuted());
    }
    acquire();
    await store.next('acquire').reply(granted());
    expect(events).toEqual(['down', 'up']);
    expect(core.log.lines).toHaveLength(2);
  });

  it('asks for another try in a moment: it gets one, within the wait, and is no outage', async () => {
    const caller = acquire();
    for (let i = 0; i < 3; i += 1) {
      await store.next('acquire').fail(transient());
      expect(caller.state).toBe('pending');
      await runtime.pass(51);
    }
    await store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
    expect(core.log.lines).toEqual([]);
  });

  it('and asks for it until the wait is over: that is a failure, not "taken"', async () => {
    const caller = acquire({ waitMs: 120 });
    while (caller.state === 'pending') {
      if (store.unanswered.length > 0) await store.next('acquire').fail(transient());
      await runtime.pass(10);
    }
    expect(caller.error).toBeInstanceOf(LockStoreError);
    expect(caller.error).toMatchObject({ outcome: 'not-executed' });
  });

  it('and the wait is over between two tries: that is a failure too, not "taken"', async () => {
    const caller = acquire({ waitMs: 30 });
    await store.next('acquire').fail(transient());
    await runtime.pass(30);
    await store.next('acquire').fail(transient());
    expect(caller.error).toBeInstanceOf(LockStoreError);
    expect(caller.error).toMatchObject({ outcome: 'not-executed' });
  });

  it('and a contender whose time is over leaves the callers behind it theirs', async () => {
    const late = acquire({ waitMs: 100 });
    const behind = acquire();
    await runtime.pass(101);
    await store.next('acquire').fail(transient());
    expect([late.state, behind.state]).toEqual(['rejected', 'pending']);
    await store.next('acquire').reply(granted());
    expect(behind.state).toBe('fulfilled');
  });

  it('a waiter behind a contender that retries does not wait past its own deadline', async () => {
    acquire({ waitMs: Infinity });
    const behind = acquire({ waitMs: 30 });
    await runtime.pass(40);
    expect(behind.state, 'nobody knows yet').toBe('pending');
    await store.next('acquire').fail(transient());
    expect(behind.error).toBeInstanceOf(LockStoreError);
  });

  it('an answer that comes after the lease it grants is over is no grant, and no failure: it is asked again', async () => {
    const outages: unknown[] = [];
    core.manager.on('store-down', (event) => outages.push(event));
    const caller = acquire({ leaseMs: 300 });
    const first = store.next('acquire').claim;
    await runtime.pass(300);
    await store.next('acquire').reply(granted(1, 300));
    await store.next('release').reply(notHeld);
    expect(store.next('acquire').claim.owner).not.toBe(first.owner);
    await store.next('acquire').reply(granted(2, 300));
    expect([caller.value?.fencingToken, outages]).toEqual([2, []]);
  });

  it('a caller whose grant meets a forced unlock at the same moment requests again, or is notified of the loss', async () => {
    const patient = acquire();
    const forcing = watched(core.manager.forceUnlock('k'));
    const [requested, forced] = [...store.unanswered] as [Request<'acquire'>, Request<'forceUnlock'>];
    void requested.reply(granted(1));
    await forced.reply(true);
    expect(forcing.value).toBe(true);
    // Whichever reply is read first: no caller believes in the hold that is gone.
    while (store.unanswered.length > 0) {
      if (store.unanswered[0]!.name === 'release') await store.next('release').reply(notHeld);
      else await store.next('acquire').reply(granted(2));
    }
    if (patient.state === 'rejected') expect(patient.error).toMatchObject({ code: 'LOCK_LOST' });
    else expect([patient.value!.lost || patient.value!.fencingToken === 2]).toEqual([true]);
  });

  it('a process that stands still past its short lease each time is told that it lost it', async () => {
    const caller = acquire({ leaseMs: 300, waitMs: Infinity });
    for (let late = 0; late < 3; late += 1) {
      await runtime.pass(300);
      await store.next('acquire').reply(granted(1, 300));
      await store.next('release').reply(notHeld);
    }
    expect(caller.error).toMatchObject({
      code: 'LOCK_LOST',
      message: expect.stringContaining('ran out') as string,
    });
    expect(core.manager.usage).toMatchObject({ holds: 0, undoing: 0, keys: 0 });
  });

  it('a bug in the store is no store failure: the caller gets it as it is, and the key is free', async () => {
    const caller = acquire();
    const bug = new TypeError('a bug');
    await store.next('acquire').fail(bug);
    expect(caller.error).toBe(bug);
    expect(core.manager.usage).toMatchObject({ keys: 0, leases: 0 });
  });
});

describe('a caller that is called off', () => {
  it('goes at once, also while its request is under way; what that still brings is given back', async () => {
    const controller = new AbortController();
    const caller = acquire({ signal: controller.signal });
    await runtime.pass(40);
    controller.abort('client gone');
    await settled();
    expect(caller.error).toBeInstanceOf(LockAbortedError);
    const message = expect.stringContaining('was given up after 40 ms') as string;
    expect(caller.error).toMatchObject({ cause: 'client gone', message });
    await store.next('acquire').reply(granted());
    expect(store.next('release').claim.owner).toBe(store.sent[0]!.claim.owner);
    await store.next('release').reply(released());
    expect(core.manager.usage).toMatchObject({ holds: 0, keys: 0, leases: 0, undoing: 0 });
  });

  it('the next one in the queue asks after the give-back was sent', async () => {
    const controller = new AbortController();
    acquire({ signal: controller.signal });
    const next = acquire();
    controller.abort();
    await settled();
    expect(store.sent, 'still unanswered').toHaveLength(1);
    await store.next('acquire').reply(granted(1));
    expect(store.sent.map(({ name }) => name)).toEqual(['acquire', 'release', 'acquire']);
    await store.next('release').reply(released());
    await store.next('acquire').reply(granted(2));
    expect(next.value?.fencingToken).toBe(2);
  });

  it('leaves no timer and no watch while it waited for a message', async () => {
    const controller = new AbortController();
    const caller = acquire({ signal: controller.signal });
    await store.next('acquire').reply(taken());
    await watchOf().becomeLive();
    await store.next('acquire').reply(taken());
    controller.abort();
    await settled();
    expect(caller.error).toBeInstanceOf(LockAbortedError);
    expect([store.watching.length, runtime.due, core.manager.usage.keys]).toEqual([0, [], 0]);
  });

  it('before it began sends nothing', async () => {
    const caller = acquire({ signal: AbortSignal.abort('never mind') });
    await settled();
    expect(caller.error).toMatchObject({ code: 'LOCK_ABORTED', cause: 'never mind' });
    expect(store.sent).toEqual([]);
  });

  it('after it has the lock keeps it: the signal ends the wait, not the lease', async () => {
    const controller = new AbortController();
    const caller = acquire({ signal: controller.signal });
    await store.next('acquire').reply(granted());
    controller.abort();
    await settled();
    expect(caller.value?.lost).toBe(false);
    expect(core.manager.usage.holds).toBe(1);
  });
});

describe('after a release that others heard', () => {
  it('the next caller of this process asks at once, behind it: the store has the order of those who wait', async () => {
    const holder = acquire();
    await store.next('acquire').reply(grantedFor(1));
    const next = acquire();
    void holder.value!.release();
    await settled();
    expect(store.unanswered.map(({ name }) => name)).toEqual(['release', 'acquire']);
    await store.next('release').reply(released(true));
    await store.next('acquire').reply(granted(2));
    expect(next.value?.fencingToken).toBe(2);
  });

  it('a later caller does not wait either, and can be aborted', async () => {
    const holder = acquire();
    await store.next('acquire').reply(grantedFor(1));
    void holder.value!.release();
    await store.next('release').reply(released(true));
    const controller = new AbortController();
    const caller = acquire({ signal: controller.signal });
    expect(store.next('acquire')).toBeDefined();
    controller.abort();
    await settled();
    expect(caller.error).toBeInstanceOf(LockAbortedError);
  });
});
