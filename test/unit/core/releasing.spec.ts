import { beforeEach, describe, expect, it } from 'vitest';
import { detached } from '../../../lib/core/nesting/section.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import { LockLostError, LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import { deferred } from '../../support/async.js';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import {
  granted,
  grantedFor,
  notExecuted,
  notHeld,
  released,
  taken,
  unknown,
} from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

let core: ReturnType<typeof coreUnderTest>;
let events: string[];

beforeEach(() => {
  core = coreUnderTest();
  events = [];
  core.manager.on('released', ({ key, confirmed }) =>
    events.push(`released ${key}${confirmed ? '' : ', unconfirmed'}`),
  );
  core.manager.on('lost', ({ key, reason }) => events.push(`lost ${key} ${reason}`));
});

const acquire = (options: Partial<LockCall> = {}) => watched(core.manager.acquire(['k'], core.call(options)));

/** A lease whose hold goes back to the store. */
const acquiredAlone = async (): Promise<Lease> => {
  const caller = acquire();
  await core.store.next('acquire').reply(grantedFor(1));
  return caller.value!;
};

const acquired = async (options: Partial<LockCall> = {}, validForMs = 30_000): Promise<Lease> => {
  const caller = acquire(options);
  await core.store.next('acquire').reply(granted(1, validForMs));
  return caller.value!;
};

const section = <T>(work: (lease: Lease) => T | Promise<T>, options: Partial<LockCall> = {}) =>
  watched(core.manager.withLock(['k'], core.call(options), work));

const nothingLeft = (): void => {
  expect(core.manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
};

describe('release', () => {
  it('is idempotent: one request, the same answer', async () => {
    const lease = await acquired();
    const [first, second] = [watched(lease.release()), watched(lease.release())];
    await core.store.next('release').reply(released());
    expect([first.value, second.value, await lease.release()]).toEqual(['released', 'released', 'released']);
    expect(core.store.count('release')).toBe(1);
    expect(events).toEqual(['released k']);
    nothingLeft();
  });

  it('of a hold that the store does not have any more answers "lost", with the event', async () => {
    const lease = await acquired();
    const releasing = watched(lease.release());
    await core.store.next('release').reply(notHeld);
    expect(releasing.value).toBe('lost');
    expect(events).toEqual(['lost k refused']);
    expect(lease.lost).toBe(true);
    nothingLeft();
  });

  it('of a lease that ran out answers "lost", and sends one release in case a renewal had kept it', async () => {
    const lease = await acquired();
    core.runtime.jump(30_000);
    const releasing = watched(lease.release());
    await settled();
    expect(releasing.value).toBe('lost');
    await core.store.next('release').reply(released());
    expect(events).toEqual(['lost k expired']);
    nothingLeft();
  });

  it('that fails by hand rejects, and is tried again until the lease is over', async () => {
    const lease = await acquired();
    const releasing = watched(lease.release());
    await core.store.next('release').fail(unknown('gone'));
    expect(releasing.error).toBeInstanceOf(LockStoreError);
    expect(releasing.error).toMatchObject({ outcome: 'unknown', key: 'k' });
    await core.store.next('release').fail(notExecuted());
    await core.runtime.pass(50);
    await core.store.next('release').reply(released());
    nothingLeft();
  });

  it('that fails at the end of an await using block never throws', async () => {
    const block = watched(
      (async () => {
        await using lease = await core.manager.acquire(['k'], core.call());
        return lease.key;
      })(),
    );
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').fail(unknown());
    await core.store.next('release').reply(notHeld);
    expect(block.value).toBe('k');
    nothingLeft();
  });

  it('the next local caller gets the turn even when the release failed', async () => {
    const lease = await acquiredAlone();
    const next = acquire();
    watched(lease.release());
    await settled();
    expect(core.store.unanswered.map(({ name }) => name)).toEqual(['release', 'acquire']);
    await core.store.next('release').fail(notExecuted());
    expect(core.store.unanswered.map(({ name }) => name).sort()).toEqual(['acquire', 'release']);
    await core.store.next('acquire').reply(granted(2));
    expect(next.value?.fencingToken).toBe(2);
  });

  it('a local waiter that timed out during a failed release gets the failure of the store, not "taken"', async () => {
    const lease = await acquiredAlone();
    const waiting = acquire({ waitMs: 100 });
    watched(lease.release());
    await core.runtime.pass(200);
    expect(waiting.state).toBe('pending');
    await core.store.next('release').fail(unknown());
    await core.store.next('acquire').fail(unknown());
    expect(waiting.error).toBeInstanceOf(LockStoreError);
  });
});

describe('a hold whose release fails', () => {
  const releasesFailFor = async (ms: number): Promise<void> => {
    const end = core.runtime.now() + ms;
    while (core.runtime.now() < end) {
      while (core.store.unanswered.length > 0) await core.store.next('release').fail(notExecuted());
      await core.runtime.pass(10);
    }
  };

  it('is given back for as long as a renewal without an answer may have kept it', async () => {
    const lease = await acquired();
    for (let i = 0; i < 2; i += 1) {
      await core.runtime.pass(10_000);
      await core.store.next('extend').fail(unknown());
    }
    // Known to be valid until 30,000, but the last renewal may have made it 50,000.
    watched(lease.release());
    await releasesFailFor(29_000);
    expect(core.manager.usage.undoing, '49,000').toBe(1);
    await core.runtime.pass(1_100);
    if (core.store.unanswered.length > 0) await core.store.next('release').reply(notHeld);
    expect(core.manager.usage.undoing).toBe(0);
  });

  it('is given back once more at the very end, not only before the last pause', async () => {
    const lease = await acquired({ leaseMs: 1_000 }, 1_000);
    watched(lease.release());
    await releasesFailFor(990);
    const before = core.store.count('release');
    await core.runtime.pass(10);
    expect(core.store.count('release') + core.store.unanswered.length).toBeGreaterThan(before);
  });
});

describe('a section', () => {
  it('whose release fails keeps its result: one line, tried again', async () => {
    const work = section(() => 'done');
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').fail(unknown());
    expect(work.value).toBe('done');
    expect(core.log.lines.filter((line) => line.includes('tried again'))).toHaveLength(1);
    await core.store.next('release').reply(released());
    nothingLeft();
  });

  it('that throws while its release fails keeps its own error', async () => {
    const mine = new Error('mine');
    const work = section(() => Promise.reject(mine));
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').fail(unknown());
    expect(work.error).toBe(mine);
  });

  it.each([
    ['keeps its result', 'event'],
    ['fails with the loss', 'throw'],
  ] as const)('that lost its lock %s, with onLost: %s', async (_what, onLost) => {
    const go = deferred();
    const work = section(() => go.promise.then(() => 'done'), { onLost });
    await core.store.next('acquire').reply(granted());
    core.runtime.jump(30_000);
    await core.runtime.pass(0);
    expect(events).toEqual(['lost k expired']);
    go.resolve();
    await settled();
    await core.store.next('release').reply(notHeld);
    if (onLost === 'event') expect(work.value).toBe('done');
    else expect(work.error).toBeInstanceOf(LockLostError);
    expect(events).toEqual(['lost k expired']);
    nothingLeft();
  });

  it('with onLost: throw that threw itself keeps its own error', async () => {
    const mine = new Error('mine');
    const go = deferred();
    const work = section(() => go.promise.then(() => Promise.reject(mine)), { onLost: 'throw' });
    await core.store.next('acquire').reply(granted());
    core.runtime.jump(30_000);
    await core.runtime.pass(0);
    go.resolve();
    await settled();
    expect(work.error).toBe(mine);
  });

  it('that released its own lease ends without a second release', async () => {
    const work = section((lease) => lease.release());
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').reply(released());
    expect([work.value, core.store.count('release')]).toEqual(['released', 1]);
    nothingLeft();
  });

  it('that throws before its first await is released like any other', async () => {
    const work = section(() => {
      throw new Error('at once');
    });
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').reply(released());
    expect((work.error as Error).message).toBe('at once');
    nothingLeft();
  });
});

describe('a section whose caller does not wait for its release', () => {
  const behind = { awaitRelease: false };

  it('has its result when the release is sent; the event comes with the answer, and nothing is left', async () => {
    const work = section(() => 'done', behind);
    await core.store.next('acquire').reply(granted());
    expect([work.value, events, core.manager.held()]).toEqual(['done', [], []]);
    expect(core.manager.usage.leases, 'a shutdown waits for it').toBe(1);
    await core.store.next('release').reply(released());
    expect(events).toEqual(['released k']);
    nothingLeft();
  });

  it('is not waited for by default', async () => {
    const work = section(() => 'done');
    await core.store.next('acquire').reply(granted());
    expect(work.state).toBe('pending');
    await core.store.next('release').reply(released());
    expect(work.value).toBe('done');
  });

  it('that throws fails at once with its own error', async () => {
    const mine = new Error('mine');
    const work = section(() => Promise.reject(mine), behind);
    await core.store.next('acquire').reply(granted());
    expect(work.error).toBe(mine);
    await core.store.next('release').reply(released());
    nothingLeft();
  });

  it.each([['exclusive'], ['permit']] as const)(
    'asks for what it wants next behind the release: %s',
    async (kind) => {
      const options = { ...behind, kind, ...(kind === 'permit' && { permits: 1 }) };
      const twice = watched(
        (async () => {
          await core.manager.withLock(['k'], core.call(options), () => undefined);
          return core.manager.withLock(['k'], core.call(options), () => 'again');
        })(),
      );
      await core.store.next('acquire').reply(granted());
      expect(core.store.unanswered.map(({ name }) => name)).toEqual(['release', 'acquire']);
      await core.store.next('release').reply(released());
      await core.store.next('acquire').reply(granted(2));
      await core.store.next('release').reply(released());
      expect(twice.value).toBe('again');
      nothingLeft();
    },
  );

  it('goes on although the release fails: one line, tried again', async () => {
    const work = section(() => 'done', behind);
    await core.store.next('acquire').reply(granted());
    expect(work.value).toBe('done');
    await core.store.next('release').fail(unknown());
    expect(core.log.lines.filter((line) => line.includes('tried again'))).toHaveLength(1);
    await core.store.next('release').reply(released());
    nothingLeft();
  });

  it.each([undefined, null, {}, 'OK'])(
    'goes on although the store replies %j: tried again',
    async (nonsense) => {
      const work = section(() => 'done', behind);
      await core.store.next('acquire').reply(granted());
      await core.store.next('release').reply(nonsense as never);
      expect(work.value).toBe('done');
      expect(events).toEqual(['released k, unconfirmed']);
      expect(core.log.lines).toEqual([
        expect.stringContaining('to a release'),
        expect.stringContaining('failed while releasing "k"'),
      ]);
      await core.store.next('release').reply(released());
      nothingLeft();
    },
  );

  it('fails with a loss that is known at its end, with onLost: throw', async () => {
    const go = deferred();
    const work = section(() => go.promise, { ...behind, onLost: 'throw' });
    await core.store.next('acquire').reply(granted());
    core.runtime.jump(30_000);
    go.resolve();
    await settled();
    expect(work.error).toBeInstanceOf(LockLostError);
    await core.store.next('release').reply(notHeld);
    expect(events).toEqual(['lost k expired']);
    nothingLeft();
  });

  it('hears of a loss that only the release tells of by the event, also with onLost: throw', async () => {
    const work = section(() => 'done', { ...behind, onLost: 'throw' });
    await core.store.next('acquire').reply(granted());
    expect(work.value).toBe('done');
    await core.store.next('release').reply(notHeld);
    expect(events).toEqual(['lost k refused']);
    expect(core.log.lines).toHaveLength(1);
    nothingLeft();
  });

  it('has sent the releases of all its keys', async () => {
    const work = watched(core.manager.withLock(['a', 'b'], core.call(behind), () => 'done'));
    for (let i = 0; i < 2; i++) await core.store.next('acquire').reply(granted());
    expect(work.value).toBe('done');
    expect(core.store.unanswered.map(({ name, claim }) => `${name} ${claim.finalKey}`)).toEqual([
      'release a',
      'release b',
    ]);
    for (let i = 0; i < 2; i++) await core.store.next('release').reply(released());
    expect(events).toEqual(['released a', 'released b']);
    nothingLeft();
  });

  it('waits for nested calls that are in, before its release is sent; these send none of their own', async () => {
    const go = deferred();
    let nested = watched(Promise.resolve());
    const work = section((outer) => {
      nested = section(() => go.promise, { ...behind, inside: [outer] });
    }, behind);
    await core.store.next('acquire').reply(granted());
    expect([work.state, core.store.unanswered]).toEqual(['pending', []]);
    go.resolve();
    await settled();
    expect([work.state, nested.state]).toEqual(['fulfilled', 'fulfilled']);
    await core.store.next('release').reply(released());
    expect(core.store.count('release')).toBe(1);
    nothingLeft();
  });

  it('does not wait for a release by hand either that is under way at its end', async () => {
    const work = section((lease) => void lease.release().catch(() => undefined), behind);
    await core.store.next('acquire').reply(granted());
    expect(work.state).toBe('fulfilled');
    await core.store.next('release').reply(released());
    expect(core.store.count('release')).toBe(1);
    nothingLeft();
  });
});

describe('holdAtLeastMs', () => {
  it('leaves the hold in the store with what is left of it, and does not wait for that', async () => {
    const go = deferred<string>();
    const work = section(() => go.promise, { holdAtLeastMs: 10_000 });
    await core.store.next('acquire').reply(granted());
    await core.runtime.pass(2_000);
    go.resolve('done');
    await settled();
    expect(core.store.next('release').keepForMs).toBe(8_000);
    await core.store.next('release').reply(released());
    expect([work.value, events]).toEqual(['done', ['released k']]);
    nothingLeft();
    await core.runtime.pass(60_000);
    expect(core.store.unanswered).toHaveLength(0);
  });

  it('belongs to the hold: a release by hand leaves it, too, and so does one of the lease around a nested call', async () => {
    const byHand = section((lease) => lease.release(), { holdAtLeastMs: 10_000 });
    await core.store.next('acquire').reply(granted());
    expect(core.store.next('release').keepForMs).toBe(10_000);
    await core.store.next('release').reply(released());
    expect(byHand.value).toBe('released');

    const lease = acquire();
    await core.store.next('acquire').reply(granted());
    const nested = core.call({ inside: [lease.value!], holdAtLeastMs: 20_000 });
    await core.manager.withLock(['k'], nested, () => undefined);
    const release = watched(lease.value!.release());
    expect(core.store.next('release').keepForMs).toBe(20_000);
    await core.store.next('release').reply(released());
    expect(release.value).toBe('released');
    nothingLeft();
  });

  it('holds for a lease that was taken by hand', async () => {
    const lease = acquire({ holdAtLeastMs: 3_000 });
    await core.store.next('acquire').reply(granted());
    void lease.value!.release();
    expect(core.store.next('release').keepForMs).toBe(3_000);
    await core.store.next('release').reply(released());
    nothingLeft();
  });

  it('local callers ask the store for it like everybody else', async () => {
    section(() => 'done', { holdAtLeastMs: 10_000 });
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').reply(released());
    const next = acquire({ waitMs: 20_000 });
    await core.store.next('acquire').reply(taken(10_000));
    await core.store.watching[0]!.becomeLive();
    await core.store.next('acquire').reply(taken(10_000));
    // Forced open elsewhere: it is free here at once.
    await core.store.watching[0]!.wake();
    await core.store.next('acquire').reply(granted());
    expect(next.state).toBe('fulfilled');
  });

  it('what cannot be left with that time now is tried again, with the time that is left then', async () => {
    const work = section(() => 'done', { holdAtLeastMs: 10_000 });
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').fail(notExecuted());
    expect(work.value).toBe('done');
    expect(core.store.next('release').keepForMs).toBe(10_000);
    await core.store.next('release').fail(notExecuted());
    await core.runtime.pass(1_000);
    expect(core.store.next('release').keepForMs).toBeLessThanOrEqual(10_000 - 50);
    await core.store.next('release').reply(released());
    nothingLeft();
  });

  it('is not renewed meanwhile, but the hold is long enough from the beginning', async () => {
    section(() => 'done', { holdAtLeastMs: 45_000 });
    expect(core.store.next('acquire').claim.leaseMs).toBe(45_000);
  });

  it('a section that takes longer than that is released at once', async () => {
    const go = deferred();
    section(() => go.promise, { holdAtLeastMs: 5_000 });
    await core.store.next('acquire').reply(granted());
    await core.runtime.pass(5_000);
    go.resolve();
    await settled();
    expect(core.store.next('release').keepForMs).toBeUndefined();
    // It is free now, so the store gives it to those who wait, as after any other lock.
    const next = acquire();
    await core.store.next('release').reply(released(true));
    await core.store.next('acquire').reply(granted(2));
    expect(next.value?.fencingToken).toBe(2);
  });

  it('does not keep what was taken for a call that then did not get all its keys', async () => {
    const both = watched(core.manager.acquire(['a', 'b'], core.call({ holdAtLeastMs: 10_000, waitMs: 0 })));
    await core.store.next('acquire').reply(granted());
    await core.store.next('acquire').reply(taken());
    expect(core.store.next('release').keepForMs).toBeUndefined();
    await core.store.next('release').reply(released());
    expect(both.state).toBe('rejected');
    nothingLeft();
  });
});

describe('forceUnlock', () => {
  it('tells the holder of this process at once, and frees its place', async () => {
    const lease = await acquired();
    const { signal } = lease;
    const next = acquire();
    const unlocking = watched(core.manager.forceUnlock('k'));
    await core.store.next('forceUnlock').reply(true);
    expect([unlocking.value, lease.lost, signal.aborted]).toEqual([true, true, true]);
    expect(events).toEqual(['lost k force-unlocked']);
    await core.store.next('acquire').reply(granted(2));
    expect(next.value?.fencingToken).toBe(2);
  });

  it('leaves a hold alone that was asked for after it', async () => {
    const unlocking = watched(core.manager.forceUnlock('k'));
    await core.runtime.pass(1);
    const caller = acquire();
    const [force, requested] = core.store.unanswered;
    // Both answers come in one piece, as they do from one connection.
    await Promise.all([requested!.reply(granted(2)), force!.reply(true)]);
    expect([unlocking.value, caller.value?.lost]).toEqual([true, false]);
    expect(events).toEqual([]);
  });

  it('that fails is a store error and changes nothing', async () => {
    const lease = await acquired();
    const unlocking = watched(core.manager.forceUnlock('k'));
    await core.store.next('forceUnlock').fail(unknown());
    expect(unlocking.error).toBeInstanceOf(LockStoreError);
    expect(lease.lost).toBe(false);
  });
});

describe('extend', () => {
  it('lengthens the lease, counted from before the request, and the next renewal does not shorten it', async () => {
    const lease = await acquired();
    const extending = watched(lease.extend(120_000));
    await core.runtime.pass(1_000);
    expect(
      core.store.next('extend').claims.map(({ leaseMs, tokens: fenceBlock }) => [leaseMs, fenceBlock]),
    ).toEqual([[120_000, 0]]);
    await core.store.next('extend').reply([{ status: 'held', validForMs: 120_000 }]);
    expect([extending.state, lease.remainingMs()]).toEqual(['fulfilled', 119_000]);
    await core.runtime.pass(9_000);
    await core.store.next('extend').reply([{ status: 'held', validForMs: 110_000 }]);
    expect(lease.remainingMs()).toBe(110_000);
  });

  it('a renewal under way when it was extended does not take it back', async () => {
    const lease = await acquired();
    await core.runtime.pass(10_000);
    const renewal = core.store.next('extend');
    await core.runtime.pass(1);
    watched(lease.extend(120_000));
    await core.store.unanswered.at(-1)!.reply([{ status: 'held', validForMs: 120_000 }]);
    await renewal.reply([{ status: 'held', validForMs: 30_000 }]);
    expect(lease.remainingMs()).toBe(120_000);
  });

  it('of a fixed lease moves its end', async () => {
    const lease = await acquired({ leaseMs: 500 }, 500);
    watched(lease.extend(2_000));
    await core.store.next('extend').reply([{ status: 'held', validForMs: 2_000 }]);
    await core.runtime.pass(1_999);
    expect(lease.lost).toBe(false);
    await core.runtime.pass(1);
    expect(events).toEqual(['lost k expired']);
  });

  it('of a lost lease throws; of one the store does not have any more too, and then it is lost', async () => {
    const lease = await acquired();
    const extending = watched(lease.extend(1_000));
    await core.store.next('extend').reply([{ status: 'lost' }]);
    expect(extending.error).toBeInstanceOf(LockLostError);
    expect(events).toEqual(['lost k refused']);
    await expect(lease.extend(1_000)).rejects.toBeInstanceOf(LockLostError);
    expect(core.store.count('extend')).toBe(1);
  });

  it('that fails is a store error, and the lease goes on', async () => {
    const lease = await acquired();
    for (const failure of [unknown(), notExecuted()]) {
      const extending = watched(lease.extend(60_000));
      await core.store.next('extend').fail(failure);
      expect(extending.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: failure.outcome });
    }
    expect([lease.lost, lease.remainingMs()]).toEqual([false, 30_000]);
  });

  it('answered after the lease was over is a loss', async () => {
    const lease = await acquired({ leaseMs: 500 }, 500);
    const extending = watched(lease.extend(5_000));
    core.runtime.jump(500);
    await core.store.next('extend').reply([{ status: 'held', validForMs: 5_000 }]);
    expect(extending.error).toBeInstanceOf(LockLostError);
    expect(lease.lost).toBe(true);
  });
});

describe('a lost holder', () => {
  it('frees its place at once: the next local caller does not wait for its work', async () => {
    const work = deferred();
    section(() => work.promise);
    await core.store.next('acquire').reply(granted(1));
    const next = acquire({ waitMs: 60_000 });
    await core.runtime.pass(10_000);
    await core.store.next('extend').reply([{ status: 'lost' }]);
    await core.store.next('acquire').reply(granted(2));
    expect(next.value?.fencingToken).toBe(2);
    work.resolve();
    await settled();
    expect(next.value?.lost, 'the end of the first is none of the second').toBe(false);
    expect(core.store.unanswered).toEqual([]);
  });

  it('can acquire the key again outside its section, in the queue like all other callers', async () => {
    const go = deferred();
    const again = () => core.manager.withLock(['k'], core.call(), (own) => own.fencingToken);
    const work = section(async (lease) => {
      await go.promise;
      return [lease.lost, await detached(again)];
    });
    await core.store.next('acquire').reply(granted(1));
    core.runtime.jump(30_000);
    await core.runtime.pass(0);
    go.resolve();
    await settled();
    await core.store.next('acquire').reply(taken());
    await core.store.watching[0]!.becomeLive();
    await core.store.next('acquire').reply(granted(2));
    await core.store.next('release').reply(released());
    await core.store.next('release').reply(notHeld);
    expect(work.value).toEqual([true, 2]);
  });

  it('is told once, by its signal, with the reason', async () => {
    const lease = await acquired();
    let aborts = 0;
    lease.signal.addEventListener('abort', () => (aborts += 1));
    core.runtime.jump(30_000);
    expect(lease.remainingMs()).toBe(0);
    await core.runtime.pass(10_000);
    expect(aborts).toBe(1);
    expect(lease.signal.reason).toBeInstanceOf(LockLostError);
    expect(lease.signal.reason).toBe(lease.loss);
    expect(events).toEqual(['lost k expired']);
  });

  it('hears of it also when the logger is broken', async () => {
    const lease = await acquired();
    const { signal } = lease;
    core.log.warn = () => {
      throw new Error('the disk is full');
    };
    const next = acquire({ waitMs: 60_000 });
    core.runtime.jump(30_000);
    expect(lease.lost).toBe(true);
    expect(signal.aborted).toBe(true);
    await settled();
    await core.store.next('acquire').reply(granted());
    expect(next.state).toBe('fulfilled');
  });
});
