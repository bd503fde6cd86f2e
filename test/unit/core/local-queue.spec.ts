import { beforeEach, describe, expect, it, vi } from 'vitest';
import type { LocalQueue } from '../../../lib/core/acquire/local-queue.js';
import type { Wait } from '../../../lib/core/wait/wait.js';
import {
  LockAbortedError,
  LockNotAcquiredError,
  LockStoreError,
} from '../../../lib/core/errors/lock.errors.js';
import { watched, type Watched } from '../../support/core/core-under-test.js';
import { claimOn, queueOn } from '../../support/core/queue-on.js';
import { notExecuted, ScriptedStore, unknown } from '../../support/core/scripted-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

let runtime: VirtualRuntime;
let store: ScriptedStore;
let idle: number;
let queue: LocalQueue;

const waitFor = (waitMs: number, more: Partial<Wait> = {}): Wait => ({
  key: 'k',
  startedAt: runtime.now(),
  waitMs,
  signal: undefined,
  nested: false,
  kind: 'exclusive',
  label: 'test',
  ...more,
});

const wait = (waitMs: number, more: Partial<Wait> = {}): Watched<unknown> =>
  watched(queue.untilContender(waitFor(waitMs, more), undefined));

const statesOf = (...all: Watched<unknown>[]): string[] => all.map(({ state }) => state);

beforeEach(() => {
  runtime = new VirtualRuntime();
  store = new ScriptedStore();
  idle = 0;
  queue = queueOn(store, runtime, { onIdle: () => (idle += 1) });
});

describe('turns', () => {
  it('the first caller has the turn at once, the others in the order in which they came', async () => {
    expect(queue.enter()).toBe(true);
    expect(queue.enter()).toBe(false);
    const [a, b, c] = [wait(1_000), wait(5_000), wait(100)];
    expect(queue.length).toBe(3);
    queue.leave();
    await settled();
    expect(statesOf(a, b, c)).toEqual(['fulfilled', 'pending', 'pending']);
    expect(queue.enter(), 'nobody overtakes').toBe(false);
    queue.leave();
    await settled();
    expect(statesOf(a, b, c)).toEqual(['fulfilled', 'fulfilled', 'pending']);
    queue.leave();
    await settled();
    expect(c.state).toBe('fulfilled');
    expect([queue.length, idle]).toEqual([0, 0]);
    queue.leave();
    expect(idle).toBe(1);
  });

  it('each waiter has its own deadline', async () => {
    queue.enter();
    const [long, short, endless] = [wait(300), wait(100), wait(Infinity)];
    await runtime.pass(99);
    expect(statesOf(long, short, endless)).toEqual(['pending', 'pending', 'pending']);
    await runtime.pass(1);
    expect(statesOf(long, short, endless)).toEqual(['pending', 'rejected', 'pending']);
    expect(short.error).toBeInstanceOf(LockNotAcquiredError);
    expect(short.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'k' });
    await runtime.pass(200);
    expect(statesOf(long, endless)).toEqual(['rejected', 'pending']);
    expect(runtime.due, 'an endless wait sets no timer, and ended ones leave none').toEqual([]);
  });

  it('a waiter that gives up leaves its neighbours in their places, and takes its timer with it', async () => {
    queue.enter();
    const caller = new AbortController();
    const a = wait(500);
    const b = wait(500, { signal: caller.signal });
    const c = wait(500);
    caller.abort('gone');
    await settled();
    expect(b.error).toBeInstanceOf(LockAbortedError);
    expect(b.error).toMatchObject({ code: 'LOCK_ABORTED', cause: 'gone' });
    queue.leave();
    queue.leave();
    await settled();
    expect(statesOf(a, c)).toEqual(['fulfilled', 'fulfilled']);
    expect(runtime.due).toEqual([]);
  });

  it('a wait of 0 is refused at once when the key is known to be taken', async () => {
    queue.enter();
    const none = wait(0);
    await settled();
    expect(none.error).toMatchObject({ code: 'LOCK_TAKEN' });
    expect(queue.length).toBe(0);
  });

  it('while the app stops, waiters for whom there is a refusal get it, nested ones go on', async () => {
    queue.enter();
    const [outer, nested] = [wait(500), wait(500, { nested: true })];
    queue.shutDown((one) => (one.nested ? undefined : new LockAbortedError('LOCK_SHUTDOWN', 'stopping')));
    await settled();
    expect(statesOf(outer, nested)).toEqual(['rejected', 'pending']);
    expect(outer.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
  });
});

describe('while a request of the head is unanswered', () => {
  const reply = async (): Promise<void> => {
    queue.replied(true);
    await settled();
  };
  const fail = async (): Promise<void> => {
    queue.unreplied = undefined;
    queue.failed(unknown(), 'acquiring');
    await settled();
  };

  it('a waiter that times out gets no "taken": it gets the failure of the store', async () => {
    queue.enter();
    queue.unreplied = () => undefined;
    const [now, soon, later] = [wait(0), wait(50), wait(10_000)];
    await runtime.pass(500);
    expect(statesOf(now, soon, later)).toEqual(['pending', 'pending', 'pending']);
    await fail();
    for (const one of [now, soon, later]) expect(one.error).toBeInstanceOf(LockStoreError);
  });

  it('they are told "taken" as soon as the answer shows that the store works, and only they', async () => {
    queue.enter();
    queue.unreplied = () => undefined;
    const [now, soon, later] = [wait(0), wait(50), wait(10_000)];
    await runtime.pass(500);
    await reply();
    for (const one of [now, soon]) expect(one.error).toMatchObject({ code: 'LOCK_TAKEN' });
    expect(later.state).toBe('pending');
  });

  it('one whose time is over is not let in when the turn becomes free', async () => {
    queue.enter();
    queue.unreplied = () => undefined;
    const [due, next] = [wait(50), wait(10_000)];
    await runtime.pass(100);
    await reply();
    queue.leave();
    await settled();
    expect(statesOf(due, next)).toEqual(['rejected', 'fulfilled']);
  });

  it('a failure that concerns only those whose time is over leaves the others waiting', async () => {
    queue.enter();
    queue.unreplied = () => undefined;
    const [due, other] = [wait(50), wait(10_000)];
    await runtime.pass(100);
    queue.failed(notExecuted(), 'waiting for', 'due');
    await settled();
    expect(due.error).toBeInstanceOf(LockStoreError);
    expect(other.state).toBe('pending');
  });
});

/** How many entries of sets and maps are visited while something runs. */
const visitsDuring = (run: () => void): number => {
  const iterators = [new Set().values(), new Map().values()].map(
    (one) => Object.getPrototypeOf(one) as { next: () => unknown },
  );
  let visits = 0;
  const spies = iterators.map((one) => {
    const next = one.next;
    return vi.spyOn(one, 'next').mockImplementation(function (this: unknown) {
      visits += 1;
      return next.call(this);
    });
  });
  run();
  for (const spy of spies) spy.mockRestore();
  return visits;
};

describe('a crowd whose wait ends at once', () => {
  it('is told "taken" in visits that grow with the crowd, and not with its square', async () => {
    const crowd = 2_000;
    queue.enter();
    queue.unreplied = () => undefined;
    const over = { startedAt: runtime.now() - 1 };
    const all = Array.from({ length: crowd }, () => wait(1, over));
    await settled();
    expect(visitsDuring(() => queue.replied(true)) / crowd).toBeLessThan(5);
    while (all.some(({ state }) => state === 'pending')) await settled();
    for (const { error } of all) expect(error).toMatchObject({ code: 'LOCK_TAKEN', waitersAhead: 1 });
  });

  it.each(['the time-outs', 'a reply'])(
    'is told so in portions, one in each turn of the event loop, after %s',
    async (what) => {
      const portions: (() => void)[] = [];
      runtime.soon = (action) => void portions.push(action);
      queue.enter();
      if (what === 'a reply') queue.unreplied = () => undefined;
      const all = Array.from({ length: 600 }, () => wait(1));
      await runtime.pass(1);
      if (what === 'a reply') queue.replied(true);
      const rejected: number[] = [];
      for (let next: (() => void) | undefined = () => undefined; next; next = portions.shift()) {
        next();
        await settled();
        rejected.push(all.filter(({ state }) => state === 'rejected').length);
      }
      expect(rejected).toEqual([250, 500, 600]);
    },
  );
});

describe('a release', () => {
  it('that is sent lets the next caller ask: its question comes to the store behind it', async () => {
    queue.enter();
    const [next, behind] = [wait(1_000), wait(1_000)];
    queue.endListener.releaseSent();
    await settled();
    expect(statesOf(next, behind)).toEqual(['fulfilled', 'pending']);
    queue.endListener.releaseOver(true);
    await settled();
    expect(behind.state, 'the answer to it changes nothing').toBe('pending');
    expect(queue.fairness?.asideUntil, 'the store keeps the order of those who wait').toBeUndefined();
  });

  it('that is sent without a local waiter lets the key be forgotten, also with waiters elsewhere', () => {
    queue.enter();
    queue.endListener.releaseSent();
    expect(idle).toBe(1);
    queue.endListener.releaseOver(true);
    expect([idle, runtime.due, queue.fairness?.asideUntil]).toEqual([1, [], undefined]);
  });
});

describe('sitting out, where there are several holds', () => {
  beforeEach(() => {
    queue = queueOn(store, runtime, { singleHolder: false, onIdle: () => (idle += 1) });
  });

  const take = (): void => {
    queue.enter();
    queue.granted(true);
  };

  const release = (othersWaiting: boolean): void => {
    queue.endListener.releaseSent();
    queue.endListener.releaseOver(othersWaiting);
  };

  /** This process has given holds back for the whole of its turn, while others waited. */
  const afterBatch = async (): Promise<void> => {
    take();
    take();
    queue.wakeUp.listen(claimOn('lock:k'));
    release(true);
    await runtime.pass(50);
    release(true);
  };

  it('after a turn of 50 ms while others wait, the next one is theirs, for 25 ms', async () => {
    await afterBatch();
    expect(queue.fairness?.asideUntil).toBe(runtime.now() + 25);
    await runtime.pass(24);
    expect(queue.fairness?.asideUntil).toBeDefined();
    await runtime.pass(1);
    expect(queue.fairness?.asideUntil).toBeUndefined();
  });

  it('it ends with the second message: the first is the echo of the own release', async () => {
    await afterBatch();
    await store.watching[0]!.wake();
    expect(queue.fairness?.asideUntil, 'our own release').toBeDefined();
    await store.watching[0]!.wake();
    expect(queue.fairness?.asideUntil, 'the release of whoever came in between').toBeUndefined();
  });

  it('messages that came while the release was under way count', async () => {
    take();
    take();
    queue.wakeUp.listen(claimOn('lock:k'));
    release(true);
    await runtime.pass(50);
    queue.endListener.releaseSent();
    await store.watching[0]!.wake();
    queue.endListener.releaseOver(true);
    expect(queue.fairness?.asideUntil).toBeDefined();
    await store.watching[0]!.wake();
    expect(queue.fairness?.asideUntil).toBeUndefined();
  });

  it('is not cut short by the timer of an earlier one', async () => {
    take();
    release(true);
    await runtime.pass(10);
    take();
    release(true);
    await runtime.pass(15);
    expect(idle).toBe(0);
    await runtime.pass(10);
    expect([idle, runtime.due]).toEqual([1, []]);
  });

  it('a caller just after the queue ran empty yields, too; then the key is forgotten', async () => {
    await afterBatch();
    expect(idle).toBe(0);
    expect(queue.fairness?.asideUntil).toBeDefined();
    await runtime.pass(25);
    expect(idle).toBe(1);
    expect(runtime.due).toEqual([]);
  });

  it('a key that is in use again when that time is over is not forgotten', async () => {
    take();
    release(true);
    queue.enter();
    await runtime.pass(1_000);
    expect(idle).toBe(0);
    queue.leave();
    expect(idle).toBe(1);
  });

  it('no caller yields when no other process listened', async () => {
    take();
    take();
    release(false);
    await runtime.pass(50);
    release(false);
    expect([queue.fairness?.asideUntil, idle]).toEqual([undefined, 1]);
  });
});

describe('hints', () => {
  it('there is one watch however often it is asked for, closed when the last one has left', () => {
    queue.enter();
    queue.wakeUp.listen(claimOn('lock:k'));
    queue.wakeUp.listen(claimOn('lock:k'));
    wait(1_000);
    queue.leave();
    expect(store.watching).toHaveLength(1);
    queue.leave();
    expect(store.watching).toHaveLength(0);
  });

  it('are counted also while no caller waits for one', async () => {
    queue.wakeUp.listen(claimOn('lock:k'));
    await store.watching[0]!.wake();
    await store.watching[0]!.wake();
    expect(queue.wakeUps).toBe(2);
  });

  it('hearing follows the watch, also into silence and back', () => {
    expect(queue.wakeUp.live).toBe(false);
    queue.wakeUp.listen(claimOn('lock:k'));
    expect(queue.wakeUp.live).toBe(false);
    store.watching[0]!.live = true;
    expect(queue.wakeUp.live).toBe(true);
    store.watching[0]!.live = false;
    expect(queue.wakeUp.live).toBe(false);
  });

  it.each<[string, (abort: () => void) => unknown]>([
    ['a hint', () => store.watching[0]!.wake()],
    ['the time', () => runtime.pass(200)],
    ['the signal', (abort) => abort()],
    ['a shutdown', () => queue.shutDown(() => undefined)],
  ])('waiting for one ends with %s, and leaves no timer', async (_what, end) => {
    const caller = new AbortController();
    queue.wakeUp.listen(claimOn('lock:k'));
    const waiting = watched(queue.wakeUp.untilWoken(200, caller.signal));
    await settled();
    expect(waiting.state).toBe('pending');
    await end(() => caller.abort());
    await settled();
    expect(waiting.state).toBe('fulfilled');
    expect(runtime.due).toEqual([]);
  });

  it('a signal that was aborted before ends the wait at once', async () => {
    queue.wakeUp.listen(claimOn('lock:k'));
    const waiting = watched(queue.wakeUp.untilWoken(200, AbortSignal.abort()));
    await settled();
    expect(waiting.state).toBe('fulfilled');
    expect(runtime.due).toEqual([]);
  });

  it('when there can never be one, waiting throws the reason, and the next wait subscribes again', async () => {
    queue.wakeUp.listen(claimOn('lock:k'));
    const first = watched(queue.wakeUp.untilWoken(200, undefined));
    await store.watching[0]!.fail(notExecuted('NOPERM'));
    expect(first.state, 'woken, to look for itself').toBe('fulfilled');
    await expect(queue.wakeUp.untilWoken(200, undefined)).rejects.toThrow('NOPERM');
    expect(store.watching).toHaveLength(0);
    queue.wakeUp.listen(claimOn('lock:k'));
    expect(store.watching).toHaveLength(1);
  });
});
