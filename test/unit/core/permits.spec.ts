import { describe, expect, it } from 'vitest';
import { LockConfigurationError } from '../../../lib/core/errors/lock.errors.js';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import { defaultCall, type LockCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { coreUnderTest, Log, watched, type Watched } from '../../support/core/core-under-test.js';
import { granted, notExecuted, released, ScriptedStore, taken } from '../../support/core/scripted-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const GRANT = { status: 'granted', validForMs: 30_000 } as const;

const permits = (count = 3) => {
  const core = coreUnderTest();
  const { manager, call } = core;
  const take = (key = 'k', options: Partial<LockCall> = {}): Watched<Lease> =>
    watched(manager.acquire([key], call({ kind: 'permit', permits: count, ...options })));
  return { ...core, take };
};

describe('permits', () => {
  it('are claimed by owners that begin with the id of the service, without tokens, with the limit', async () => {
    const { store, take } = permits();
    take();
    await settled();
    const owner = 'id1000000000001';
    expect(store.next('acquire').claim).toMatchObject({ kind: 'permit', of: 3, tokens: 0, owner });
  });

  it('that are free are had by all callers of this process in one round trip', async () => {
    const { store, take, manager } = permits();
    const callers = [take(), take(), take('k', { waitMs: 0 })];
    await settled();
    expect(store.unanswered).toHaveLength(3);
    for (const caller of callers) {
      await store.next('acquire').reply(GRANT);
      expect(caller.state).toBe('fulfilled');
    }
    expect(new Set(store.sent.map(({ claim }) => claim.owner)).size).toBe(3);
    expect(manager.usage).toMatchObject({ leases: 3, holds: 3, keys: 1 });
  });

  it('are given to local callers in the order in which they came, whether they wait or only try', async () => {
    const { store, take } = permits(1);
    const callers = [take(), take(), take()];
    await settled();
    await store.next('acquire').reply(taken());
    // The store has refused: from now on only the first of them asks, and the others come after it.
    callers.push(take(), take('k', { waitMs: 0 }));
    await settled();
    for (const [at, caller] of callers.entries()) {
      expect(callers.map(({ state }) => state === 'fulfilled').indexOf(false)).toBe(at);
      expect(store.unanswered.filter(({ name }) => name === 'acquire')).toHaveLength(1);
      await store.next('acquire').reply(GRANT);
      expect(caller.state).toBe('fulfilled');
    }
  });

  it('are waited for no longer than waitMs, also while each request is granted', async () => {
    const { store, runtime, take } = permits(1);
    const [first, second, third] = [1_000, 1_000, 2_000].map((waitMs) => take('k', { waitMs }));
    const tries = take('k', { waitMs: 0 });
    await runtime.pass(199);
    await store.next('acquire').reply(GRANT);
    expect([first!.state, tries.state]).toEqual(['fulfilled', 'pending']);
    await runtime.pass(801);
    // Its own request.
    await store.next('acquire').reply(GRANT);
    expect([second!.state, third!.state, tries.error]).toMatchObject([
      'fulfilled',
      'pending',
      { code: 'LOCK_TAKEN' },
    ]);
    await store.next('acquire').reply(GRANT);
    expect(third!.state).toBe('fulfilled');
  });

  it('are had in order also when one that asks beside the head is refused after the head was granted', async () => {
    const { store, take, manager } = permits(2);
    const [first, second, third] = [take(), take(), take()];
    await settled();
    await store.next('acquire').reply(GRANT);
    expect([first.state, store.unanswered.length], 'the third waits for what becomes of the second').toEqual([
      'fulfilled',
      1,
    ]);
    const late = take();
    await settled();
    await store.next('acquire').reply(taken());
    for (const caller of [second, third, late]) {
      expect(caller.state).toBe('pending');
      await store.next('acquire').reply(GRANT);
      expect(caller.state).toBe('fulfilled');
    }
    for (const { value } of [first, second, third, late]) {
      void value!.release();
      await store.next('release').reply(released());
    }
    expect(manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });

  it('are not said to be taken while the store has yet to answer one that asks beside the head', async () => {
    const { store, runtime, take } = permits(2);
    const [contender, concurrent, late] = [take(), take(), take('k', { waitMs: 100 })];
    await settled();
    await store.next('acquire').reply(GRANT);
    await runtime.pass(100);
    expect([contender, concurrent, late].map(({ state }) => state)).toEqual([
      'fulfilled',
      'pending',
      'pending',
    ]);
    await store.next('acquire').fail(notExecuted());
    expect(concurrent.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await store.next('acquire').fail(notExecuted());
    expect(late.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
  });

  it('are refused to a caller whose time has ended as soon as a concurrent contender is refused', async () => {
    const { store, runtime, take } = permits(2);
    const [contender, concurrent, late] = [take(), take(), take('k', { waitMs: 100 })];
    await settled();
    await store.next('acquire').reply(GRANT);
    await runtime.pass(100);
    await store.next('acquire').reply(taken());
    expect([contender, concurrent].map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
    expect(late.error).toMatchObject({ code: 'LOCK_TAKEN' });
  });

  it('are refused for the shutdown, not as taken, to who asks beside the head when the app stops', async () => {
    const { store, manager, take } = permits(2);
    const callers = [take(), take()];
    await settled();
    const down = manager.shutDown();
    await store.next('acquire').reply(taken());
    await store.next('acquire').reply(taken());
    expect(callers.map(({ error }) => error)).toMatchObject([
      { code: 'LOCK_SHUTDOWN' },
      { code: 'LOCK_SHUTDOWN' },
    ]);
    await down;
  });

  it('are asked for by no more callers at once than there are', async () => {
    const { store, take } = permits(2);
    const callers = [take(), take(), take()];
    await settled();
    expect(store.unanswered).toHaveLength(2);
    for (const caller of callers) {
      await store.next('acquire').reply(GRANT);
      expect(caller.state).toBe('fulfilled');
    }
  });

  it('are refused to callers that only try as soon as one before them is refused', async () => {
    const { store, take } = permits(1);
    const waiting = take();
    await settled();
    await store.next('acquire').reply(taken());
    const tries = [take('k', { waitMs: 0 }), take('k', { waitMs: 0 })];
    await settled();
    expect(store.unanswered.filter(({ name }) => name === 'acquire')).toHaveLength(1);
    await store.next('acquire').reply(taken());
    expect([waiting, ...tries].map(({ state }) => state)).toEqual(['pending', 'rejected', 'rejected']);
  });

  describe('where other processes wait, too', () => {
    const TAKEN = { status: 'taken', retryInMs: 60_000 } as const;

    /** One holder, and two waiters of which the first has asked and sleeps. */
    const contended = async (last: Partial<LockCall> = {}) => {
      const core = permits(1);
      const { store, take } = core;
      const callers = [take(), take(), take('k', last)];
      await settled();
      await store.next('acquire').reply(GRANT);
      const open = (): string[] => store.unanswered.map(({ name }) => name);
      while (open().includes('acquire')) await store.next('acquire').reply(TAKEN);
      await store.watching[0]!.becomeLive();
      await store.next('acquire').reply(TAKEN);
      /** The holder's own message comes before the answer. */
      const release = async (caller: Watched<Lease>): Promise<void> => {
        void caller.value!.release();
        await settled();
        await store.watching[0]!.wake();
      };
      const replied = (othersWaiting: boolean): Promise<void> =>
        store.next('release').reply({ wasHeld: true, othersWaiting });
      return { ...core, callers, open, release, replied };
    };

    /** The same, after a turn that has lasted for 50 ms; the second caller has the permit. */
    const afterBatch = async (last: Partial<LockCall> = {}) => {
      const batch = await contended(last);
      await batch.release(batch.callers[0]!);
      expect(batch.open().sort()).toEqual(['acquire', 'release']);
      await batch.replied(true);
      await batch.store.next('acquire').reply(GRANT);
      await batch.store.next('acquire').reply(TAKEN);
      await batch.runtime.pass(50);
      await batch.release(batch.callers[1]!);
      expect(batch.open()).toEqual(['release']);
      return batch;
    };

    it('this one lets them go first after each 50 ms, until one of them gives a permit back', async () => {
      const { store, open, replied } = await afterBatch();
      await replied(true);
      expect(open()).toEqual([]);
      await store.watching[0]!.wake();
      expect(open()).toEqual(['acquire']);
    });

    it('a caller that does not wait still gets a reply of the store when it becomes the contender', async () => {
      const { store, open, replied, take } = await afterBatch();
      await replied(true);
      const tries = take('k', { waitMs: 0 });
      await settled();
      expect([tries.state, open()]).toEqual(['pending', []]);
      await store.watching[0]!.wake();
      await store.next('acquire').reply(GRANT);
      expect(tries.state).toBe('pending');
      await store.next('acquire').reply(GRANT);
      expect(tries.state).toBe('fulfilled');
    });

    it('it does so for 25 ms at most', async () => {
      const { runtime, open, replied } = await afterBatch();
      await replied(true);
      await runtime.pass(24);
      expect(open()).toEqual([]);
      await runtime.pass(1);
      expect(open()).toEqual(['acquire']);
    });

    it('one whose wait is shorter than that asks at its end, not after it', async () => {
      const { runtime, store, callers, open, replied } = await afterBatch({ waitMs: 60 });
      await replied(true);
      await runtime.pass(9);
      expect(open()).toEqual([]);
      await runtime.pass(1);
      await store.next('acquire').reply(TAKEN);
      expect(callers[2]!.error).toMatchObject({ code: 'LOCK_TAKEN' });
    });

    it('an aborted caller leaves at once', async () => {
      const controller = new AbortController();
      const { callers, open, replied } = await afterBatch({ signal: controller.signal });
      await replied(true);
      controller.abort();
      await settled();
      expect(callers[2]!.error).toMatchObject({ code: 'LOCK_ABORTED' });
      expect(open()).toEqual([]);
    });

    it('when it cannot hear anything it asks', async () => {
      const { store, open, replied } = await afterBatch();
      await replied(true);
      await store.watching[0]!.fail();
      expect(open()).toEqual(['acquire']);
    });

    it('it asks at once when none of them waits any more', async () => {
      const { open, replied } = await afterBatch();
      await replied(false);
      expect(open()).toEqual(['acquire']);
    });
  });

  it('are not handed over: each goes back to the store, under its own owner', async () => {
    const { store, take } = permits(2);
    const [first] = [take(), take(), take()];
    await settled();
    await store.next('acquire').reply(GRANT);
    await store.next('acquire').reply(GRANT);
    await store.next('acquire').reply(taken());
    watched(first.value!.release());
    await settled();
    expect(store.unanswered.map(({ name, claim }) => [name, claim.owner])).toEqual([
      ['release', first.value!.owner],
    ]);
  });

  it('are not handed off: the next caller of this process gets one by a request', async () => {
    const { store, manager, call } = permits();
    const one = call({ kind: 'permit', permits: 1 });
    const [first, second] = [watched(manager.acquire(['k'], one)), watched(manager.acquire(['k'], one))];
    await settled();
    await store.next('acquire').reply(GRANT);
    watched(first.value!.release());
    await settled();
    expect([second.state, store.count('release')]).toEqual(['pending', 1]);
  });

  it('inside of one another are one more each, and a lock inside a permit is its own', async () => {
    const { store, manager, call } = permits();
    const inner: Watched<Lease>[] = [];
    const permit = call({ kind: 'permit', permits: 3 });
    watched(
      manager.withLock(['k'], permit, () => {
        inner.push(watched(manager.acquire(['k'], permit)), watched(manager.acquire(['k'], call())));
        return Promise.all([]);
      }),
    );
    await settled();
    await store.next('acquire').reply(GRANT);
    expect(store.unanswered.filter(({ name }) => name === 'acquire').map(({ claim }) => claim.kind)).toEqual([
      'permit',
      'exclusive',
    ]);
  });

  it('are refused to a call that would wait without end inside a section that holds one', async () => {
    const { store, manager, call } = permits();
    const one = call({ kind: 'permit', permits: 2, waitMs: Infinity });
    let inner: Watched<Lease> | undefined;
    watched(
      manager.withLock(['k'], one, () => {
        inner = watched(manager.acquire(['k'], one));
        return Promise.all([]);
      }),
    );
    await settled();
    await store.next('acquire').reply(GRANT);
    expect(inner!.error).toMatchObject({ code: 'LOCK_NOT_REENTRANT', key: 'k' });
    expect(store.sent.filter(({ name }) => name === 'acquire')).toHaveLength(1);
  });

  it('have no fencing token, and say why', async () => {
    const { store, take } = permits();
    const caller = take();
    await settled();
    await store.next('acquire').reply(GRANT);
    expect(() => caller.value!.fencingToken).toThrow(/several may hold a permit/);
  });

  it('that come after their caller was aborted are given back, and the next caller asks', async () => {
    const { store, take } = permits();
    const controller = new AbortController();
    const [first, second] = [take('k', { signal: controller.signal }), take()];
    await settled();
    const requested = store.next('acquire');
    controller.abort();
    await settled();
    expect(first.state).toBe('rejected');
    await requested.reply(GRANT);
    expect(store.unanswered.map(({ name }) => name).sort()).toEqual(['acquire', 'release']);
    expect(store.unanswered.find(({ name }) => name === 'release')!.claim.owner).toBe(requested.claim.owner);
    expect(second.state).toBe('pending');
  });

  it('that are not free in time are refused, and the next waiter continues', async () => {
    const { store, runtime, take } = permits(1);
    const [first, second] = [take('k', { waitMs: 100 }), take('k', { waitMs: 10_000 })];
    await settled();
    await store.next('acquire').reply(taken());
    await runtime.pass(200);
    await store.next('acquire').reply(taken());
    expect([first.state, second.state]).toEqual(['rejected', 'pending']);
    await store.next('acquire').reply(GRANT);
    expect(second.state).toBe('fulfilled');
  });

  it('and locks are renewed by the watchdog in one round', async () => {
    const { store, runtime, take, manager, call } = permits();
    take();
    await settled();
    await store.next('acquire').reply(GRANT);
    watched(manager.acquire(['l'], call()));
    await settled();
    await store.next('acquire').reply(granted());
    await runtime.pass(10_000);
    expect(store.unanswered.map(({ name, claims }) => [name, ...claims.map(({ kind }) => kind)])).toEqual([
      ['extend', 'permit'],
      ['extend', 'exclusive'],
    ]);
  });

  it('are all lost to their holders by a forced unlock', async () => {
    const { store, take, manager } = permits();
    const callers = [take(), take()];
    await settled();
    await store.next('acquire').reply(GRANT);
    await store.next('acquire').reply(GRANT);
    const forcing = manager.forceUnlock('k');
    await store.next('forceUnlock').reply(true);
    expect(await forcing).toBe(true);
    expect(callers.map((caller) => caller.value!.lost)).toEqual([true, true]);
  });

  it('whose number another caller has changed are warned of once for a key', async () => {
    const { store, take, log } = permits();
    for (const key of ['a', 'a', 'b']) {
      take(key);
      await settled();
      await store.next('acquire').reply({ ...GRANT, limitBefore: 5 });
    }
    expect(log.lines.map((line) => /permits of "(.)" were 5 and are 3/.exec(line)?.[1])).toEqual(['a', 'b']);
    const caller = take('c', { waitMs: 0 });
    await settled();
    await store.next('acquire').reply({ status: 'taken', retryInMs: 1_000, limitBefore: 5 });
    expect([log.lines.length, caller.state]).toEqual([3, 'rejected']);
  });

  it('are refused by name on a store that has none, and nothing is sent', async () => {
    class NoPermits extends ScriptedStore {
      override readonly kinds = { exclusive: this };
    }
    const store = new NoPermits();
    const settings = resolveSettings({});
    const manager = new LockManager(store, settings, new Log(), new VirtualRuntime());
    const call = { ...defaultCall(settings), kind: 'permit', permits: 1 } as const;
    for (const keys of [['k'], ['k', 'l']]) {
      const refused = manager.acquire(keys, call);
      await expect(refused).rejects.toBeInstanceOf(LockConfigurationError);
      await expect(refused).rejects.toThrow('"permit"');
    }
    expect([store.sent, manager.usage.keys]).toEqual([[], 0]);
  });

  it('say released to who gives one back', async () => {
    const { store, take } = permits();
    const caller = take();
    await settled();
    await store.next('acquire').reply(GRANT);
    const releasing = caller.value!.release();
    await store.next('release').reply(released());
    expect(await releasing).toBe('released');
  });

  it('are refused to those who only try once the store has said that none is free', async () => {
    const { store, take, manager } = permits(1);
    const tries = [take('k', { waitMs: 0 }), take('k', { waitMs: 0 })];
    await settled();
    await store.next('acquire').reply(GRANT);
    expect(tries.map(({ state }) => state)).toEqual(['fulfilled', 'pending']);
    await store.next('acquire').reply(taken());
    expect(tries[1]!.error).toMatchObject({ code: 'LOCK_TAKEN' });
    void tries[0]!.value!.release();
    await store.next('release').reply(released());
    expect(manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });

  it('are asked for by a caller whose time has ended while the one before it was granted one', async () => {
    const { store, runtime, take } = permits(1);
    const [first, second] = [take(), take('k', { waitMs: 100 })];
    await settled();
    await store.next('acquire').reply(taken());
    await store.watching[0]!.becomeLive();
    const requested = store.next('acquire');
    await runtime.pass(100);
    await requested.reply(GRANT);
    expect([first.state, second.state]).toEqual(['fulfilled', 'pending']);
    await store.next('acquire').reply(GRANT);
    expect(second.state).toBe('fulfilled');
  });

  it('keep no caller from trying, however few may wait', async () => {
    const core = coreUnderTest({ maxWaiters: 0 });
    const call = core.call({ kind: 'permit', permits: 2, waitMs: 0 });
    const tries = [watched(core.manager.acquire(['k'], call)), watched(core.manager.acquire(['k'], call))];
    await settled();
    for (const one of tries) {
      await core.store.next('acquire').reply(GRANT);
      expect(one.state).toBe('fulfilled');
    }
  });

  it('that one call is refused for its own sake are refused to that one only', async () => {
    const { store, take, log } = permits(1);
    Object.assign(store, { permits: async () => null });
    const [first, second] = [take('k', { permits: undefined }), take()];
    await settled();
    const refusal = new StoreFailure('no number', 'not-executed', { keyOnly: true, claimOnly: true });
    await store.next('acquire').fail(refusal);
    expect([first.state, second.state]).toEqual(['rejected', 'pending']);
    await store.next('acquire').reply(GRANT);
    expect([second.state, log.lines]).toEqual(['fulfilled', []]);
  });

  it('that are forced back while a caller asks beside the head are not believed in, also when the head has gone', async () => {
    const { store, take, manager } = permits(2);
    const [contender, concurrent] = [take('k'), take('k', { waitMs: 0 })];
    await settled();
    await store.next('acquire').reply(GRANT);
    const forcing = watched(manager.forceUnlock('k'));
    const late = store.next('acquire');
    await store.unanswered.find(({ name }) => name === 'forceUnlock')!.reply(true);
    await late.reply(GRANT);
    expect([forcing.value, contender.value!.lost]).toEqual([true, true]);
    expect(concurrent.state === 'fulfilled' && !concurrent.value!.lost).toBe(false);
  });

  it('leave nothing of the key behind when the caller that asks beside the head is the last one', async () => {
    const { store, take, manager } = permits(2);
    const [contender, concurrent] = [take('k'), take('k', { waitMs: 0 })];
    await settled();
    await store.next('acquire').fail(notExecuted());
    expect([contender.state, manager.usage.keys]).toEqual(['rejected', 1]);
    await store.next('acquire').reply(taken());
    expect([concurrent.state, manager.usage.keys]).toEqual(['rejected', 0]);
  });
});
