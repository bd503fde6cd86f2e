import { inspect } from 'node:util';
import { beforeEach, describe, expect, it } from 'vitest';
import { findLease } from '../../../lib/core/nesting/current-lease.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import {
  LockConfigurationError,
  LockLostError,
  LockStoreError,
} from '../../../lib/core/errors/lock.errors.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import { granted, notExecuted, notHeld, released, taken } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

let core: ReturnType<typeof coreUnderTest>;

const acquired = async (options: Partial<LockCall> = {}, validForMs = 30_000): Promise<Lease> => {
  const caller = watched(core.manager.acquire(['k'], core.call(options)));
  await core.store.next('acquire').reply(granted(7, validForMs));
  return caller.value!;
};

/** A lease inside a lease on the same key. */
const nested = async (): Promise<[outer: Lease, inner: Lease]> => {
  const outer = await acquired();
  return [outer, await inside(outer)];
};

const callInside = (outer: Lease, options: Partial<LockCall> = {}): LockCall =>
  core.call({ ...options, inside: [outer] });

/** A lease that is taken inside of another one. */
const inside = (outer: Lease): Promise<Lease> => core.manager.acquire(['k'], callInside(outer));

beforeEach(() => {
  core = coreUnderTest();
});

describe('a nested lease', () => {
  it('is over with its own release: it is not valid, and nothing can be done with it', async () => {
    const [outer, inner] = await nested();
    expect(inner.remainingMs()).toBe(30_000);
    expect(await inner.release()).toBe('released');
    expect([inner.remainingMs(), inner.lost, inner.loss]).toEqual([0, false, undefined]);
    const uses: (() => Promise<unknown>)[] = [
      () => inner.run(() => 1),
      () => inner.extend(60_000),
      () => inner.verify(),
    ];
    for (const use of uses) {
      const outcome = watched(use());
      await settled();
      expect(outcome.error).toBeInstanceOf(LockConfigurationError);
      expect(outcome.error).toMatchObject({
        message: expect.stringContaining('after the release') as string,
      });
    }
    expect([core.store.unanswered.length, outer.remainingMs()]).toEqual([0, 30_000]);
  });

  it('is over when its section is, while the outer one goes on', async () => {
    const outer = await acquired();
    await outer.run(async () => {
      const inner = await core.manager.withLock(['k'], callInside(outer), (own) => own);
      expect([inner.remainingMs(), inner.lost]).toEqual([0, false]);
      expect(findLease('k')).toBe(outer);
    });
  });

  it('is not lost by what becomes of the hold later', async () => {
    const [, inner] = await nested();
    const { signal } = inner;
    await inner.release();
    core.runtime.jump(30_000);
    await core.runtime.pass(0);
    expect([inner.lost, signal.aborted, await inner.release()]).toEqual([false, false, 'released']);
  });

  it('that is inside when the outer one is released by hand has lost its lock, and is told', async () => {
    const [outer, inner] = await nested();
    const { signal } = inner;
    void outer.release();
    expect([inner.lost, signal.aborted, inner.remainingMs()]).toEqual([true, true, 0]);
    expect(signal.reason).toBeInstanceOf(LockLostError);
    expect((signal.reason as Error).message).toContain('released by hand');
    await core.store.next('release').reply(released());
    expect(await inner.release()).toBe('lost');
    expect(core.manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });

  it('that is inside a nested one that ends is over as well, so that a sibling does not work beside it', async () => {
    const outer = await acquired();
    const middle = await inside(outer);
    const inner = await inside(middle);
    await middle.release();
    expect([inner.lost, inner.remainingMs()]).toEqual([true, 0]);
    expect(await core.manager.withLock(['k'], callInside(outer), () => 'in')).toBe('in');
    await inner.release();
  });
});

describe('a lease whose time is over', () => {
  it('admits no nested call, although the loss is not yet noticed', async () => {
    const lease = await acquired({ leaseMs: 1_000 }, 1_000);
    core.runtime.jump(1_000);
    const outcome = watched(core.manager.withLock(['k'], callInside(lease), () => 'ran'));
    await settled();
    expect(outcome.error).toBeInstanceOf(LockLostError);
    expect([lease.lost, core.store.unanswered.length]).toEqual([true, 0]);
  });

  it('lets the one in who waited inside it no more than those who come', async () => {
    const lease = await acquired({ leaseMs: 1_000 }, 1_000);
    const first = await inside(lease);
    const second = watched(core.manager.withLock(['k'], callInside(lease), () => 'ran'));
    await settled();
    core.runtime.jump(1_000);
    await first.release();
    await settled();
    expect(second.error).toBeInstanceOf(LockLostError);
  });

  it('begins no section: the time may be over before it comes to that', async () => {
    core.manager.on('acquired', () => core.runtime.jump(1_000));
    const outcome = watched(core.manager.withLock(['k'], core.call({ leaseMs: 1_000 }), () => 'ran'));
    await core.store.next('acquire').reply(granted(1, 1_000));
    expect(outcome.error).toBeInstanceOf(LockLostError);
  });
});

describe('verify', () => {
  it('is true when the store has the hold, and takes in how long it still has it', async () => {
    const lease = await acquired();
    await core.runtime.pass(1_000);
    const verified = watched(lease.verify());
    expect(core.store.next('extend').claims).toMatchObject([{ finalKey: 'k', leaseMs: 1 }]);
    await core.store.next('extend').reply([{ status: 'held', validForMs: 4_000 }]);
    expect([verified.value, lease.remainingMs()]).toEqual([true, 4_000]);
  });

  it('is false when it has not, and then the lease is lost', async () => {
    const lease = await acquired();
    const verified = watched(lease.verify());
    await core.store.next('extend').reply([{ status: 'lost' }]);
    expect([verified.value, lease.lost, await lease.verify()]).toEqual([false, true, false]);
    expect(core.store.unanswered).toHaveLength(0);
  });

  it('rejects when the store cannot be asked, which says nothing of the lease', async () => {
    const lease = await acquired();
    const whole = watched(lease.verify());
    await core.store.next('extend').fail(notExecuted());
    expect(whole.error).toBeInstanceOf(LockStoreError);
    const one = watched(lease.verify());
    await core.store.next('extend').reply([{ status: 'failed', cause: new Error('this key') }]);
    expect(one.error).toBeInstanceOf(LockStoreError);
    expect([lease.lost, lease.remainingMs()]).toEqual([false, 30_000]);
  });

  it('without an answer does not say that something may have been done, which an extension says', async () => {
    const lease = await acquired();
    const [verified, extended] = [watched(lease.verify()), watched(lease.extend(60_000))];
    for (const _ of [verified, extended]) {
      await core.store.next('extend').fail(new StoreFailure('no answer', 'unknown'));
    }
    expect(String(verified.error)).toContain('verifying "k", after 0 ms: no answer. This says nothing');
    expect(String(extended.error)).toContain('no answer. It may have been done. This says nothing');
  });

  it('rejects when the lease is released while it asks', async () => {
    const lease = await acquired();
    const verified = watched(lease.verify());
    void lease.release();
    await core.store.next('extend').reply([{ status: 'held', validForMs: 30_000 }]);
    expect(verified.error).toBeInstanceOf(LockConfigurationError);
    await core.store.next('release').reply(released());
  });

  it('does not put off the renewal that is tried again', async () => {
    const lease = await acquired();
    await core.runtime.pass(10_000);
    await core.store.next('extend').fail(notExecuted());
    const verified = watched(lease.verify());
    await core.store.next('extend').reply([{ status: 'held', validForMs: 20_000 }]);
    expect(verified.value).toBe(true);
    await core.runtime.pass(1_000);
    expect(core.store.next('extend').claims).toMatchObject([{ leaseMs: 30_000 }]);
  });
});

describe('a lease tells', () => {
  it('its owner in the store', async () => {
    const lease = await acquired();
    expect(lease.owner).toBe(core.store.sent[0]!.claim.owner);
    expect(lease.ownerOf('k')).toBe(lease.owner);
    expect(() => lease.ownerOf('other')).toThrow('no key "other"');
  });

  it('what is left in whole ms, rounded down, so that it can be extended by that', async () => {
    const lease = await acquired();
    await core.runtime.pass(0.5);
    expect(lease.remainingMs()).toBe(29_999);
    const extending = watched(lease.extend(lease.remainingMs() + 10_000));
    await core.store.next('extend').reply([{ status: 'held', validForMs: 39_999 }]);
    expect(extending.state).toBe('fulfilled');
  });

  it('only its own data when it is printed or serialized', async () => {
    const lease = await acquired();
    expect(JSON.parse(JSON.stringify({ lease }))).toEqual({
      lease: { id: lease.id, keys: ['k'], lost: false, remainingMs: 30_000 },
    });
    expect(inspect(lease).length).toBeLessThan(300);
    expect(inspect(lease, { depth: Infinity, showHidden: true, customInspect: false }).length).toBeLessThan(
      500,
    );
  });
});

describe('one signal', () => {
  it('for many who wait has one listener, and none when they are gone', async () => {
    const controller = new AbortController();
    const { signal } = controller;
    let listening = 0;
    const { addEventListener, removeEventListener } = signal;
    signal.addEventListener = (...args: Parameters<typeof addEventListener>) => {
      listening += 1;
      addEventListener.apply(signal, args);
    };
    signal.removeEventListener = (...args: Parameters<typeof removeEventListener>) => {
      listening -= 1;
      removeEventListener.apply(signal, args);
    };
    const waiting = Array.from({ length: 50 }, () =>
      watched(core.manager.acquire(['k'], core.call({ signal, waitMs: 1_000 }))),
    );
    expect(listening).toBe(1);
    await core.store.next('acquire').reply(taken());
    await core.runtime.pass(1_000);
    await core.store.next('acquire').reply(taken());
    expect(waiting.every(({ state }) => state === 'rejected')).toBe(true);
    expect(listening).toBe(0);
    const aborted = Array.from({ length: 20 }, () =>
      watched(core.manager.acquire(['k'], core.call({ signal }))),
    );
    controller.abort('enough');
    await settled();
    expect(aborted.map(({ error }) => (error as Error).cause)).toEqual(Array(20).fill('enough'));
  });
});

describe('tryWithLock', () => {
  it('tells whether the section ran, and passes on what it gave', async () => {
    const ran = watched(core.manager.tryWithLock(['k'], core.call({ waitMs: 0 }), () => 'result'));
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').reply(released());
    expect(ran.value).toEqual({ ran: true, value: 'result' });
    const busy = watched(core.manager.tryWithLock(['k'], core.call({ waitMs: 0 }), () => 'result'));
    await core.store.next('acquire').reply(taken());
    expect(busy.value).toEqual({ ran: false });
  });

  it('throws what the section throws, also when that is a busy lock, and what the store says', async () => {
    const outcome = watched(
      core.manager.tryWithLock(['k'], core.call({ waitMs: 0 }), () =>
        core.manager.acquire(['other'], core.call({ waitMs: 0 })),
      ),
    );
    await core.store.next('acquire').reply(granted());
    await core.store.next('acquire').reply(taken());
    await core.store.next('release').reply(released());
    expect(outcome.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'other' });
    const failed = watched(core.manager.tryWithLock(['k'], core.call({ waitMs: 0 }), () => 1));
    await core.store.next('acquire').fail(notExecuted());
    expect(failed.error).toBeInstanceOf(LockStoreError);
  });
});

describe('the end of a lease', () => {
  it('comes before a nested call that begins as the inner signal aborts: the call acquires the key', async () => {
    const [outer, inner] = await nested();
    let late = watched(Promise.resolve<Lease | undefined>(undefined));
    inner.signal.addEventListener('abort', () => (late = watched(inside(outer))));
    void outer.release();
    await settled();
    await core.store.next('release').reply(released());
    await core.store.next('acquire').reply(granted(8));
    expect(late.value?.fencingToken).toBe(8);
  });

  it('counts once, also when the listener of its loss releases it as well', async () => {
    const lease = await acquired({ leaseMs: 1_000 }, 1_000);
    lease.signal.addEventListener('abort', () => void lease.release());
    core.runtime.jump(1_000);
    expect(await lease.release()).toBe('lost');
    await settled();
    const outcome = watched(
      core.manager.withLock(['k'], core.call({ leaseMs: 1_000 }), (own) => {
        own.signal.addEventListener('abort', () => void own.release());
        core.runtime.jump(1_000);
      }),
    );
    while (core.store.unanswered.length > 0) {
      if (core.store.unanswered[0]!.name === 'acquire')
        await core.store.next('acquire').reply(granted(1, 1_000));
      else await core.store.next('release').reply(notHeld);
    }
    expect([outcome.state, core.manager.usage.leases]).toEqual(['fulfilled', 0]);
  });

  it('by `await using` is told in the log when it fails, and tried again', async () => {
    const lease = await acquired();
    const disposing = watched(lease[Symbol.asyncDispose]());
    await core.store.next('release').fail(new StoreFailure('NOPERM', 'not-executed', { keyOnly: true }));
    expect(disposing.state).toBe('fulfilled');
    expect(core.log.lines).toEqual([expect.stringContaining('is tried again until the lock has ended')]);
    await core.store.next('release').reply(released());
    expect(core.manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });

  it('leaves its signal alone, also one that is first asked for afterwards', async () => {
    const [outer, inner] = await nested();
    await inner.release();
    const { signal } = inner;
    core.runtime.jump(30_000);
    await core.runtime.pass(0);
    expect([outer.lost, inner.lost, signal.aborted]).toEqual([true, false, false]);
  });
});

describe('a call that was called off before it came', () => {
  it('does not go into the lock around it either', async () => {
    const lease = await acquired();
    const aborted = callInside(lease, { signal: AbortSignal.abort() });
    const outcome = watched(core.manager.withLock(['k'], aborted, () => 'ran'));
    await settled();
    expect(outcome.error).toMatchObject({ code: 'LOCK_ABORTED' });
  });

  it('while its question was under way is waited for by a shutdown, so that nothing of it stays', async () => {
    const controller = new AbortController();
    const caller = watched(core.manager.acquire(['k'], core.call({ signal: controller.signal })));
    controller.abort();
    await settled();
    expect(caller.error).toMatchObject({ code: 'LOCK_ABORTED' });
    const closing = watched(core.manager.shutDown());
    await settled();
    expect(closing.state).toBe('pending');
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').reply(released());
    expect(closing.state).toBe('fulfilled');
  });
});

describe('inside a lease that was released by hand', () => {
  it('there is no current lease any more, and nested calls take the key for real', async () => {
    const lease = await acquired();
    await lease.run(async () => {
      expect([findLease()?.id, findLease('k')?.id]).toEqual([lease.id, lease.id]);
      const releasing = lease.release();
      await core.store.next('release').reply(released());
      await releasing;
      expect([findLease(), findLease('k')]).toEqual([undefined, undefined]);
      const again = watched(inside(lease));
      await core.store.next('acquire').reply(granted(8));
      expect(again.value!.fencingToken).toBe(8);
      void again.value!.release();
      await core.store.next('release').reply(released());
    });
  });
});

describe('a minimum time inside a fixed lease', () => {
  it('is refused when the lease ends before it', async () => {
    const lease = await acquired({ leaseMs: 1_000 }, 1_000);
    const nested = (holdAtLeastMs: number): Promise<string> =>
      core.manager.withLock(['k'], callInside(lease, { holdAtLeastMs }), () => 'ran');
    await core.runtime.pass(400);
    const tooLong = watched(nested(601));
    await settled();
    expect(tooLong.error).toMatchObject({ message: expect.stringContaining('is 601') as string });
    expect(await nested(600)).toBe('ran');
    void lease.release();
    expect(core.store.next('release').keepForMs).toBe(600);
  });
});

describe('an app that stops', () => {
  it('is why a caller gets no lock, also when the store then fails, and a closed store is no outage', async () => {
    const caller = watched(core.manager.acquire(['k'], core.call()));
    const stopping = watched(core.manager.shutDown());
    await core.store.next('acquire').fail(new StoreFailure('no answer', 'unknown'));
    expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    await core.store.next('release').reply(notHeld);
    await settled();
    expect(stopping.state).toBe('fulfilled');
    const lines = core.log.lines.length;
    await core.manager.close();
    const late = watched(core.manager.inspect('k'));
    await core.store.next('inspect').fail(notExecuted('the lock store is closed'));
    expect([late.state, core.log.lines.length]).toEqual(['rejected', lines]);
  });
});
