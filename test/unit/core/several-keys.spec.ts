import { beforeEach, describe, expect, it } from 'vitest';
import { LockKeyError, LockLostError, LockStoreError } from '../../../lib/core/errors/lock.errors.js';
import type { LockCall } from '../../../lib/core/settings/lock-call.js';
import { coreUnderTest, watched } from '../../support/core/core-under-test.js';
import { granted, released, ScriptedStore, taken, unknown } from '../../support/core/scripted-store.js';
import { settled } from '../../support/core/virtual-runtime.js';

class SessionScript extends ScriptedStore {
  override readonly lease = { type: 'session', timeoutMs: 9_000 } as const;
}

let core: ReturnType<typeof coreUnderTest>;

beforeEach(() => {
  core = coreUnderTest();
});

const acquire = (keys: readonly string[], options: Partial<LockCall> = {}) =>
  watched(core.manager.acquire(keys, core.call(options)));

const grantNext = (token = 1, validForMs = 30_000) =>
  core.store.next('acquire').reply(granted(token, validForMs));

const nothingLeft = (): void => {
  expect(core.manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
};

describe('several keys', () => {
  it('are taken one after the other in the order of their code units, without duplicates', async () => {
    const caller = acquire(['b', 'Z', 'ä', 'b', 'a', 'a:1', 'a']);
    for (const key of ['Z', 'a', 'a:1', 'b', 'ä']) {
      expect(core.store.unanswered).toHaveLength(1);
      expect(core.store.next('acquire').claim.finalKey).toBe(key);
      await grantNext();
    }
    expect(caller.value?.keys).toEqual(['Z', 'a', 'a:1', 'b', 'ä']);
    expect(core.store.unanswered).toHaveLength(0);
  });

  it('each have their own token; asking for "the" token is an error', async () => {
    const caller = acquire(['a', 'b']);
    await grantNext(11);
    await grantNext(5);
    expect([caller.value!.tokenFor('a'), caller.value!.tokenFor('b')]).toEqual([11, 5]);
    expect(() => caller.value!.fencingToken).toThrow(/tokenFor/);
    expect(() => caller.value!.tokenFor('c')).toThrow(LockKeyError);
  });

  it('all or none: when one is taken for too long, the earlier ones are released', async () => {
    const caller = acquire(['a', 'b', 'c'], { waitMs: 100 });
    await grantNext();
    await grantNext();
    await core.store.next('acquire').reply(taken());
    await core.runtime.pass(100);
    await core.store.next('acquire').reply(taken());
    const releases = core.store.unanswered.map(({ name, claim }) => `${name} ${claim.finalKey}`);
    expect(releases).toEqual(['release b', 'release a']);
    await core.store.next('release').reply(released());
    await core.store.next('release').reply(released());
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'c' });
    nothingLeft();
  });

  it('all or none: a caller that does not get them all is rejected at once, while the earlier ones are released', async () => {
    const caller = acquire(['a', 'b'], { waitMs: 100 });
    await grantNext();
    await core.store.next('acquire').reply(taken());
    await core.runtime.pass(100);
    await core.store.next('acquire').reply(taken());
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'b' });
    expect(core.manager.usage).toMatchObject({ leases: 0, undoing: 1 });
    await core.store.next('release').reply(released());
    expect(core.manager.usage).toMatchObject({ keys: 0, undoing: 0 });
  });

  it('share one wait, counted from the beginning', async () => {
    const caller = acquire(['a', 'b'], { waitMs: 1_000 });
    await core.runtime.pass(900);
    await grantNext();
    await core.store.next('acquire').reply(taken());
    await core.runtime.pass(100);
    await core.store.next('acquire').reply(taken());
    await core.store.next('release').reply(released());
    expect(caller.error).toMatchObject({ code: 'LOCK_TAKEN', key: 'b' });
  });

  it('with a lease shorter than the wait: acquired keys do not expire meanwhile, then all get the lease', async () => {
    const caller = acquire(['a', 'b'], { waitMs: 60_000, leaseMs: 500 });
    expect(core.store.next('acquire').claim.leaseMs).toBe(30_000);
    await grantNext(1);
    await core.store.next('acquire').reply(taken(60_000));
    await core.store.watching[0]!.becomeLive();
    await core.store.next('acquire').reply(taken(60_000));
    // The watchdog keeps the first while the second is waited for.
    for (let period = 0; period < 5; period += 1) {
      await core.runtime.pass(10_000);
      await core.store.next('extend').reply([{ status: 'held', validForMs: 30_000 }]);
    }
    await core.store.watching[0]!.wake();
    await grantNext(2);
    const setting = core.store.unanswered.filter(({ name }) => name === 'acquire');
    expect(setting.map(({ claim }) => [claim.finalKey, claim.leaseMs])).toEqual([
      ['a', 500],
      ['b', 500],
    ]);
    expect(
      setting.map(({ claim }) => claim.owner),
      'their own holds',
    ).toEqual([core.store.sent[0]!.claim.owner, core.store.sent.at(-3)!.claim.owner]);
    await grantNext(3, 500);
    await grantNext(4, 500);
    const lease = caller.value!;
    expect([lease.tokenFor('a'), lease.tokenFor('b'), lease.remainingMs()]).toEqual([3, 4, 500]);
    await core.runtime.pass(500);
    expect(lease.lost).toBe(true);
    expect(core.store.count('extend'), 'a fixed lease is not renewed').toBe(5);
  });

  it('a nested one keeps the lease of its outer call, while the others get their own', async () => {
    const outer = acquire(['a'], { leaseMs: 10_000 });
    await grantNext(1, 10_000);
    const caller = acquire(['a', 'b'], { inside: [outer.value!], leaseMs: 500 });
    await settled();
    expect(core.store.next('acquire').claim).toMatchObject({ finalKey: 'b', leaseMs: 30_000 });
    await grantNext(2);
    expect(core.store.next('acquire').claim).toMatchObject({ finalKey: 'b', leaseMs: 500 });
    await grantNext(3, 500);
    expect([caller.value!.remainingMs(), outer.value!.remainingMs()]).toEqual([500, 10_000]);
    expect([caller.value!.tokenFor('a'), core.store.unanswered]).toEqual([1, []]);
  });

  it('with a shorter lease in the end: waiters that know the longer one are notified', async () => {
    acquire(['a', 'b'], { leaseMs: 500 });
    await core.store.next('acquire').reply(granted());
    expect(core.store.next('acquire').claim.reacquires, 'a first request').toBeUndefined();
    await core.store.next('acquire').reply(granted());
    expect(core.store.unanswered.map(({ claim }) => [claim.leaseMs, claim.reacquires])).toEqual([
      [500, true],
      [500, true],
    ]);
  });

  it('a key that was lost during the wait for the others: no lease, and the rest is released', async () => {
    const caller = acquire(['a', 'b'], { waitMs: 60_000 });
    await grantNext();
    await core.store.next('acquire').reply(taken());
    await core.store.watching[0]!.becomeLive();
    await core.store.next('acquire').reply(taken());
    await core.runtime.pass(10_000);
    await core.store.next('extend').reply([{ status: 'lost' }]);
    await core.store.watching[0]!.wake();
    await grantNext();
    expect(core.store.next('release').claim.finalKey).toBe('b');
    await core.store.next('release').reply(released());
    expect(caller.error).toBeInstanceOf(LockLostError);
    expect(caller.error).toMatchObject({ key: 'a' });
    await settled();
    nothingLeft();
  });

  it('setting the lease fails: no lease, everything is given back, the unknown is undone', async () => {
    const caller = acquire(['a', 'b'], { leaseMs: 500 });
    await grantNext();
    await grantNext();
    await grantNext(3, 500);
    await core.store.next('acquire').fail(unknown());
    for (let i = 0; i < 10 && core.store.unanswered.length > 0; i += 1) {
      await core.store.next('release').reply(released());
    }
    expect(caller.error).toBeInstanceOf(LockStoreError);
    nothingLeft();
    const undone = core.store.sent
      .filter(({ name }) => name === 'release')
      .map(({ claim }) => claim.finalKey);
    expect(new Set(undone)).toEqual(new Set(['a', 'b']));
  });

  it('holds that are about to get a fixed lease are not renewed any more: that would lengthen it again', async () => {
    acquire(['a', 'b'], { leaseMs: 500 });
    await grantNext();
    await core.runtime.pass(9_999);
    await grantNext();
    await core.runtime.pass(1);
    expect(core.store.unanswered.map(({ name }) => name)).toEqual(['acquire', 'acquire']);
  });

  it('setting the lease re-creates a hold that was gone: it is given back, not left behind', async () => {
    const caller = acquire(['a', 'b'], { leaseMs: 500 });
    await grantNext();
    await core.runtime.pass(10_000);
    const { unanswered: open } = core.store;
    expect(open.map(({ name }) => name)).toEqual(['acquire', 'extend']);
    await grantNext();
    // The renewal was sent first and is answered first: by then the hold was gone.
    await core.store.next('extend').reply([{ status: 'lost' }]);
    await grantNext(3, 500);
    await grantNext(4, 500);
    const given = open.filter(({ name }) => name === 'release').map(({ claim }) => claim.finalKey);
    expect(new Set(given)).toEqual(new Set(['a', 'b']));
    while (open.length > 0) await core.store.next('release').reply(released());
    expect(caller.error).toBeInstanceOf(LockLostError);
    nothingLeft();
  });

  it('a hold that setting the lease re-creates in a store with sessions is released however long that takes', async () => {
    core = coreUnderTest({}, new SessionScript());
    acquire(['a', 'b'], { leaseMs: 500 });
    await grantNext();
    await core.runtime.pass(10_000);
    await grantNext();
    await core.store.next('extend').reply([{ status: 'lost' }]);
    await grantNext(3, 500);
    await grantNext(4, 500);
    const { unanswered: open } = core.store;
    for (let i = 0; i < 20; i++) {
      while (open.length > 0) await core.store.next('release').fail(unknown());
      await core.runtime.pass(1_000);
    }
    expect(open.map(({ name, claim }) => `${name} ${claim.finalKey}`)).toContain('release a');
  });

  it('holdAtLeastMs counts for each of them, from when all are there', async () => {
    const caller = acquire(['a', 'b'], { holdAtLeastMs: 45_000 });
    expect(core.store.next('acquire').claim.leaseMs).toBe(45_000);
    await grantNext();
    await core.runtime.pass(1_000);
    await grantNext();
    void caller.value!.release();
    expect(core.store.unanswered.map(({ keepForMs }) => keepForMs)).toEqual([45_000, 45_000]);
  });

  it('an empty list is an error', async () => {
    const caller = acquire([]);
    await settled();
    expect(caller.error).toBeInstanceOf(LockKeyError);
    nothingLeft();
  });
});
