import { beforeEach, describe, expect, it } from 'vitest';
import { LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import type { StoreQueueEntry } from '../../../lib/core/seam/store-queue-entry.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import { coreUnderTest, watched, type Watched } from '../../support/core/core-under-test.js';
import { newEntry, queued, stillQueued } from '../../support/core/queue-entries.js';
import { ObjectStore } from '../../support/core/object-store.js';
import {
  granted,
  grantedFor,
  QueueStore,
  notExecuted,
  notHeld,
  ScriptedStore,
  taken,
} from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

const passing = (text = 'no connection', outcome: 'not-executed' | 'unknown' = 'not-executed') =>
  new StoreFailure(text, outcome, { passing: true });

/** The reply of a Redis Cluster of which a server has just come back. */
const notNow = new StoreFailure('CLUSTERDOWN', 'not-executed', { transient: true });

let core: ReturnType<typeof coreUnderTest>;
let events: string[];

const open = (store = new ScriptedStore(), input = {}): void => {
  core = coreUnderTest(input, store);
  events = [];
  core.manager.on('store-down', () => events.push('down'));
  core.manager.on('store-up', () => events.push('up'));
};

const acquire = (options: Partial<LockCall> = {}, key = 'k'): Watched<Lease> =>
  watched(core.manager.acquire([key], core.call({ waitMs: 20_000, ...options })));

/** A caller that was told "taken", and can hear. */
const waits = async (options: Partial<LockCall> = {}, key = 'k'): Promise<Watched<Lease>> => {
  const caller = acquire(options, key);
  await settled();
  await core.store.next('acquire').reply(taken(Infinity));
  await core.store.watching.at(-1)!.becomeLive();
  await core.store.next('acquire').reply(taken(Infinity));
  return caller;
};

const requests = (): readonly string[] => core.store.unanswered.map(({ name }) => name);

/** All that is asked from now on fails, for so long. */
const failsFor = async (ms: number, failure = passing()): Promise<void> => {
  for (let passed = 0; passed < ms; passed += 10) {
    for (const request of [...core.store.unanswered]) await request.fail(failure);
    await core.runtime.pass(10);
  }
  for (const request of [...core.store.unanswered]) await request.fail(failure);
};

/** Lets time pass until something is asked. */
const untilRequested = async (): Promise<void> => {
  for (let ms = 0; ms < 1_000 && core.store.unanswered.length === 0; ms += 5) await core.runtime.pass(5);
};

beforeEach(() => open());

describe('a caller that waits already, while the store fails for a passing reason', () => {
  it('goes on waiting, and has the lock when the store works again', async () => {
    const caller = await waits();
    await core.store.watching[0]!.wake();
    await failsFor(5_000);
    expect(caller.state).toBe('pending');
    await untilRequested();
    await core.store.next('inspect').reply(null);
    await core.store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
    expect(events).toEqual(['down', 'up']);
    expect(core.log.lines).toHaveLength(2);
  });

  it('goes on, at the pace of an outage, while the store asks for another try', async () => {
    const caller = await waits();
    await core.store.watching[0]!.wake();
    await failsFor(500);
    const before = core.store.sent.length;
    await failsFor(5_000, notNow);
    expect(core.store.sent.length - before).toBeLessThan(30);
    await untilRequested();
    await core.store.next('inspect').reply(null);
    await core.store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
    expect(events).toEqual(['down', 'up']);
  });

  it('is rejected when its wait is over, at once, and hears for how long the store had failed', async () => {
    const caller = await waits({ waitMs: 5_000 });
    await core.runtime.pass(2_000);
    await core.store.watching[0]!.wake();
    await failsFor(2_995, passing('no connection to it'));
    expect(caller.state).toBe('pending');
    // It does not wait for the reply to a request under way either.
    await core.runtime.pass(10);
    expect(caller.error).toBeInstanceOf(LockStoreError);
    expect(caller.error).toMatchObject({
      code: 'LOCK_STORE_FAILED',
      outcome: 'not-executed',
      retryable: true,
    });
    expect((caller.error as Error).message).toMatch(
      /while waiting for "k", after 500[01] ms: no connection to it\. The store has failed for 300[01] ms\./,
    );
    expect((caller.error as Error).cause).toMatchObject({ message: 'no connection to it' });
    expect(core.manager.usage).toMatchObject({ leases: 0, keys: 0, undoing: 0 });
  });

  it('keeps its order, also behind the one that talks to the store', async () => {
    const [first, second] = [await waits(), acquire()];
    await core.store.watching[0]!.wake();
    await failsFor(1_000);
    expect([first.state, second.state]).toEqual(['pending', 'pending']);
    await untilRequested();
    await core.store.next('inspect').reply(null);
    await core.store.next('acquire').reply(grantedFor(2));
    expect([first.state, second.state]).toEqual(['fulfilled', 'pending']);
    void first.value!.release();
    await settled();
    expect(second.state).toBe('fulfilled');
  });

  it('behind another one, is rejected at the end of its own wait', async () => {
    const [first, second] = [await waits(), acquire({ waitMs: 700 })];
    await core.store.watching[0]!.wake();
    await failsFor(500);
    await core.runtime.pass(300);
    expect(second.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    expect((second.error as Error).message).toMatch(/The store has failed for \d+ ms/);
    expect(first.state).toBe('pending');
  });

  it('goes on when the one before it is rejected at the end of its wait', async () => {
    const [first, second] = [await waits({ waitMs: 700 }), acquire()];
    await core.store.watching[0]!.wake();
    await failsFor(1_500);
    expect([first.state, second.state]).toEqual(['rejected', 'pending']);
    await untilRequested();
    await core.store.next('inspect').reply(null);
    await core.store.next('acquire').reply(granted());
    expect(second.state).toBe('fulfilled');
  });

  it('goes on behind a holder of its process, whose release fails', async () => {
    const holder = acquire();
    await settled();
    await core.store.next('acquire').reply(granted());
    const next = acquire();
    void holder.value!.release().catch(() => undefined);
    await settled();
    await failsFor(1_000);
    expect(next.state).toBe('pending');
    await untilRequested();
    for (let i = 0; next.state === 'pending' && i < 50; i++) {
      if (requests()[0] === 'inspect') await core.store.next('inspect').reply(null);
      else if (requests()[0] === 'release') await core.store.next('release').reply(notHeld);
      else if (requests()[0] === 'acquire') await core.store.next('acquire').reply(granted(2));
      else await core.runtime.pass(10);
    }
    expect(next.state).toBe('fulfilled');
  });

  it('undoes a request with unknown outcome, and asks again as another owner', async () => {
    const caller = await waits();
    await core.store.watching[0]!.wake();
    const { owner } = core.store.next('acquire').claim;
    const failure = passing('no answer', 'unknown');
    await core.store.next('acquire').fail(failure);
    expect(core.store.next('release')).toMatchObject({ uncertain: failure, claim: { owner } });
    await core.store.next('release').reply(notHeld);
    await untilRequested();
    await core.store.next('inspect').reply(null);
    expect(core.store.next('acquire').claim.owner).not.toBe(owner);
    await core.store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
  });

  it('asks only what changes nothing until the store replies: there is one request to undo, however long it hangs', async () => {
    await waits();
    const before = core.store.count('acquire');
    await core.store.watching[0]!.wake();
    await failsFor(10_000, passing('no answer', 'unknown'));
    expect(core.store.count('acquire') - before).toBe(1);
  });

  it.each([
    ['is called off', 'LOCK_ABORTED', (abort: () => void) => abort()],
    ['has to stop', 'LOCK_SHUTDOWN', () => core.manager.refuseNew()],
  ])('that %s goes at once, also with a request under way', async (_what, code, end) => {
    const controller = new AbortController();
    const callers = [await waits({ signal: controller.signal }), acquire({ signal: controller.signal })];
    await core.store.watching[0]!.wake();
    await failsFor(300);
    await untilRequested();
    expect(requests()).toEqual(['inspect']);
    end(() => controller.abort());
    await settled();
    for (const { error } of callers) expect(error).toMatchObject({ code });
  });

  it('is rejected at once when the reason is not passing', async () => {
    const callers = [await waits(), acquire()];
    await core.store.watching[0]!.wake();
    await failsFor(300);
    expect(callers.map(({ state }) => state)).toEqual(['pending', 'pending']);
    await untilRequested();
    await core.store.next('inspect').reply(null);
    await core.store.next('acquire').fail(notExecuted('NOAUTH'));
    for (const { error } of callers) {
      expect(error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
      expect((error as Error).message).toContain('NOAUTH');
    }
  });
});

describe('a caller that comes while the store fails', () => {
  /** A holder of the key. A request for another key has shown that the store fails. */
  const heldInAnOutage = async (): Promise<Watched<Lease>> => {
    const holder = acquire();
    await settled();
    await core.store.next('acquire').reply(granted());
    const other = acquire({}, 'other');
    await settled();
    await core.store.next('acquire').fail(passing());
    expect(other.state).toBe('rejected');
    return holder;
  };

  it('is rejected with the first request that fails after it came, although it only queues', async () => {
    const first = await waits();
    await core.store.watching[0]!.wake();
    await failsFor(1_000);
    const late = acquire({ waitMs: Infinity });
    await settled();
    // It does not wait for the next try, either.
    expect(requests()).toEqual(['inspect']);
    await core.store.next('inspect').fail(passing());
    expect(late.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    expect(first.state).toBe('pending');
  });

  it('waits behind the others when the store replies to that', async () => {
    const first = await waits();
    await core.store.watching[0]!.wake();
    await failsFor(1_000);
    const late = acquire();
    await settled();
    await core.store.next('inspect').reply(null);
    await core.store.next('acquire').reply(taken(Infinity));
    await core.store.watching[0]!.wake();
    await failsFor(1_000);
    expect([first.state, late.state]).toEqual(['pending', 'pending']);
  });

  it('as the first one for its key is rejected with its own request', async () => {
    const caller = acquire({ waitMs: Infinity });
    await settled();
    await core.store.next('acquire').fail(passing());
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    expect(core.manager.usage).toMatchObject({ leases: 0, keys: 0 });
  });

  it('as the first one for its key asks a store that asks for another try for 2 s, and is rejected then', async () => {
    const caller = acquire({ waitMs: Infinity });
    await failsFor(1_900, notNow);
    expect(caller.state).toBe('pending');
    await failsFor(200, notNow);
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED', retryable: true });
    expect(core.manager.usage).toMatchObject({ leases: 0, keys: 0 });
  });

  it('behind a holder of its process finds out whether the store fails, and is rejected if it does', async () => {
    const holder = await heldInAnOutage();
    const [late, later] = [acquire({ waitMs: Infinity }), acquire({ waitMs: Infinity })];
    await settled();
    expect(requests()).toEqual(['extend', 'extend']);
    await core.store.next('extend').fail(passing());
    expect(late.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await core.store.next('extend').reply([{ status: 'held', validForMs: 30_000 }]);
    expect([later.state, holder.value!.lost]).toEqual(['pending', false]);
  });

  it('behind a holder of its process tells that one when its lock turns out to be lost', async () => {
    const holder = await heldInAnOutage();
    const late = acquire();
    await settled();
    await core.store.next('extend').reply([{ status: 'lost' }]);
    expect(holder.value!.lost).toBe(true);
    await core.store.next('acquire').reply(granted(2));
    expect(late.state).toBe('fulfilled');
  });

  it('behind a holder of its process sends no second request when its wait is over', async () => {
    const holder = await heldInAnOutage();
    const late = acquire({ waitMs: 0 });
    await settled();
    void holder.value!.release();
    await settled();
    await core.store.next('extend').reply([{ status: 'held', validForMs: 30_000 }]);
    expect(late.error).toMatchObject({ code: 'LOCK_TAKEN' });
    expect(requests()).toEqual(['release']);
  });

  it('counts against maxWaiters like all who wait', async () => {
    open(new ScriptedStore(), { maxWaiters: 1 });
    await waits();
    acquire();
    await core.store.watching[0]!.wake();
    await failsFor(500);
    const late = acquire();
    await settled();
    expect(late.error).toMatchObject({ code: 'LOCK_QUEUE_FULL' });
  });
});

describe('an outage for many keys', () => {
  it('has a few of them try at a time, and all in batches as soon as one is answered', async () => {
    const keys = Array.from({ length: 200 }, (_, i) => `k${i}`);
    const callers: Watched<Lease>[] = [];
    for (const key of keys) callers.push(await waits({ waitMs: Infinity }, key));
    for (const watch of core.store.watching) await watch.wake();
    await failsFor(20);
    const before = core.store.count('inspect');
    await failsFor(5_000);
    // At most 64 twice a second, and a few more often at the beginning.
    expect(core.store.count('inspect') - before).toBeLessThan(64 * 20);
    await untilRequested();
    expect(requests().length).toBeLessThanOrEqual(64);
    const startedAt = core.runtime.now();
    while (callers.some(({ state }) => state === 'pending')) {
      for (const request of [...core.store.unanswered]) {
        if (request.name === 'inspect') await request.reply(null);
        else await request.reply(granted());
      }
      await core.runtime.pass(1);
    }
    expect(core.runtime.now() - startedAt).toBeLessThan(100);
    expect(events).toEqual(['down', 'up']);
  });
});

describe('a place in line', () => {
  let entry: StoreQueueEntry;
  let left: readonly unknown[];

  const enqueue = async (options: Partial<LockCall> = {}): Promise<Watched<Lease>> => {
    const caller = acquire(options);
    await settled();
    await core.store.next('acquire').reply(queued(entry, 0));
    return caller;
  };

  beforeEach(() => {
    open(new QueueStore());
    ({ entry, left } = newEntry());
  });

  it('is used again if it still lives, whatever became of the requests about it', async () => {
    const caller = await enqueue();
    const { owner } = core.store.sent[0]!.claim;
    await core.runtime.pass(1_000);
    await failsFor(5_000, passing('no answer', 'unknown'));
    expect([caller.state, core.store.count('acquire'), left]).toEqual(['pending', 1, []]);
    await untilRequested();
    for (const request of [...core.store.unanswered]) {
      expect(request.claim.owner).toBe(owner);
      await request.reply([stillQueued()]);
    }
    entry.notify({ status: 'granted', validForMs: 10_000, token: 7, tokens: 64 });
    await settled();
    expect(caller.value!.fencingToken).toBe(7);
    expect(events).toEqual(['down', 'up']);
  });

  it('of a caller for a fair lock is refreshed again after the outage', async () => {
    await enqueue({ kind: 'fair' });
    await core.store.watching[0]!.becomeLive();
    await failsFor(1_000);
    await untilRequested();
    for (const request of [...core.store.unanswered]) await request.reply([stillQueued()]);
    expect(events).toEqual(['down', 'up']);
    const before = core.store.count('keep');
    await core.runtime.pass(1_000);
    expect(core.store.count('keep')).toBe(before + 1);
  });

  it('that is gone is asked for again, as another owner', async () => {
    const caller = await enqueue();
    const { owner } = core.store.sent[0]!.claim;
    await core.runtime.pass(1_000);
    await failsFor(2_000);
    await untilRequested();
    for (const request of [...core.store.unanswered]) await request.reply([{ status: 'gone' }]);
    expect(core.store.next('acquire').claim.owner).not.toBe(owner);
    await core.store.next('acquire').reply(granted());
    expect(caller.state).toBe('fulfilled');
  });

  it.each(['exclusive', 'fair'] as const)(
    'of each of many callers (%s) costs one request for all while the store fails, and a try now and then',
    async (kind) => {
      const keys =
        kind === 'fair' ? Array<string>(300).fill('k') : Array.from({ length: 300 }, (_, i) => `k${i}`);
      const callers: Watched<Lease>[] = [];
      for (const key of keys) {
        callers.push(acquire({ kind, waitMs: Infinity }, key));
        await settled();
        await core.store.next('acquire').reply(queued(newEntry().entry, 9));
      }
      await core.runtime.pass(1_000);
      const before = core.store.sent.length;
      await failsFor(3_000, passing('no answer', 'unknown'));
      expect(core.store.sent.length - before).toBeLessThan(64 * 15);
      expect(core.store.count('acquire'), 'nobody has lost a place').toBe(300);
      expect(callers.every(({ state }) => state === 'pending')).toBe(true);
    },
  );
});

describe('semaphores and latches', () => {
  const store = (): ObjectStore => core.store as ObjectStore;

  const begin = async (what: 'permits' | 'latch', waitMs = 20_000): Promise<Watched<unknown>> => {
    const caller =
      what === 'permits'
        ? watched(core.manager.semaphore('s').acquire(1, { waitMs }))
        : watched(core.manager.countDownLatch('s').wait({ waitMs }));
    await settled();
    return caller;
  };

  const refused = async (what: 'permits' | 'latch', waitMs?: number): Promise<Watched<unknown>> => {
    const caller = await begin(what, waitMs);
    await store().nextRequest.reply(what === 'latch' ? 1 : false);
    await store().watching[0]!.becomeLive();
    await store().nextRequest.reply(what === 'latch' ? 1 : false);
    return caller;
  };

  /** All questions fail, for so long. */
  const failFor = async (ms: number, failure = passing()): Promise<void> => {
    for (let passed = 0; passed < ms; passed += 10) {
      while (store().requested.length > 0) await store().nextRequest.fail(failure);
      await core.runtime.pass(10);
    }
    while (store().requested.length > 0) await store().nextRequest.fail(failure);
  };

  const untilObjectRequest = async (): Promise<void> => {
    for (let ms = 0; ms < 1_000 && store().requested.length === 0; ms += 5) await core.runtime.pass(5);
  };

  beforeEach(() => open(new ObjectStore()));

  it.each(['permits', 'latch'] as const)('%s: a waiter keeps waiting through an outage', async (what) => {
    const caller = await refused(what);
    await store().watching[0]!.wake();
    await failFor(5_000);
    expect(caller.state).toBe('pending');
    await untilObjectRequest();
    await store().nextRequest.reply(what === 'latch' ? 0 : 1);
    await store().nextRequest.reply(what === 'latch' ? 0 : true);
    expect(caller.state).toBe('fulfilled');
    expect(events).toEqual(['down', 'up']);
  });

  it.each(['permits', 'latch'] as const)(
    '%s: the end of the wait is a failure of the store',
    async (what) => {
      const caller = await refused(what, 3_000);
      await store().watching[0]!.wake();
      await failFor(2_990);
      await core.runtime.pass(20);
      expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'not-executed' });
      expect((caller.error as Error).message).toMatch(
        /The store has failed for 3\d\d\d ms|failed for 2\d\d\d ms/,
      );
      expect(core.manager.usage).toMatchObject({ leases: 0, keys: 0 });
    },
  );

  it.each([
    ['permits', passing()],
    ['permits', notNow],
    ['latch', passing()],
    ['latch', notNow],
  ] as const)(
    '%s: a caller that comes in an outage is rejected with its own question: %s',
    async (what, failure) => {
      const first = await refused(what);
      await store().watching[0]!.wake();
      await failFor(500);
      const late = await begin(what);
      await store().nextRequest.fail(failure);
      expect([first.state, late.error]).toMatchObject(['pending', { code: 'LOCK_STORE_FAILED' }]);
    },
  );

  it.each(['permits', 'latch'] as const)(
    '%s: one question for all who wait, and only now and then',
    async (what) => {
      const callers = [await refused(what)];
      for (let i = 0; i < 50; i++) {
        callers.push(await begin(what));
        if (what === 'latch') await store().nextRequest.reply(1);
      }
      await store().watching[0]!.wake();
      const before = store().objectRequests.length;
      await failFor(5_000);
      expect(store().objectRequests.length - before).toBeLessThan(30);
      expect(callers.every(({ state }) => state === 'pending')).toBe(true);
    },
  );

  it.each(['permits', 'latch'] as const)(
    '%s: a waiter goes on, at the pace of an outage, while the store asks for another try',
    async (what) => {
      const caller = await refused(what);
      await store().watching[0]!.wake();
      await failFor(500);
      const before = store().objectRequests.length;
      await failFor(5_000, notNow);
      expect(store().objectRequests.length - before).toBeLessThan(30);
      await untilObjectRequest();
      await store().nextRequest.reply(what === 'latch' ? 0 : 1);
      await store().nextRequest.reply(what === 'latch' ? 0 : true);
      expect(caller.state).toBe('fulfilled');
      expect(events).toEqual(['down', 'up']);
    },
  );

  it.each(['permits', 'latch'] as const)(
    '%s: a first caller asks a store that asks for another try for 2 s, and is rejected then',
    async (what) => {
      const caller = await begin(what);
      await failFor(1_900, notNow);
      expect(caller.state).toBe('pending');
      await failFor(200, notNow);
      expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    },
  );

  it('the end of a wait names the last failure, if the outage is over for others and not for its own question', async () => {
    const caller = await refused('permits', 3_000);
    await store().watching[0]!.wake();
    await store().nextRequest.fail(passing('away'));
    await untilObjectRequest();
    const late = await begin('permits');
    const [, own] = store().requested;
    expect(own).toBe('free');
    await store().requests[1]!.reply(0);
    await core.runtime.pass(3_000);
    const { message } = caller.error as Error;
    expect(message).toMatch(/away/);
    expect(message).not.toMatch(/failed for/);
    expect(late.state).toBe('pending');
  });

  it('permits that may be taken are never asked for again: that caller hears so, the others go on', async () => {
    const [first, second] = [await refused('permits'), await begin('permits')];
    await store().watching[0]!.wake();
    await store().nextRequest.fail(passing('no answer', 'unknown'));
    expect(first.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'unknown' });
    expect(second.state).toBe('pending');
    await untilObjectRequest();
    expect(store().requested).toEqual(['free']);
    await store().nextRequest.reply(1);
    await store().nextRequest.reply(true);
    expect(second.state).toBe('fulfilled');
  });

  it('an abort and a shutdown end the wait at once, also with a question under way', async () => {
    const caller = await refused('permits');
    await store().watching[0]!.wake();
    await failFor(300);
    await untilObjectRequest();
    core.manager.refuseNew();
    await settled();
    expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
  });
});
