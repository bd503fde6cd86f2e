import { describe, expect, it } from 'vitest';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { createTestingLocks } from '../../../lib/entries/testing.js';
import type { LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import { ObjectStore } from '../../support/core/object-store.js';
import { notExecuted, unknown } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

const underTest = (input: LockSettingsInput = {}) => {
  const store = new ObjectStore();
  const core = coreUnderTest(input, store);
  const semaphore = core.manager.semaphore('pool');
  const latch = core.manager.countDownLatch('import');
  /** A caller that has been refused and can hear. */
  const waits = async (permits = 1, options: Parameters<typeof semaphore.acquire>[1] = {}) => {
    const caller = watched(semaphore.acquire(permits, { waitMs: 10_000, ...options }));
    await settled();
    await store.nextRequest.reply(false);
    await store.watching[0]!.becomeLive();
    await store.nextRequest.reply(false);
    return caller;
  };
  /** One more, behind those that wait. */
  const enqueue = async (permits = 1, options: Parameters<typeof semaphore.acquire>[1] = {}) => {
    const caller = watched(semaphore.acquire(permits, { waitMs: 10_000, ...options }));
    await settled();
    return caller;
  };
  return { ...core, store, semaphore, latch, waits, enqueue };
};

describe('waiting for permits of a semaphore', () => {
  it('asks, listens, asks again when it can hear and after each hint, and not in between', async () => {
    const { store, runtime, semaphore, manager } = underTest();
    const caller = watched(semaphore.acquire(2, { waitMs: Infinity }));
    await settled();
    expect(store.requested).toEqual(['take 2']);
    expect(store.watching).toEqual([]);
    await store.nextRequest.reply(false);
    expect(store.watching.map(({ key }) => key)).toEqual(['pool']);
    expect(store.requested).toEqual([]);
    await store.watching[0]!.becomeLive();
    await store.nextRequest.reply(false);
    await runtime.pass(3_600_000);
    expect(store.objectRequests).toHaveLength(2);
    await store.watching[0]!.wake();
    await store.nextRequest.reply(true);
    expect(caller.state).toBe('fulfilled');
    expect(store.watching).toEqual([]);
    expect(manager.usage).toMatchObject({ leases: 0, keys: 0 });
  });

  it('a request that is under way is answered before the store is closed', async () => {
    const { store, manager, semaphore } = underTest({ shutdownGraceMs: 0 });
    const caller = watched(semaphore.acquire(1, { waitMs: 10_000 }));
    await settled();
    const closing = watched(manager.close());
    await settled();
    expect(closing.state).toBe('pending');
    await store.nextRequest.reply(true);
    expect([caller.state, closing.state]).toEqual(['fulfilled', 'fulfilled']);
  });

  it('asks again when the hint came before the answer', async () => {
    const { store, waits } = underTest();
    const caller = await waits();
    await store.watching[0]!.wake();
    await store.watching[0]!.wake();
    await store.nextRequest.reply(false);
    expect(store.requested).toEqual(['take 1']);
    await store.nextRequest.reply(true);
    expect(caller.state).toBe('fulfilled');
  });

  it('asks for the last time when the wait is over', async () => {
    const { store, runtime, waits } = underTest();
    const caller = await waits(1, { waitMs: 700 });
    await runtime.pass(690);
    expect(store.requested).toEqual([]);
    await runtime.pass(20);
    expect(store.requested).toEqual(['take 1']);
    await store.nextRequest.reply(false);
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'pool' });
  });

  it('has what was granted to its last question', async () => {
    const { store, runtime, waits } = underTest();
    const caller = await waits(1, { waitMs: 700 });
    await runtime.pass(2_000);
    await store.nextRequest.reply(true);
    expect(caller.state).toBe('fulfilled');
  });

  it.each([
    ['its signal was aborted', ({ abort }: { abort: () => void }) => abort()],
    ['the app began to stop', ({ stop }: { stop: () => void }) => stop()],
  ])('keeps what was granted while %s: no other caller could release it', async (_what, happen) => {
    const { store, semaphore, manager } = underTest();
    const controller = new AbortController();
    const { signal } = controller;
    const caller = watched(semaphore.acquire(1, { signal }));
    await settled();
    happen({ abort: () => controller.abort(), stop: () => manager.refuseNew() });
    await settled();
    expect(caller.state).toBe('pending');
    await store.nextRequest.reply(true);
    expect(caller.state).toBe('fulfilled');
    expect(store.objectRequests).toEqual(['take 1']);
  });

  it('ends with the abort when what was asked meanwhile is refused', async () => {
    const { store, semaphore } = underTest();
    const controller = new AbortController();
    const caller = watched(semaphore.acquire(1, { signal: controller.signal }));
    await settled();
    controller.abort();
    await store.nextRequest.reply(false);
    expect(caller.error).toMatchObject({ code: 'LOCK_ABORTED' });
  });

  it('has the first alone ask, in order, and each for itself when its wait is over', async () => {
    const { store, runtime, waits, enqueue } = underTest();
    const first = await waits(5);
    const second = await enqueue(1, { waitMs: 500 });
    const third = await enqueue(1);
    expect(store.requested).toEqual([]);
    await store.watching[0]!.wake();
    expect(store.requested).toEqual(['take 5']);
    await store.nextRequest.reply(false);
    await runtime.pass(510);
    expect(store.requested).toEqual(['take 1']);
    await store.nextRequest.reply(false);
    expect(second.error).toMatchObject({ code: 'LOCK_TAKEN' });
    await store.watching[0]!.wake();
    await store.nextRequest.reply(true);
    expect(first.state).toBe('fulfilled');
    // Now it is the third one's turn, and it has never asked.
    expect(store.requested).toEqual(['take 1']);
    await store.nextRequest.reply(true);
    expect(third.state).toBe('fulfilled');
    expect(store.watches).toHaveLength(1);
  });

  it('sends concurrent requests while no caller waits', async () => {
    const { store, semaphore } = underTest();
    const callers = [1, 2, 3].map((permits) => watched(semaphore.acquire(permits)));
    await settled();
    expect(store.requested).toEqual(['take 1', 'take 2', 'take 3']);
    await store.nextRequest.reply(true);
    await store.nextRequest.reply(false);
    await store.nextRequest.reply(true);
    expect(callers.map(({ state }) => state)).toEqual(['fulfilled', 'pending', 'fulfilled']);
  });

  it('goes on with the next one when the first gives up, if there was a hint since that one asked', async () => {
    const { store, waits, enqueue } = underTest();
    const abort = new AbortController();
    const first = await waits(5, { signal: abort.signal });
    const second = await enqueue();
    abort.abort();
    await settled();
    expect(first.error).toMatchObject({ code: 'LOCK_ABORTED' });
    await store.nextRequest.reply(true);
    expect(second.state).toBe('fulfilled');
  });

  it('looks every second while it cannot hear, and asks when that may be worth it', async () => {
    const { store, runtime, semaphore } = underTest();
    const caller = watched(semaphore.acquire(2, { waitMs: Infinity }));
    await settled();
    await store.nextRequest.reply(false);
    await runtime.pass(900);
    expect(store.requested).toEqual([]);
    await runtime.pass(200);
    expect(store.requested).toEqual(['free']);
    await store.nextRequest.reply(1);
    expect(store.requested).toEqual([]);
    await runtime.pass(1_100);
    await store.nextRequest.reply(2);
    expect(store.requested).toEqual(['take 2']);
    await store.nextRequest.reply(true);
    expect(caller.state).toBe('fulfilled');
  });

  it('tries again shortly when the store asks for that, within the wait', async () => {
    const { store, runtime, semaphore } = underTest();
    const caller = watched(semaphore.acquire());
    await settled();
    const moving = new StoreFailure('TRYAGAIN', 'not-executed', { transient: true });
    await store.nextRequest.fail(moving);
    expect(store.requested).toEqual([]);
    await runtime.pass(60);
    // It cannot hear yet.
    await store.nextRequest.reply(1);
    await store.nextRequest.reply(true);
    expect(caller.state).toBe('fulfilled');
  });

  it('asks for another try after a pause, too, if it came while the store fails for others', async () => {
    const { store, runtime, waits, enqueue, latch } = underTest();
    await waits(5);
    void watched(latch.wait());
    await settled();
    await store.nextRequest.fail(new StoreFailure('away', 'not-executed', { passing: true }));
    const caller = await enqueue();
    expect(store.requested).toEqual(['free']);
    await store.nextRequest.fail(new StoreFailure('TRYAGAIN', 'not-executed', { transient: true }));
    expect(store.requested).toEqual([]);
    await runtime.pass(60);
    expect(store.requested).toEqual(['free']);
    await store.nextRequest.reply(0);
    expect(caller.state).toBe('pending');
  });

  it.each([
    ['waits', true],
    ['is refused as the one too many', false],
  ])('a caller whose request has failed for now %s, once the store replies', async (_what, reply) => {
    const { store, runtime, semaphore } = underTest({ maxWaiters: 0 });
    const caller = watched(semaphore.acquire());
    await settled();
    await store.nextRequest.fail(new StoreFailure('TRYAGAIN', 'not-executed', { transient: true }));
    expect(caller.state).toBe('pending');
    await runtime.pass(60);
    await store.nextRequest.reply(1);
    await store.nextRequest.reply(reply);
    if (reply) expect(caller.state).toBe('fulfilled');
    else expect(caller.error).toMatchObject({ code: 'LOCK_QUEUE_FULL' });
  });

  it('takes no permits for a caller that was aborted while it looked whether there are any', async () => {
    const { store, runtime, semaphore } = underTest();
    const abort = new AbortController();
    const caller = watched(semaphore.acquire(1, { waitMs: Infinity, signal: abort.signal }));
    await settled();
    await store.nextRequest.reply(false);
    await runtime.pass(1_100);
    abort.abort();
    await store.nextRequest.reply(1);
    expect(caller.error).toMatchObject({ code: 'LOCK_ABORTED' });
    expect(store.requested).toEqual([]);
  });

  it('leaves those behind it alone when this process asks for too much, and was refused at the end of its wait', async () => {
    const overloaded = new StoreFailure('too much', 'not-executed', { overloaded: true });
    const { store, runtime, waits, enqueue } = underTest();
    const [first, second] = [await waits(), await enqueue(1, { waitMs: 500 })];
    const third = await enqueue();
    await store.watching[0]!.wake();
    await store.nextRequest.fail(overloaded);
    expect([first.error, second.state]).toMatchObject([{ reason: 'overloaded' }, 'pending']);
    await store.nextRequest.reply(false);
    await runtime.pass(510);
    await store.nextRequest.fail(overloaded);
    expect([second.error, third.state]).toMatchObject([{ code: 'LOCK_TAKEN' }, 'pending']);
  });

  it('opens the store with its first request', async () => {
    const { store, semaphore } = underTest();
    void watched(semaphore.availablePermits());
    await settled();
    expect(store.host).toBeDefined();
  });

  it('fails for all in line when the store fails, and is unknown only to who has asked', async () => {
    const { store, runtime, waits, enqueue } = underTest();
    const callers = [await waits()];
    await runtime.pass(700);
    callers.push(await enqueue(), await enqueue());
    await store.watching[0]!.wake();
    await store.nextRequest.fail(unknown());
    expect(callers.map(({ error }) => /after (\d+) ms/.exec((error as Error).message)?.[1])).toEqual([
      '700',
      '0',
      '0',
    ]);
    expect(callers.map(({ error }) => (error as { outcome?: string }).outcome)).toEqual([
      'unknown',
      'not-executed',
      'not-executed',
    ]);
    expect(store.requested).toEqual([]);
    expect(store.watching).toEqual([]);
  });

  it('says "unknown" also to a caller that was aborted meanwhile', async () => {
    const { store, semaphore } = underTest();
    const controller = new AbortController();
    const caller = watched(semaphore.acquire(1, { signal: controller.signal }));
    await settled();
    controller.abort();
    await store.nextRequest.fail(unknown());
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'unknown' });
    expect((caller.error as Error).message).toContain('nothing more is given back');
  });

  it('fails when it can never hear', async () => {
    const { store, semaphore } = underTest();
    const caller = watched(semaphore.acquire());
    await settled();
    await store.nextRequest.reply(false);
    await store.watching[0]!.fail();
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'not-executed' });
    expect((caller.error as Error).message).toContain('no permission to listen');
  });

  it('refuses the caller that is one too many, and never one that waits already', async () => {
    const { store, waits, enqueue } = underTest({ maxWaiters: 2 });
    const [first, second] = [await waits(), await enqueue()];
    const third = await enqueue();
    expect(third.error).toMatchObject({ code: 'LOCK_QUEUE_FULL' });
    await store.watching[0]!.wake();
    await store.nextRequest.reply(false);
    expect([first.state, second.state]).toEqual(['pending', 'pending']);
  });

  it('refuses all who wait when the app begins to stop, and ends when they have gone', async () => {
    const { manager, store, waits, enqueue } = underTest();
    const callers = [await waits(), await enqueue()];
    const closed = watched(manager.close());
    await settled();
    for (const { error } of callers) expect(error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(closed.state).toBe('fulfilled');
    expect(store.requested).toEqual([]);
  });

  it('has the end of the app wait for what is asked at that moment', async () => {
    const { manager, store, semaphore } = underTest();
    const released = watched(semaphore.release());
    const closed = watched(manager.close());
    await settled();
    expect(closed.state).toBe('pending');
    await store.nextRequest.reply(undefined);
    expect([released.state, closed.state]).toEqual(['fulfilled', 'fulfilled']);
  });
});

describe('waiting for a latch', () => {
  it('asks once for all who wait, after each hint', async () => {
    const { store, latch } = underTest();
    const callers = [1, 2, 3].map(() => watched(latch.wait({ waitMs: Infinity })));
    await settled();
    // A caller that comes asks for itself: an answer under way may be older than it is.
    expect(store.requested).toEqual(['count', 'count', 'count']);
    for (let i = 0; i < 3; i += 1) await store.nextRequest.reply(1);
    await store.watching[0]!.becomeLive();
    expect(store.requested).toEqual(['count']);
    await store.watching[0]!.wake();
    await store.nextRequest.reply(1);
    expect(store.requested).toEqual(['count']);
    await store.nextRequest.reply(0);
    expect(callers.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect(store.watches).toHaveLength(1);
    expect(store.watching).toEqual([]);
  });

  it('asks for the last time when the wait is over', async () => {
    const { store, runtime, latch } = underTest();
    const caller = watched(latch.wait({ waitMs: 500 }));
    await settled();
    await store.nextRequest.reply(2);
    await store.watching[0]!.becomeLive();
    await store.nextRequest.reply(2);
    await runtime.pass(510);
    await store.nextRequest.reply(1);
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'import' });
  });

  it('fails for each who waits when the store fails', async () => {
    const { store, latch } = underTest();
    const callers = [1, 2].map(() => watched(latch.wait()));
    await settled();
    for (let i = 0; i < 2; i += 1) await store.nextRequest.reply(1);
    await store.watching[0]!.becomeLive();
    await store.nextRequest.fail(notExecuted());
    for (const { error } of callers) expect(error).toMatchObject({ outcome: 'not-executed' });
  });
});

describe('objects without a holder', () => {
  it('are refused by name where the store has none', () => {
    const { manager } = coreUnderTest();
    expect(() => manager.semaphore('pool')).toThrow('The scripted store cannot keep semaphores.');
    expect(() => manager.countDownLatch('import')).toThrow(
      'The scripted store cannot keep countdown latches.',
    );
  });

  it('keep no caller waiting in tests without locks', async () => {
    const locks = createTestingLocks('off');
    await locks.semaphore('pool').acquire(5);
    expect(await locks.semaphore('pool').tryAcquire()).toBe(true);
    await locks.countDownLatch('import').trySetCount(1);
    await locks.countDownLatch('import').wait();
  });

  it('exclude in memory as they do on Redis', async () => {
    const semaphore = createTestingLocks().semaphore('pool');
    await semaphore.trySetPermits(1);
    await semaphore.acquire();
    expect(await semaphore.tryAcquire()).toBe(false);
    const waiting = semaphore.acquire();
    await semaphore.release();
    await waiting;
  });
});
