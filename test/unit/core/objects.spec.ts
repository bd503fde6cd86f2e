import { describe, expect, it } from 'vitest';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { createTestingLocks } from '../../../lib/testing/index.js';
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
    await store.question.answer(false);
    await store.watching[0]!.becomeLive();
    await store.question.answer(false);
    return caller;
  };
  /** One more, behind those that wait. */
  const lines = async (permits = 1, options: Parameters<typeof semaphore.acquire>[1] = {}) => {
    const caller = watched(semaphore.acquire(permits, { waitMs: 10_000, ...options }));
    await settled();
    return caller;
  };
  return { ...core, store, semaphore, latch, waits, lines };
};

describe('waiting for permits of a semaphore', () => {
  it('asks, listens, asks again when it can hear and after each hint, and not in between', async () => {
    const { store, runtime, semaphore, manager } = underTest();
    const caller = watched(semaphore.acquire(2, { waitMs: Infinity }));
    await settled();
    expect(store.asked).toEqual(['take 2']);
    expect(store.watching).toEqual([]);
    await store.question.answer(false);
    expect(store.watching.map(({ key }) => key)).toEqual(['pool']);
    expect(store.asked).toEqual([]);
    await store.watching[0]!.becomeLive();
    await store.question.answer(false);
    await runtime.pass(3_600_000);
    expect(store.questions).toHaveLength(2);
    await store.watching[0]!.hint();
    await store.question.answer(true);
    expect(caller.state).toBe('fulfilled');
    expect(store.watching).toEqual([]);
    expect(manager.usage).toMatchObject({ leases: 0, keys: 0 });
  });

  it('asks again when the hint came before the answer', async () => {
    const { store, waits } = underTest();
    const caller = await waits();
    await store.watching[0]!.hint();
    await store.watching[0]!.hint();
    await store.question.answer(false);
    expect(store.asked).toEqual(['take 1']);
    await store.question.answer(true);
    expect(caller.state).toBe('fulfilled');
  });

  it('asks for the last time when the wait is over', async () => {
    const { store, runtime, waits } = underTest();
    const caller = await waits(1, { waitMs: 700 });
    await runtime.pass(690);
    expect(store.asked).toEqual([]);
    await runtime.pass(20);
    expect(store.asked).toEqual(['take 1']);
    await store.question.answer(false);
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'pool' });
  });

  it('has what was granted to its last question', async () => {
    const { store, runtime, waits } = underTest();
    const caller = await waits(1, { waitMs: 700 });
    await runtime.pass(2_000);
    await store.question.answer(true);
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
    await store.question.answer(true);
    expect(caller.state).toBe('fulfilled');
    expect(store.questions).toEqual(['take 1']);
  });

  it('ends with the abort when what was asked meanwhile is refused', async () => {
    const { store, semaphore } = underTest();
    const controller = new AbortController();
    const caller = watched(semaphore.acquire(1, { signal: controller.signal }));
    await settled();
    controller.abort();
    await store.question.answer(false);
    expect(caller.error).toMatchObject({ code: 'LOCK_ABORTED' });
  });

  it('has the first alone ask, in order, and each for itself when its wait is over', async () => {
    const { store, runtime, waits, lines } = underTest();
    const first = await waits(5);
    const second = await lines(1, { waitMs: 500 });
    const third = await lines(1);
    expect(store.asked).toEqual([]);
    await store.watching[0]!.hint();
    expect(store.asked).toEqual(['take 5']);
    await store.question.answer(false);
    await runtime.pass(510);
    expect(store.asked).toEqual(['take 1']);
    await store.question.answer(false);
    expect(second.error).toMatchObject({ code: 'LOCK_TAKEN' });
    await store.watching[0]!.hint();
    await store.question.answer(true);
    expect(first.state).toBe('fulfilled');
    // Now it is the third one's turn, and it has never asked.
    expect(store.asked).toEqual(['take 1']);
    await store.question.answer(true);
    expect(third.state).toBe('fulfilled');
    expect(store.watches).toHaveLength(1);
  });

  it('sends concurrent requests while no caller waits', async () => {
    const { store, semaphore } = underTest();
    const callers = [1, 2, 3].map((permits) => watched(semaphore.acquire(permits)));
    await settled();
    expect(store.asked).toEqual(['take 1', 'take 2', 'take 3']);
    await store.question.answer(true);
    await store.question.answer(false);
    await store.question.answer(true);
    expect(callers.map(({ state }) => state)).toEqual(['fulfilled', 'pending', 'fulfilled']);
  });

  it('goes on with the next one when the first gives up, if there was a hint since that one asked', async () => {
    const { store, waits, lines } = underTest();
    const abort = new AbortController();
    const first = await waits(5, { signal: abort.signal });
    const second = await lines();
    abort.abort();
    await settled();
    expect(first.error).toMatchObject({ code: 'LOCK_ABORTED' });
    await store.question.answer(true);
    expect(second.state).toBe('fulfilled');
  });

  it('looks every second while it cannot hear, and asks when that may be worth it', async () => {
    const { store, runtime, semaphore } = underTest();
    const caller = watched(semaphore.acquire(2, { waitMs: Infinity }));
    await settled();
    await store.question.answer(false);
    await runtime.pass(900);
    expect(store.asked).toEqual([]);
    await runtime.pass(200);
    expect(store.asked).toEqual(['free']);
    await store.question.answer(1);
    expect(store.asked).toEqual([]);
    await runtime.pass(1_100);
    await store.question.answer(2);
    expect(store.asked).toEqual(['take 2']);
    await store.question.answer(true);
    expect(caller.state).toBe('fulfilled');
  });

  it('tries again shortly when the store asks for that, within the wait', async () => {
    const { store, runtime, semaphore } = underTest();
    const caller = watched(semaphore.acquire());
    await settled();
    const moving = new StoreFailure('TRYAGAIN', 'not-executed', { transient: true });
    await store.question.fail(moving);
    expect(store.asked).toEqual([]);
    await runtime.pass(60);
    // It cannot hear yet.
    await store.question.answer(1);
    await store.question.answer(true);
    expect(caller.state).toBe('fulfilled');
  });

  it('fails for all in line when the store fails, and is unknown only to who has asked', async () => {
    const { store, waits, lines } = underTest();
    const callers = [await waits(), await lines(), await lines()];
    await store.watching[0]!.hint();
    await store.question.fail(unknown());
    expect(callers.map(({ error }) => (error as { outcome?: string }).outcome)).toEqual([
      'unknown',
      'not-executed',
      'not-executed',
    ]);
    expect(store.asked).toEqual([]);
    expect(store.watching).toEqual([]);
  });

  it('says "unknown" also to a caller that was aborted meanwhile', async () => {
    const { store, semaphore } = underTest();
    const controller = new AbortController();
    const caller = watched(semaphore.acquire(1, { signal: controller.signal }));
    await settled();
    controller.abort();
    await store.question.fail(unknown());
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'unknown' });
    expect((caller.error as Error).message).toContain('nothing more is given back');
  });

  it('fails when it can never hear', async () => {
    const { store, semaphore } = underTest();
    const caller = watched(semaphore.acquire());
    await settled();
    await store.question.answer(false);
    await store.watching[0]!.fail();
    expect(caller.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'not-executed' });
    expect((caller.error as Error).message).toContain('no permission to listen');
  });

  it('refuses the caller that is one too many, and never one that waits already', async () => {
    const { store, waits, lines } = underTest({ maxWaiters: 1 });
    const [first, second] = [await waits(), await lines()];
    const third = await lines();
    expect(third.error).toMatchObject({ code: 'LOCK_QUEUE_FULL' });
    await store.watching[0]!.hint();
    await store.question.answer(false);
    expect([first.state, second.state]).toEqual(['pending', 'pending']);
  });

  it('refuses all who wait when the app begins to stop, and ends when they have gone', async () => {
    const { manager, store, waits, lines } = underTest();
    const callers = [await waits(), await lines()];
    const closed = watched(manager.close());
    await settled();
    for (const { error } of callers) expect(error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(closed.state).toBe('fulfilled');
    expect(store.asked).toEqual([]);
  });

  it('has the end of the app wait for what is asked at that moment', async () => {
    const { manager, store, semaphore } = underTest();
    const released = watched(semaphore.release());
    const closed = watched(manager.close());
    await settled();
    expect(closed.state).toBe('pending');
    await store.question.answer(undefined);
    expect([released.state, closed.state]).toEqual(['fulfilled', 'fulfilled']);
  });
});

describe('waiting for a latch', () => {
  it('asks once for all who wait, after each hint', async () => {
    const { store, latch } = underTest();
    const callers = [1, 2, 3].map(() => watched(latch.wait({ waitMs: Infinity })));
    await settled();
    // A caller that comes asks for itself: an answer under way may be older than it is.
    expect(store.asked).toEqual(['count', 'count', 'count']);
    for (let i = 0; i < 3; i += 1) await store.question.answer(1);
    await store.watching[0]!.becomeLive();
    expect(store.asked).toEqual(['count']);
    await store.watching[0]!.hint();
    await store.question.answer(1);
    expect(store.asked).toEqual(['count']);
    await store.question.answer(0);
    expect(callers.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled', 'fulfilled']);
    expect(store.watches).toHaveLength(1);
    expect(store.watching).toEqual([]);
  });

  it('asks for the last time when the wait is over', async () => {
    const { store, runtime, latch } = underTest();
    const caller = watched(latch.wait({ waitMs: 500 }));
    await settled();
    await store.question.answer(2);
    await store.watching[0]!.becomeLive();
    await store.question.answer(2);
    await runtime.pass(510);
    await store.question.answer(1);
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'import' });
  });

  it('fails for each who waits when the store fails', async () => {
    const { store, latch } = underTest();
    const callers = [1, 2].map(() => watched(latch.wait()));
    await settled();
    for (let i = 0; i < 2; i += 1) await store.question.answer(1);
    await store.watching[0]!.becomeLive();
    await store.question.fail(notExecuted());
    for (const { error } of callers) expect(error).toMatchObject({ outcome: 'not-executed' });
  });
});

describe('objects without a holder', () => {
  it('are refused by name where the store has none', () => {
    const { manager } = coreUnderTest();
    expect(() => manager.semaphore('pool')).toThrow('This store cannot keep semaphores.');
    expect(() => manager.countDownLatch('import')).toThrow('This store cannot keep countdown latches.');
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
