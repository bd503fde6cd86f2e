import { describe, expect, it } from 'vitest';
import type { Lease } from '../../../lib/core/lease/lease.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import type { LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { Locked } from '../../../lib/nest/locked/locked.decorator.js';
import { bindLocks, createTestingLocks } from '../../../lib/testing/testing-locks.js';
import { coreUnderTest, watched, type Watched } from '../../support/core/core-under-test.js';
import { newEntry, queued, stillQueued } from '../../support/core/queue-entries.js';
import {
  granted,
  QueueStore,
  notHeld,
  released,
  unknown,
  notExecuted,
} from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

const fairLocks = (settings: LockSettingsInput = {}) => {
  const core = coreUnderTest(settings, new QueueStore());
  const take = (options: Partial<LockCall> = {}): Watched<Lease> =>
    watched(core.manager.acquire(['k'], core.call({ kind: 'fair', ...options })));
  return { ...core, take };
};

/** One caller stands in line; it listens, and has asked again since it can hear. */
const oneQueued = async (options: Partial<LockCall> = {}) => {
  const core = fairLocks();
  const caller = core.take({ waitMs: 60_000, ...options });
  await settled();
  const { entry, left } = newEntry();
  await core.store.next('acquire').reply(queued(entry, 1));
  await core.store.watching[0]!.becomeLive();
  await core.store.next('acquire').reply(queued(entry, 1));
  return { ...core, caller, entry, left };
};

describe('callers for a fair lock', () => {
  it('each ask the store at once, as an owner of their own that is named by its kind', async () => {
    const { store, take, manager } = fairLocks();
    const callers = [take(), take(), take({ waitMs: 0 })];
    await settled();
    expect(store.unanswered.map(({ name }) => name)).toEqual(['acquire', 'acquire', 'acquire']);
    const owners = store.sent.map(({ claim }) => claim.owner);
    expect(owners.map((owner) => /:fair:\d+$/.test(owner))).toEqual([true, true, true]);
    expect(new Set(owners).size).toBe(3);
    expect(store.sent.map(({ claim }) => claim.waits)).toEqual([true, true, false]);
    await store.next('acquire').reply(granted());
    expect(callers.map(({ state }) => state)).toEqual(['fulfilled', 'pending', 'pending']);
    expect(manager.usage.keys).toBe(1);
  });

  it.each([[4_000], [60_000], [Infinity]])(
    'have an entry that lives for 5 s without being refreshed, also with waitMs: %s',
    async (waitMs) => {
      const { store, take } = fairLocks();
      take({ waitMs });
      await settled();
      expect(store.next('acquire').claim).toMatchObject({ kind: 'fair', entryTerms: { aliveMs: 5_000 } });
    },
  );

  it('take tokens for themselves alone, since the lock is not passed on', async () => {
    const { store, take } = fairLocks();
    const callers = [take(), take()];
    await settled();
    expect(store.sent.map(({ claim }) => claim.tokens)).toEqual([1, 1]);
    await store.next('acquire').reply(granted());
    await store.next('acquire').reply(queued(newEntry().entry));
    const releasing = callers[0]!.value!.release();
    await settled();
    expect(store.sent.at(-1)!.name).toBe('release');
    await store.next('release').reply(released());
    await releasing;
    expect(callers[1]!.state).toBe('pending');
  });

  it('ask again from their place, as the same owner, when they are woken; the grant ends the place', async () => {
    const { store, caller, left, runtime } = await oneQueued();
    const { owner } = store.sent[0]!.claim;
    // It is the first by now, whatever was said before: it does not step aside.
    await store.watching[0]!.wake();
    expect(store.next('acquire').claim.owner).toBe(owner);
    await store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
    expect(left).toEqual([]);
    await runtime.pass(5_000);
    expect(store.count('keep')).toBe(0);
  });

  it('say once a second that they are there, and look when they are told to', async () => {
    const { store, runtime, caller } = await oneQueued();
    await runtime.pass(1_000);
    await store.next('keep').reply([stillQueued(1)]);
    expect(store.unanswered).toEqual([]);
    await runtime.pass(1_000);
    await store.next('keep').reply([stillQueued(0, 0)]);
    await runtime.pass(1);
    await store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
  });

  it('become another owner, and listen as that, when their place is gone', async () => {
    const { store, runtime, caller, left } = await oneQueued();
    await runtime.pass(1_000);
    await store.next('keep').reply([{ status: 'gone' }]);
    const { claim } = store.next('acquire');
    expect(claim.owner).not.toBe(store.sent[0]!.claim.owner);
    expect(store.watching).toEqual([]);
    const { entry } = newEntry();
    await store.next('acquire').reply(queued(entry));
    expect(store.watching).toHaveLength(1);
    await store.watching[0]!.becomeLive();
    await store.next('acquire').reply(granted());
    expect([caller.state, left]).toEqual(['fulfilled', []]);
  });

  it('leave their place when their time is over, after one more question', async () => {
    const { store, runtime, caller, entry, left } = await oneQueued({ waitMs: 500 });
    await runtime.pass(501);
    await store.next('acquire').reply(queued(entry, 2));
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', waitersAhead: 2 });
    expect(left).toEqual([undefined]);
  });

  it('leave their place when they are called off, also with their question under way', async () => {
    const calledOff = new AbortController();
    const { store, caller, left, entry, manager } = await oneQueued({ signal: calledOff.signal });
    await store.watching[0]!.wake();
    calledOff.abort();
    await settled();
    expect(caller.error).toMatchObject({ code: 'LOCK_ABORTED' });
    await store.next('acquire').reply(queued(entry));
    expect(left).toEqual([undefined]);
    await settled();
    expect(manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });

  it('give back a grant that comes after they were called off', async () => {
    const calledOff = new AbortController();
    const { store, left, manager } = await oneQueued({ signal: calledOff.signal });
    await store.watching[0]!.wake();
    calledOff.abort();
    await store.next('acquire').reply(granted());
    await store.next('release').reply(released());
    expect(left).toEqual([]);
    expect(manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });

  it('whose question was never answered have it undone with the doubt, and that is asked until it is certain', async () => {
    const { store, runtime, caller, left, manager } = await oneQueued();
    await store.watching[0]!.wake();
    const failure = unknown();
    await store.next('acquire').fail(failure);
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'unknown' });
    // It undoes the place as well: leaving that beside it would not wait for what may still arrive.
    expect(left).toEqual([]);
    expect(store.next('release').uncertain).toBe(failure);
    await store.next('release').fail(unknown());
    for (let i = 0; i < 5; i += 1) {
      await runtime.pass(1_000);
      await store.next('release').fail(unknown());
    }
    await runtime.pass(1_000);
    await store.next('release').reply(notHeld);
    expect(manager.usage.undoing).toBe(0);
  });

  it('where it never becomes certain, are forgotten when the place would be over by itself', async () => {
    const { store, runtime, manager } = await oneQueued();
    await store.watching[0]!.wake();
    await store.next('acquire').fail(unknown());
    await store.next('release').fail(unknown());
    let requestCount = 0;
    for (; manager.usage.undoing > 0 && requestCount < 1_000; requestCount += 1) {
      await runtime.pass(1_000);
      if (store.unanswered.length > 0) await store.next('release').fail(unknown());
    }
    expect(requestCount).toBeGreaterThan(10);
    expect(requestCount).toBeLessThan(1_000);
    expect(store.unanswered).toEqual([]);
  });

  it('whose question was certainly not done leave their place', async () => {
    const { store, caller, left } = await oneQueued();
    await store.watching[0]!.wake();
    await store.next('acquire').fail(notExecuted());
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'not-executed' });
    expect([left, store.unanswered]).toEqual([[undefined], []]);
  });

  it('count no more for maxWaiters from their release on', async () => {
    const { take, store } = fairLocks({ maxWaiters: 0 });
    const first = take();
    await settled();
    await store.next('acquire').reply(granted());
    const releasing = first.value!.release();
    const second = take();
    await settled();
    expect(second.state).toBe('pending');
    await store.next('release').reply(released());
    await releasing;
    await store.next('acquire').reply(granted(2));
    expect(second.state).toBe('fulfilled');
  });

  it('are refused when the app stops, each of them', async () => {
    const { manager, store, take, runtime } = fairLocks();
    const callers = [take(), take()];
    await settled();
    const entries = [newEntry(), newEntry()];
    for (const { entry } of entries) await store.next('acquire').reply(queued(entry));
    manager.refuseNew();
    await settled();
    expect(callers.map(({ error }) => error)).toMatchObject([
      { code: 'LOCK_SHUTDOWN' },
      { code: 'LOCK_SHUTDOWN' },
    ]);
    expect(entries.map(({ left }) => left)).toEqual([[undefined], [undefined]]);
    expect(runtime.due).toEqual([]);
  });

  it('hear of a forced unlock that was asked for after their grant was', async () => {
    const { manager, store, take } = fairLocks();
    const caller = take();
    await settled();
    const forced = manager.forceUnlock('k');
    await settled();
    const [requested, forcing] = store.unanswered;
    await forcing!.reply(true);
    await forced;
    await requested!.reply(granted());
    // It is not believed: the hold may be gone.
    await store.next('release').reply(notHeld);
    expect(store.next('acquire').claim.owner).not.toBe(requested!.claim.owner);
    await store.next('acquire').reply(granted(2));
    expect(caller.state).toBe('fulfilled');
  });
});

describe('the option fair', () => {
  const locks = createTestingLocks();

  it('is in the decorator, too, and the first come is the first served in memory', async () => {
    class Auction {
      readonly served: number[] = [];
      @Locked('auction', { mode: 'fair' })
      async bid(no: number): Promise<void> {
        this.served.push(no);
        expect((await locks.inspect('auction'))?.kind).toBe('fair');
      }
    }
    const auction = bindLocks(new Auction(), locks);
    await Promise.all([1, 2, 3, 4, 5].map((no) => auction.bid(no)));
    expect(auction.served).toEqual([1, 2, 3, 4, 5]);
    expect(locks.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });
});

describe('the keeper of places', () => {
  it('keeps places of two kinds in a request for each', async () => {
    const { manager, call, store, take, runtime } = fairLocks();
    take();
    watched(manager.acquire(['plain'], call()));
    await settled();
    await store.next('acquire').reply(queued(newEntry().entry));
    await store.next('acquire').reply(queued(newEntry().entry));
    await runtime.pass(1_000);
    expect(store.unanswered.map(({ name, claims }) => [name, claims.map(({ kind }) => kind)])).toEqual([
      ['keep', ['fair']],
      ['keep', ['exclusive']],
    ]);
  });
});
