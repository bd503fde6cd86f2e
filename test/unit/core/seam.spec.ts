import { describe, expect, it } from 'vitest';
import type { Claim } from '../../../lib/core/seam/claim.js';
import { StoreFailure } from '../../../lib/core/seam/store-failure.js';
import {
  LockConfigurationError,
  LockKeyError,
  LockStoreError,
} from '../../../lib/core/errors/lock.errors.js';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { defaultCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { coreUnderTest, Log, watched } from '../../support/core/core-under-test.js';
import {
  granted,
  notExecuted,
  notHeld,
  released,
  ScriptedStore,
  unknown,
} from '../../support/core/scripted-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

/** What a store of another kind needs of the seam. */
describe('the seam', () => {
  it('a claim carries all a store may need: kind, key, owner, lease, size of the fence block, terms of a place, until when it is sent', async () => {
    const { manager, store, call, runtime } = coreUnderTest({ keyPrefix: 'app:' });
    watched(manager.acquire(['k'], call({ leaseMs: 700 })));
    await settled();
    expect(store.next('acquire').claim).toEqual({
      kind: 'exclusive',
      finalKey: 'app:k',
      owner: 'id-1:1',
      leaseMs: 700,
      tokens: 1,
      perKeyCounter: false,
      waits: true,
      entryTerms: { aliveMs: 5_000, provisionalLeaseMs: 10_000, tokens: 1 },
      until: runtime.now() + 5_000,
      withdrawnBy: [expect.any(AbortSignal)],
    } satisfies Claim);
  });

  it('a claim whose caller does not wait has no place in a line', async () => {
    const { manager, store, call } = coreUnderTest();
    watched(manager.acquire(['k'], call({ waitMs: 0 })));
    await settled();
    expect(store.next('acquire').claim).toMatchObject({ waits: false, entryTerms: undefined });
  });

  it('without fencing no tokens are asked for, and asking for one is an error', async () => {
    const { manager, store, call } = coreUnderTest({ fencing: false });
    const caller = watched(manager.acquire(['k'], call()));
    expect(store.next('acquire').claim.tokens).toBe(0);
    await store.next('acquire').reply({ status: 'granted', validForMs: 30_000 });
    expect(() => caller.value!.fencingToken).toThrow(/fencing is off/);
  });

  it("a claim says that its tokens are those of the key's own counter", async () => {
    const { manager, store, call } = coreUnderTest({ fencing: 'redisson' });
    watched(manager.acquire(['k'], call()));
    await settled();
    expect(store.next('acquire').claim).toMatchObject({ tokens: 1, perKeyCounter: true });
  });

  it('a store says which kinds it keeps; a store without the kind is rejected at start-up', () => {
    class NoLocks extends ScriptedStore {
      override readonly kinds = {};
    }
    expect(() => new LockManager(new NoLocks(), resolveSettings({}), new Log())).toThrow(
      LockConfigurationError,
    );
  });

  it('a store may refuse a key before anything is sent', async () => {
    class Picky extends ScriptedStore {
      checkKey(key: string): void {
        throw new LockKeyError(`not "${key}"`, { key });
      }
    }
    const store = new Picky();
    const settings = resolveSettings({});
    const manager = new LockManager(store, settings, new Log(), new VirtualRuntime());
    await expect(manager.acquire(['k'], defaultCall(settings))).rejects.toThrow('not "lock:k"');
    expect([store.sent, manager.usage.leases]).toEqual([[], 0]);
  });

  it('what a store throws says whether it can have been done, and the caller gets it with its cause', async () => {
    for (const outcome of ['unknown', 'not-executed'] as const) {
      const { manager, store, call } = coreUnderTest();
      const cause = new Error('what was underneath');
      const caller = watched(manager.acquire(['k'], call()));
      await store.next('acquire').fail(new StoreFailure('it broke', outcome, { cause }));
      expect(caller.error).toBeInstanceOf(LockStoreError);
      expect(caller.error).toMatchObject({ outcome, cause, key: 'k', code: 'LOCK_STORE_FAILED' });
      expect((caller.error as Error).message).toContain(': it broke (what was underneath). ');
      expect(store.count('release'), 'only the unknown is undone').toBe(outcome === 'unknown' ? 1 : 0);
    }
  });

  it('a failure is passing if its store says so, or asks for another try', () => {
    const passing = (options?: ConstructorParameters<typeof StoreFailure>[2]): boolean =>
      new StoreFailure('it broke', 'not-executed', options).passing;
    expect([passing(), passing({ passing: true }), passing({ transient: true })]).toEqual([
      false,
      true,
      true,
    ]);
  });

  it('a store that throws at once, instead of rejecting, is a store that fails', async () => {
    class Hasty extends ScriptedStore {
      hasty = true;

      override acquire(claim: Claim) {
        if (this.hasty) throw notExecuted();
        return super.acquire(claim);
      }

      override release(claim: Claim) {
        if (this.hasty) throw notExecuted();
        return super.release(claim);
      }
    }
    const store = new Hasty();
    const settings = resolveSettings({});
    const manager = new LockManager(store, settings, new Log(), new VirtualRuntime());
    await expect(manager.acquire(['k'], defaultCall(settings))).rejects.toThrow(LockStoreError);
    store.hasty = false;
    const section = watched(manager.withLock(['k'], defaultCall(settings), () => (store.hasty = true)));
    await store.next('acquire').reply(granted());
    expect(section.value).toBe(true);
    const next = watched(manager.acquire(['k'], defaultCall(settings)));
    await settled();
    expect([next.state, manager.usage]).toMatchObject(['rejected', { leases: 0, keys: 0, holds: 0 }]);
  });

  it('a failure gets back to the store that made it, with all it remembers', async () => {
    class Remembering extends StoreFailure {
      readonly connection = 7;
    }
    const { manager, store, call } = coreUnderTest();
    watched(manager.acquire(['k'], call()));
    const failure = new Remembering('no answer', 'unknown');
    await store.next('acquire').fail(failure);
    expect(store.next('release').uncertain).toBe(failure);
  });

  it('every question of a user reaches the store, and a failure is a store error with the key', async () => {
    const { manager, store } = coreUnderTest({ keyPrefix: 'app:' });
    const requests = [
      ['inspect', () => manager.inspect('k')],
      ['forceUnlock', () => manager.forceUnlock('k')],
      ['ping', () => manager.ping()],
    ] as const;
    for (const [name, request] of requests) {
      const requesting = watched<unknown>(request());
      if (name !== 'ping') expect(store.next(name).claim.finalKey).toBe('app:k');
      await store.next(name).fail(unknown());
      expect(requesting.error).toBeInstanceOf(LockStoreError);
    }
  });

  it('everything runs on the clock, the timers and the ids that are handed in', async () => {
    const { manager, store, call, runtime } = coreUnderTest();
    const caller = watched(manager.acquire(['k'], call()));
    await store.next('acquire').reply(granted());
    expect(caller.value!.id).toBe('id-2');
    expect(caller.value!.remainingMs()).toBe(30_000);
    runtime.jump(29_999);
    expect([caller.value!.lost, caller.value!.remainingMs()]).toEqual([false, 1]);
    runtime.jump(1);
    expect([caller.value!.lost, caller.value!.remainingMs()]).toEqual([true, 0]);
    void caller.value!.release();
    await store.next('release').reply(notHeld);
    await runtime.pass(100_000);
    expect(runtime.due).toEqual([]);
  });

  it('an unused key is forgotten', async () => {
    const { manager, store, call } = coreUnderTest();
    for (let i = 0; i < 1_000; i += 1) {
      const caller = watched(manager.acquire([`k${i}`], call()));
      await store.next('acquire').reply(granted());
      void caller.value!.release();
      await store.next('release').reply(released());
    }
    expect(manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });
});
