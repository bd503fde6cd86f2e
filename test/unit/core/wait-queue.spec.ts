import { beforeEach, describe, expect, it } from 'vitest';
import type { StoreQueueEntry } from '../../../lib/core/seam/store-queue-entry.js';
import type { Grant } from '../../../lib/core/seam/grant.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import { coreUnderTest, watched, type Watched } from '../../support/core/core-under-test.js';
import { newEntry, queued, stillQueued } from '../../support/core/queue-entries.js';
import {
  granted,
  QueueStore,
  released,
  taken,
  unknown,
  type Request,
} from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

/** What the release of another process grants: a third of the lease that is wanted. */
const GRANT: Grant = { status: 'granted', validForMs: 10_000, token: 7, tokens: 64 };
const UNUSED = { leases: 0, keys: 0, holds: 0, undoing: 0 };

let core: ReturnType<typeof coreUnderTest>;
let entry: StoreQueueEntry;
let left: readonly unknown[];

const acquire = (options: Partial<LockCall> = {}, keys: readonly string[] = ['k']): Watched<Lease> =>
  watched(core.manager.acquire(keys, core.call(options)));

/** Enqueues the claim of the next caller at this moment, behind `position` others. */
const enqueue = async (options: Partial<LockCall> = {}, position = 0, retryInMs = 30_000) => {
  const caller = acquire(options);
  await settled();
  await core.store.next('acquire').reply(queued(entry, position, retryInMs));
  return caller;
};

const notify = async (grant: Grant = GRANT): Promise<void> => {
  entry.notify(grant);
  await settled();
};

const open = (): string[] => core.store.unanswered.map(({ name }) => name);

beforeEach(() => {
  core = coreUnderTest({}, new QueueStore());
  ({ entry, left } = newEntry());
});

describe('a grant by message', () => {
  it('counts from the send of the last request that was answered "queued"', async () => {
    const caller = await enqueue();
    await core.runtime.pass(1_000);
    const keep = core.store.next('keep');
    await core.runtime.pass(300);
    await keep.reply([stillQueued()]);
    // A refresh that is still unanswered may have reached the store after the grant.
    await core.runtime.pass(800);
    expect(open()).toEqual(['keep']);
    await notify();
    expect(caller.value!.remainingMs()).toBe(10_000 - 1_100);
    expect(caller.value!.fencingToken).toBe(7);
    expect(open()).toEqual(['keep']);
  });

  it('is used as long as half of its time is left, and then the store is asked, which counts from there', async () => {
    const used = await enqueue();
    await core.runtime.pass(0);
    core.runtime.jump(5_000);
    await notify();
    expect(used.value!.remainingMs()).toBe(5_000);
    void used.value!.release();
    await core.store.next('release').reply(released());

    ({ entry, left } = newEntry());
    const late = await enqueue({ waitMs: Infinity });
    const { owner } = core.store.sent.at(-1)!.claim;
    core.runtime.jump(5_001);
    await notify();
    expect(late.state).toBe('pending');
    expect(core.store.next('acquire').claim).toMatchObject({
      owner,
      leaseMs: 30_000,
      waits: false,
      reacquires: true,
    });
    await core.runtime.pass(100);
    await core.store.next('acquire').reply(granted(9));
    expect([late.value!.remainingMs(), late.value!.fencingToken]).toEqual([29_900, 9]);
    void late.value!.release();
    expect(core.store.next('release').claim.owner).toBe(owner);
    expect(left, 'it is a hold now').toEqual([]);
  });

  it.each<[string, Partial<LockCall>, number]>([
    ['a fixed lease', { leaseMs: 4_000 }, 4_000],
    ['a minimum time', { holdAtLeastMs: 60_000 }, 60_000],
  ])('for %s is asked for first: the section begins with all of its time', async (_, options, leaseMs) => {
    const caller = await enqueue(options);
    await notify();
    expect([caller.state, core.store.next('acquire').claim.leaseMs]).toEqual(['pending', leaseMs]);
    await core.store.next('acquire').reply(granted(8, leaseMs));
    expect([caller.value!.fencingToken, caller.value!.remainingMs()]).toEqual([8, leaseMs]);
  });

  it('that only a refresh found is requested again, because its start is unknown', async () => {
    const caller = await enqueue();
    await core.runtime.pass(1_000);
    await core.store.next('keep').reply([{ status: 'held' }]);
    expect([caller.state, core.store.next('acquire').claim.reacquires]).toEqual(['pending', true]);
    await core.store.next('acquire').reply(granted(8));
    expect(caller.value!.remainingMs()).toBe(30_000);
  });

  it('that is not there any more when it is asked for is followed by another owner, in line again', async () => {
    const caller = await enqueue({ leaseMs: 4_000 });
    const { owner } = core.store.sent[0]!.claim;
    await notify();
    await core.store.next('acquire').reply(taken());
    const again = core.store.next('acquire');
    expect(again.claim).toMatchObject({ waits: true, entryTerms: { aliveMs: 5_000 } });
    expect([again.claim.owner === owner, again.claim.reacquires]).toEqual([false, undefined]);
    ({ entry } = newEntry());
    await again.reply(queued(entry));
    expect(caller.state).toBe('pending');
  });

  it('that is gone when the wait is over ends the call: it waits for no further reply', async () => {
    const caller = await enqueue({ leaseMs: 4_000, waitMs: 500 });
    await core.runtime.pass(400);
    await notify();
    await core.runtime.pass(200);
    await core.store.next('acquire').reply(taken());
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN' });
    expect([open(), core.manager.usage]).toEqual([[], UNUSED]);
  });

  it('of which the store did not say whether it is there is given back', async () => {
    const caller = await enqueue({ leaseMs: 4_000 });
    const { owner } = core.store.sent[0]!.claim;
    await notify();
    await core.store.next('acquire').fail(unknown());
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'unknown' });
    expect(core.store.next('release').claim.owner).toBe(owner);
    await core.store.next('release').reply(released());
    expect(core.manager.usage).toEqual(UNUSED);
  });

  it('that was forced open on its way is not believed: the store is asked', async () => {
    const caller = await enqueue();
    await core.runtime.pass(10);
    const forcing = core.manager.forceUnlock('k');
    await core.store.next('forceUnlock').reply(true);
    expect(await forcing).toBe(true);
    await notify();
    expect(core.store.next('acquire').claim.reacquires).toBe(true);
    await core.store.next('acquire').reply(taken());
    expect([caller.state, core.store.next('acquire').claim.waits]).toEqual(['pending', true]);
  });

  it('that comes while a forced unlock is under way is not believed, nor taken for what that ended', async () => {
    const caller = await enqueue();
    await core.runtime.pass(10);
    const forcing = core.manager.forceUnlock('k');
    await core.runtime.pass(1);
    await notify();
    const [forced, requested] = [...core.store.unanswered] as [Request<'forceUnlock'>, Request<'acquire'>];
    expect([caller.state, requested.claim.reacquires]).toEqual(['pending', true]);
    // It has ended the hold before, and so brought about this one.
    await requested.reply(granted(9));
    await forced.reply(true);
    expect(await forcing).toBe(true);
    expect([caller.value!.lost, caller.value!.fencingToken]).toEqual([false, 9]);
  });

  it('is believed again once the place was answered "queued" after the forced unlock', async () => {
    const caller = await enqueue();
    const forcing = core.manager.forceUnlock('k');
    await core.store.next('forceUnlock').reply(true);
    await forcing;
    await core.runtime.pass(1_000);
    await core.store.next('keep').reply([stillQueued()]);
    await notify();
    expect(caller.value!.fencingToken).toBe(7);
  });

  it('lasts as a turn for as many callers as it has tokens, and less long the more stand behind it', async () => {
    for (const [waiting, batchMs] of [
      [0, 50],
      [20, 50],
      [40, 25],
    ] as const) {
      core = coreUnderTest({}, new QueueStore());
      ({ entry, left } = newEntry());
      const first = await enqueue();
      const [second, third] = [acquire(), acquire()];
      await notify({ ...GRANT, waiting });
      await core.runtime.pass(batchMs - 1);
      void first.value!.release();
      await settled();
      expect(second.value!.fencingToken, 'handed over').toBe(8);
      await core.runtime.pass(1);
      void second.value!.release();
      await settled();
      expect([third.state, open()]).toEqual(['pending', ['release', 'acquire']]);
    }
  });
});

describe('a queued caller', () => {
  it('asks once more at the end of its wait, keeps nothing, and is told that the key is taken', async () => {
    const caller = await enqueue({ waitMs: 500 });
    await core.runtime.pass(500);
    expect([caller.state, open()]).toEqual(['pending', ['keep']]);
    await core.store.next('keep').reply([stillQueued()]);
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN' });
    expect([left.length, core.runtime.due, core.manager.usage]).toEqual([1, [], UNUSED]);
  });

  it('is told that the store has failed when that question fails, never that the key is taken', async () => {
    const caller = await enqueue({ waitMs: 500 });
    await core.runtime.pass(500);
    await core.store.next('keep').fail(unknown());
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    expect([left.length, core.manager.usage]).toEqual([1, UNUSED]);
  });

  it('gives back what it was granted when its time was over before it was certain', async () => {
    const caller = await enqueue({ waitMs: 500, leaseMs: 4_000 });
    await core.runtime.pass(500);
    await core.store.next('keep').reply([{ status: 'held' }]);
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN' });
    expect([left.length, open(), core.manager.usage]).toEqual([1, [], UNUSED]);
  });

  it('has the lock when its grant comes in the last moment of its wait', async () => {
    const caller = await enqueue({ waitMs: 500 });
    core.runtime.jump(500);
    await notify();
    expect(caller.value!.fencingToken).toBe(7);
  });

  it('that is called off as its grant comes gives it back', async () => {
    const controller = new AbortController();
    const caller = await enqueue({ signal: controller.signal });
    entry.notify(GRANT);
    controller.abort();
    await settled();
    expect(caller.error).toMatchObject({ code: 'LOCK_ABORTED' });
    expect([left.length, core.manager.usage]).toEqual([1, UNUSED]);
    await core.runtime.pass(10_000);
    expect([core.store.sent.length, core.runtime.due]).toEqual([1, []]);
  });

  it('leaves when the app stops, as its grant comes too', async () => {
    const caller = await enqueue({ waitMs: Infinity });
    entry.notify(GRANT);
    core.manager.refuseNew();
    await settled();
    expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect([left.length, core.manager.usage]).toEqual([1, UNUSED]);
  });

  it('asks for another place when its own is gone', async () => {
    const caller = await enqueue();
    const { owner } = core.store.sent[0]!.claim;
    await core.runtime.pass(1_000);
    await core.store.next('keep').reply([{ status: 'gone' }]);
    const again = core.store.next('acquire');
    expect([again.claim.owner === owner, left]).toEqual([false, []]);
    ({ entry, left } = newEntry());
    await again.reply(queued(entry));
    await notify();
    expect(caller.value!.fencingToken).toBe(7);
  });

  it('asks at once when an outcome may have been missed', async () => {
    const caller = await enqueue({}, 5);
    entry.mayHaveMissed();
    await core.runtime.pass(5);
    await core.store.next('keep').reply([{ status: 'held' }]);
    await core.store.next('acquire').reply(granted(8));
    expect(caller.value!.fencingToken).toBe(8);
  });

  it('asks itself when its place could not be asked about, and then all hear what is wrong', async () => {
    const [contender, behind] = [await enqueue(), acquire()];
    await core.runtime.pass(1_000);
    await core.store.next('keep').fail(unknown());
    expect(open()).toEqual(['keep']);
    await core.store.next('keep').fail(unknown());
    for (const { error } of [contender, behind]) expect(error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    expect([left.length, core.manager.usage]).toEqual([1, UNUSED]);
  });

  it.each([
    [0, 0],
    [3, 3],
    [50, 20],
  ])('behind %s others asks %s ms after it hears of a foreign release', async (position, afterMs) => {
    await enqueue({}, position);
    await core.store.watching[0]!.wake();
    if (afterMs > 0) {
      await core.runtime.pass(afterMs - 1);
      expect(open()).toEqual([]);
      await core.runtime.pass(1);
    }
    expect(open()).toEqual(['keep']);
  });

  it('does not ask any more when its grant comes while it steps aside', async () => {
    const caller = await enqueue({}, 10);
    await core.store.watching[0]!.wake();
    await notify();
    await core.runtime.pass(20);
    expect([caller.value!.fencingToken, open()]).toEqual([7, []]);
  });

  it.each([
    [2, ['keep']],
    [3, []],
  ])('behind %s others, when the hold in the way is over: asks %j', async (position, requests) => {
    await enqueue({}, position, 700);
    await core.runtime.pass(701);
    expect(open()).toEqual(requests);
  });

  it('is woken by one of this process that only tries, and both hear what the store says now', async () => {
    const caller = await enqueue();
    const tries = acquire({ waitMs: 0 });
    await settled();
    expect([tries.state, open()]).toEqual(['pending', ['keep']]);
    await core.store.next('keep').reply([stillQueued()]);
    expect([caller.state, tries.error]).toMatchObject(['pending', { code: 'LOCK_TAKEN' }]);
  });
});

describe('the place of a process', () => {
  it.each<[string, Partial<LockCall>, (abort: () => void) => Promise<void> | void]>([
    ['is called off', {}, (abort) => abort()],
    [
      'has waited in vain',
      { waitMs: 500 },
      async () => {
        await core.runtime.pass(500);
        await core.store.next('keep').reply([stillQueued()]);
      },
    ],
  ])('stays when the caller that took it %s, and the next one goes on there', async (_, options, end) => {
    const controller = new AbortController();
    const first = await enqueue({ ...options, signal: controller.signal });
    const { owner } = core.store.sent[0]!.claim;
    const second = acquire({ waitMs: Infinity });
    await end(() => controller.abort());
    await settled();
    expect([first.state, second.state, left]).toEqual(['rejected', 'pending', []]);
    // It asks how it stands, since it is its first question; it does not ask for another place.
    expect(core.store.count('acquire')).toBe(1);
    while (open().length > 0) await core.store.next('keep').reply([stillQueued()]);
    await notify();
    expect(second.value!.fencingToken).toBe(7);
    void second.value!.release();
    expect(core.store.next('release').claim.owner).toBe(owner);
  });

  it('goes with its grant to the next caller when the one before is called off in that moment', async () => {
    const controller = new AbortController();
    const first = await enqueue({ signal: controller.signal });
    const second = acquire();
    entry.notify(GRANT);
    controller.abort();
    await settled();
    expect([first.state, second.value?.fencingToken, left]).toEqual(['rejected', 7, []]);
  });

  it('that was taken for another lease is asked for by the next caller with its own', async () => {
    const controller = new AbortController();
    await enqueue({ signal: controller.signal });
    const second = acquire({ watchdogMs: 6_000 });
    controller.abort();
    await settled();
    while (open().length > 0) await core.store.next('keep').reply([stillQueued()]);
    await notify();
    expect(core.store.next('acquire').claim).toMatchObject({ leaseMs: 6_000, reacquires: true });
    await core.store.next('acquire').reply(granted(8, 6_000));
    expect(second.value!.fencingToken).toBe(8);
  });

  it('is left once no caller of the process wants the key', async () => {
    const controllers = [new AbortController(), new AbortController()];
    const callers = [await enqueue({ signal: controllers[0]!.signal })];
    callers.push(acquire({ signal: controllers[1]!.signal }));
    controllers[1]!.abort();
    await settled();
    expect(left).toEqual([]);
    controllers[0]!.abort();
    await settled();
    expect(callers.map(({ error }) => error)).toMatchObject([
      { code: 'LOCK_ABORTED' },
      { code: 'LOCK_ABORTED' },
    ]);
    expect([left.length, core.store.watching, core.runtime.due]).toEqual([1, [], []]);
    expect(core.manager.usage).toEqual(UNUSED);
  });

  it('is another owner each time, and never one that had a grant', async () => {
    for (let i = 0; i < 3; i++) {
      ({ entry, left } = newEntry());
      const caller = await enqueue();
      await notify();
      void caller.value!.release();
      await core.store.next('release').reply(released());
    }
    const owners = core.store.sent.filter(({ name }) => name === 'acquire').map(({ claim }) => claim.owner);
    expect(new Set(owners).size).toBe(3);
  });
});

describe('a hold that was taken for a minimum time', () => {
  it('goes back to the store when another key of its call is refused: the next caller has not asked for that', async () => {
    const both = acquire({ holdAtLeastMs: 60_000, waitMs: 20 }, ['a', 'b']);
    await settled();
    await core.store.next('acquire').reply(granted(1, 60_000));
    const next = acquire({}, ['a']);
    await settled();
    await core.store.next('acquire').reply(taken());
    await core.runtime.pass(20);
    await core.store.next('acquire').reply(taken());
    expect([both.error, next.state]).toMatchObject([{ code: 'LOCK_TAKEN' }, 'pending']);
    const release = core.store.unanswered.find(({ name }) => name === 'release')!;
    expect([release.claim.finalKey, release.keepForMs]).toEqual(['a', undefined]);
    expect(core.store.unanswered.map(({ name }) => name)).toEqual(['release', 'acquire']);
  });

  it('is not that of a call without one, which passes on what it took for nothing', async () => {
    // A caller waits already when its first key is requested, so there are tokens for both.
    const before = new AbortController();
    acquire({ signal: before.signal }, ['a']);
    await settled();
    await core.store.next('acquire').reply(taken());
    const both = acquire({ waitMs: 20 }, ['a', 'b']);
    const next = acquire({}, ['a']);
    before.abort();
    await settled();
    await core.store.next('acquire').reply(granted(1));
    await settled();
    await core.store.next('acquire').reply(taken());
    await core.runtime.pass(20);
    await core.store.next('acquire').reply(taken());
    expect([both.state, next.value?.fencingToken, open()]).toEqual(['rejected', 2, []]);
  });
});
