import { queueEntryTermsOf } from '../../../lib/core/seam/claim.js';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  LockAbortedError,
  LockConfigurationError,
  LockNotAcquiredError,
} from '../../../lib/core/errors/lock.errors.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import type { AcquireReply } from '../../../lib/core/seam/reply.js';
import type { LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import type { Lease } from '../../../lib/core/lease/lease.js';
import { coreUnderTest, watched, type Watched } from '../../support/core/core-under-test.js';
import { granted, grantedFor, notHeld, released, taken, unknown } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

let core: ReturnType<typeof coreUnderTest>;

const begin = (settings: LockSettingsInput = {}): void => {
  core = coreUnderTest(settings);
};

const acquire = (options: Partial<LockCall> = {}, key = 'k'): Watched<Lease> =>
  watched(core.manager.acquire([key], core.call(options)));

/** A holder that asked for the key once others stood behind it, and these others, each with its options. */
const crowdOf = async (
  options: readonly Partial<LockCall>[],
  reply: AcquireReply = granted(100),
): Promise<[Lease, Watched<Lease>[]]> => {
  const first = acquire();
  const others = options.map((own) => acquire(own));
  await core.store.next('acquire').reply(taken());
  // Its next question is the first that knows of the others.
  await core.store.watching[0]!.wake();
  await core.store.next('acquire').reply(reply);
  return [first.value!, others];
};

/** A holder and `waiting` equal waiters. */
const crowd = (waiting: number, options: Partial<LockCall> = {}, reply?: AcquireReply) =>
  crowdOf(
    Array.from({ length: waiting }, () => options),
    reply,
  );

const requests = (): string[] => core.store.sent.map(({ name }) => name);
const open = (): string[] => core.store.unanswered.map(({ name }) => name);

beforeEach(() => begin());

describe('a hold whose lease is over', () => {
  it('goes to the next caller of this process without a request, with the next token', async () => {
    const [lease, [second, third]] = await crowd(2);
    const before = requests().length;
    expect(await lease.release()).toBe('released');
    await settled();
    expect(second!.value!.fencingToken).toBe(101);
    expect(third!.state).toBe('pending');
    await second!.value!.release();
    await settled();
    expect(third!.value!.fencingToken).toBe(102);
    expect(requests()).toHaveLength(before);
    expect([lease, second!.value!, third!.value!].map((one) => one.remainingMs())).toEqual([0, 0, 30_000]);
    expect(new Set([lease.id, second!.value!.id, third!.value!.id]).size).toBe(3);
  });

  it('goes back to the store when no local caller waits', async () => {
    const [lease, [second]] = await crowd(1);
    await lease.release();
    void second!.value!.release();
    await core.store.next('release').reply(released());
    await settled();
    expect(core.manager.usage).toMatchObject({ keys: 0, holds: 0, leases: 0 });
  });

  it('brings as many tokens as there are callers when it is asked for, at most 64; a place is for a whole turn', async () => {
    await crowd(3);
    expect(core.store.sent.map(({ claim }) => claim.tokens)).toEqual([1, 4]);
    const tokens = core.store.sent.map(({ claim }) => queueEntryTermsOf(claim)?.tokens);
    expect(tokens).toEqual([64, 64]);
    begin();
    await crowd(100);
    expect(core.store.sent.map(({ claim }) => claim.tokens)).toEqual([1, 64]);
  });

  it.each([
    [0, 1],
    [3, 4],
    [100, 64],
  ])('brings, when its caller does not wait and %s are behind it, %s tokens', async (behind, tokens) => {
    const controller = new AbortController();
    acquire({ signal: controller.signal });
    await core.store.next('acquire').reply(taken());
    const tries = acquire({ waitMs: 0 });
    for (let i = 0; i < behind; i++) acquire();
    // The one before it goes, so that it is asked for by the one that only tries.
    controller.abort();
    await settled();
    expect(core.store.next('acquire').claim).toMatchObject({ tokens, waits: false });
    await core.store.next('acquire').reply(granted());
    expect(tries.state).toBe('fulfilled');
  });

  it('brings no tokens without fencing, and is handed over all the same', async () => {
    begin({ fencing: false });
    const [lease, [second]] = await crowd(1);
    expect(core.store.sent.map(({ claim }) => claim.tokens)).toEqual([0, 0]);
    await lease.release();
    await settled();
    expect(second!.state).toBe('fulfilled');
  });

  it('goes back to the store when its tokens are used up, and the next caller asks behind that', async () => {
    const [lease, [second, third]] = await crowd(2, {}, grantedFor(2, 100));
    await lease.release();
    await settled();
    expect(second!.value!.fencingToken).toBe(101);
    void second!.value!.release();
    await settled();
    expect([third!.state, open()]).toEqual(['pending', ['release', 'acquire']]);
    await core.store.next('release').reply(released(true));
    await core.store.next('acquire').reply(granted(102));
    expect(third!.value!.fencingToken).toBe(102);
  });

  it('goes back to the store once its turn has lasted for 50 ms', async () => {
    const [lease, [second, third]] = await crowd(2);
    await core.runtime.pass(49);
    await lease.release();
    await settled();
    await core.runtime.pass(1);
    void second!.value!.release();
    await settled();
    expect([third!.state, open()]).toEqual(['pending', ['release', 'acquire']]);
  });

  it('does not go to a caller with a lease or a minimum time of its own', async () => {
    for (const options of [{ leaseMs: 1_000 }, { holdAtLeastMs: 1_000 }]) {
      begin();
      const [lease, [second]] = await crowd(1, options);
      void lease.release();
      await core.store.next('release').reply(released());
      expect(second!.state).toBe('pending');
      expect(core.store.next('acquire').claim.leaseMs).toBe(options.leaseMs ?? 30_000);
    }
  });

  it('is not passed on by a caller with a fixed lease, which would be nearly over', async () => {
    const first = acquire({ leaseMs: 5_000 });
    acquire();
    await core.store.next('acquire').reply(granted());
    void first.value!.release();
    expect(open()).toEqual(['release']);
  });

  it('is asked for with one token by such a caller', async () => {
    acquire({ leaseMs: 5_000 });
    acquire();
    await core.store.next('acquire').reply(taken());
    await core.store.watching[0]!.wake();
    expect(core.store.next('acquire').claim.tokens).toBe(1);
  });

  it('is not passed on by a caller of several keys with a fixed lease either', async () => {
    const several = watched(core.manager.acquire(['a', 'k'], core.call({ leaseMs: 5_000 })));
    await core.store.next('acquire').reply(granted());
    acquire();
    await core.store.next('acquire').reply(taken());
    await core.store.watching[0]!.wake();
    const request = core.store.next('acquire');
    expect(request.claim.tokens).toBe(2);
    await request.reply(granted(50));
    expect(core.store.unanswered.map(({ claim }) => [claim.leaseMs, claim.tokens])).toEqual([
      [5_000, 1],
      [5_000, 1],
    ]);
    await core.store.next('acquire').reply(granted(60));
    await core.store.next('acquire').reply(granted(61));
    void several.value!.release();
    expect(open()).toEqual(['release', 'release']);
  });

  it('stays with its minimum time', async () => {
    const work = watched(core.manager.withLock(['k'], core.call({ holdAtLeastMs: 40 }), () => 1));
    const next = acquire();
    await core.store.next('acquire').reply(taken());
    await core.store.watching[0]!.wake();
    await core.store.next('acquire').reply(granted());
    expect([next.state, open()]).toEqual(['pending', ['release', 'acquire']]);
    expect(core.store.next('release').keepForMs).toBe(40);
    await core.store.next('release').reply(released());
    expect([work.value, next.state, open()]).toEqual([1, 'pending', ['acquire']]);
  });

  it('goes back to the store when the next one is renewed with another lease', async () => {
    const first = acquire();
    await core.store.next('acquire').reply(taken());
    const next = acquire({ watchdogMs: 5_000 });
    await core.store.watching[0]!.wake();
    await core.store.next('acquire').reply(granted(1));
    void first.value!.release();
    await settled();
    await core.store.next('release').reply(released());
    expect(core.store.next('acquire').claim.leaseMs).toBe(5_000);
    await core.store.next('acquire').reply(granted(2, 5_000));
    expect(next.value!.fencingToken).toBe(2);
  });

  it('goes back to the store when its holder asked for more: the next one must not inherit that', async () => {
    const [lease, [second]] = await crowd(1);
    const extending = watched(lease.extend(3_600_000));
    await core.store.next('extend').reply([{ status: 'held', validForMs: 3_600_000 }]);
    expect(extending.state).toBe('fulfilled');
    void lease.release();
    await core.store.next('release').reply(released());
    await core.store.next('acquire').reply(granted(200));
    expect(second!.value!.remainingMs()).toBe(30_000);
  });

  it('cannot be lengthened by the lease that had it before', async () => {
    const [lease, [second]] = await crowd(1);
    await lease.release();
    await settled();
    const stale = watched(lease.extend(3_600_000));
    await settled();
    expect(stale.error).toBeInstanceOf(LockConfigurationError);
    expect(stale.error).toMatchObject({
      message: expect.stringContaining('after the release of "k"') as string,
    });
    expect([open(), second!.value!.remainingMs()]).toEqual([[], 30_000]);
  });

  it('that is forced open in the moment it is passed on leaves the key free here, and its taker is told', async () => {
    const events: string[] = [];
    core.manager.on('lost', ({ reason }) => events.push(reason));
    const [lease, [second]] = await crowd(1);
    const unlocking = watched(core.manager.forceUnlock('k'));
    // Both in one turn of the event loop: the answer comes while the hold is on its way.
    void lease.release();
    await core.store.next('forceUnlock').reply(true);
    expect(unlocking.value).toBe(true);
    while (open().length > 0) {
      if (open()[0] === 'acquire') await core.store.next('acquire').reply(granted(300));
      else await core.store.next('release').reply(notHeld);
    }
    await second!.value?.release().catch(() => undefined);
    while (open().length > 0) await core.store.next('release').reply(released());
    expect(second!.state).not.toBe('pending');
    const fresh = acquire();
    await core.store.next('acquire').reply(granted(400));
    expect(fresh.value!.fencingToken).toBe(400);
    void fresh.value!.release();
    await core.store.next('release').reply(released());
    expect(core.manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });

  it('is kept alive: renewals go on, and count for its current holder', async () => {
    const [lease, [second]] = await crowd(1);
    await lease.release();
    await core.runtime.pass(10_000);
    await core.store.next('extend').reply([{ status: 'held', validForMs: 30_000 }]);
    expect(second!.value!.remainingMs()).toBe(30_000);
    await core.runtime.pass(10_000);
    await core.store.next('extend').reply([{ status: 'lost' }]);
    expect([lease.lost, second!.value!.lost]).toEqual([false, true]);
  });
});

describe('a hold in doubt goes back to the store', () => {
  const goesBack = async (lease: Lease): Promise<void> => {
    void lease.release();
    await settled();
    expect(open()).toContain('release');
  };

  /** In the middle of its turn all holds of the process are renewed. */
  const renewedInBatch = async (): Promise<Lease> => {
    acquire({}, 'another');
    await core.store.next('acquire').reply(granted());
    await core.runtime.pass(9_980);
    const [lease] = await crowd(1);
    await core.runtime.pass(20);
    return lease;
  };

  it('while a renewal of it has no answer', async () => {
    const lease = await renewedInBatch();
    expect(open()).toEqual(['extend']);
    await goesBack(lease);
  });

  it('after a renewal that failed', async () => {
    const lease = await renewedInBatch();
    await core.store.next('extend').fail(unknown());
    await goesBack(lease);
  });

  it('but not after one that was answered', async () => {
    const lease = await renewedInBatch();
    const held = { status: 'held', validForMs: 30_000 } as const;
    await core.store.next('extend').reply([held, held]);
    void lease.release();
    await settled();
    expect(open()).toEqual([]);
  });

  it('while its holder lengthens it', async () => {
    const [lease] = await crowd(1);
    void lease.extend(60_000).catch(() => undefined);
    await goesBack(lease);
  });

  it('when less than two thirds of its time are left', async () => {
    const first = acquire({ waitMs: Infinity });
    acquire({ waitMs: Infinity });
    await core.store.next('acquire').reply(taken());
    await core.store.watching[0]!.wake();
    const request = core.store.next('acquire');
    await core.runtime.pass(11_000);
    await request.reply(granted());
    await goesBack(first.value!);
  });

  it('and a hold that is lost, or was released by force, is not passed on at all', async () => {
    const [lease, [second]] = await crowd(1);
    const forced = core.manager.forceUnlock('k');
    await core.store.next('forceUnlock').reply(true);
    await forced;
    expect(lease.lost).toBe(true);
    await settled();
    expect(open(), 'the next caller asks for itself').toEqual(['acquire']);
    await core.store.next('acquire').reply(granted(200));
    expect(await lease.release()).toBe('lost');
    expect(second!.value!.fencingToken).toBe(200);
  });
});

describe('on its way to the next caller', () => {
  it('a caller that was aborted is passed over', async () => {
    const controller = new AbortController();
    const [lease, [aborted, third]] = await crowdOf([{ signal: controller.signal }, {}], granted(7));
    controller.abort();
    void lease.release();
    await settled();
    expect(aborted!.error).toBeInstanceOf(LockAbortedError);
    expect(third!.value!.fencingToken).toBe(8);
  });

  it('a caller that is aborted at this moment passes it to the next waiter, which gets its own token', async () => {
    const controller = new AbortController();
    const [lease, [aborted, third]] = await crowdOf([{ signal: controller.signal }, {}], granted(7));
    const released: number[] = [];
    core.manager.on('released', () => released.push(lease.fencingToken));
    void lease.release();
    controller.abort();
    await settled();
    expect(aborted!.error).toBeInstanceOf(LockAbortedError);
    expect(third!.value!.fencingToken).toBe(9);
    expect(core.manager.usage).toMatchObject({ leases: 1, holds: 1, undoing: 0 });
    expect(released, 'nobody had it in between').toEqual([7]);
  });

  it('a hold that runs out in this very moment is undone, and asked for again by the same caller', async () => {
    const [lease, [second, third]] = await crowd(2);
    void lease.release();
    core.runtime.jump(30_000);
    await settled();
    expect(open()).toEqual(['release', 'acquire']);
    const { owner } = lease.parts[0]!.hold.claim;
    expect(core.store.unanswered.map(({ claim }) => claim.owner === owner)).toEqual([true, false]);
    await core.store.next('release').reply(released());
    await core.store.next('acquire').reply(granted(500));
    expect(second!.value!.fencingToken).toBe(500);
    expect([third!.state, core.manager.usage.holds]).toEqual(['pending', 1]);
  });

  it('a hold that is released by force has no holder, whenever the reply arrives', async () => {
    const wasPassedOn: boolean[] = [];
    for (let steps = 0; steps < 12; steps++) {
      begin();
      const [lease, [second]] = await crowd(1);
      const forced = core.manager.forceUnlock('k');
      const replied = core.store.next('forceUnlock').reply(true);
      for (let step = 0; step < steps; step++) await Promise.resolve();
      void lease.release();
      await Promise.all([replied, forced]);
      const believer = second!.value;
      const believed = believer !== undefined && !believer.lost;
      expect(believed, `${steps} steps later`).toBe(false);
      wasPassedOn.push(believer !== undefined);
    }
    expect(new Set(wasPassedOn), 'heard of before and after it was passed on').toEqual(
      new Set([true, false]),
    );
  });

  it('an app that stops gives it back', async () => {
    const [lease, [second]] = await crowd(1);
    void lease.release();
    void core.manager.shutDown();
    await settled();
    expect(second!.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    await core.store.next('release').reply(released());
    expect(core.manager.usage).toMatchObject({ keys: 0, holds: 0, leases: 0, undoing: 0 });
  });

  it('a caller whose time is over is told so, and the one behind gets it', async () => {
    const first = acquire();
    const short = acquire({ waitMs: 20 });
    const third = acquire();
    await core.store.next('acquire').reply(taken());
    await core.store.watching[0]!.wake();
    await core.store.next('acquire').reply(granted(7));
    await core.runtime.pass(20);
    expect(short.error).toBeInstanceOf(LockNotAcquiredError);
    void first.value!.release();
    await settled();
    expect(third.value!.fencingToken).toBe(8);
  });
});

describe('after a turn', () => {
  it('an outcome that is unknown is settled for the owner that all of them had, once', async () => {
    const [lease, [second]] = await crowd(1);
    const { owner } = lease.parts[0]!.hold.claim;
    await lease.release();
    await settled();
    const last = watched(second!.value!.release());
    await core.store.next('release').fail(unknown());
    expect(last.error).toMatchObject({ code: 'LOCK_STORE_FAILED' });
    await core.runtime.pass(50);
    const again = core.store.next('release');
    expect(again.claim.owner).toBe(owner);
    await again.reply(released());
    expect(core.manager.usage).toMatchObject({ undoing: 0, holds: 0 });
  });

  it('nested locks of a successor go into its own hold, not into that of the one before', async () => {
    const [lease, [second]] = await crowd(1);
    await lease.release();
    await settled();
    const nested = core.call({ inside: [second!.value!] });
    expect(await core.manager.withLock(['k'], nested, (inner) => inner.fencingToken)).toBe(101);
    await expect(lease.run(() => 1)).rejects.toThrow('after the release');
  });

  it('listeners for the loss of the first lease are not told of that of the next', async () => {
    const [lease, [second]] = await crowd(1);
    const { signal } = lease;
    await lease.release();
    await settled();
    const forced = core.manager.forceUnlock('k');
    await core.store.next('forceUnlock').reply(true);
    await forced;
    expect([signal.aborted, second!.value!.signal.aborted]).toEqual([false, true]);
  });
});
