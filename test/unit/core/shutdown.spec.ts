import { beforeEach, describe, expect, it } from 'vitest';
import { LockAbortedError } from '../../../lib/core/errors/lock.errors.js';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { ServiceGroup } from '../../../lib/core/context/service-group.js';
import { defaultCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { deferred, type Deferred } from '../../support/async.js';
import { coreUnderTest, Log, watched } from '../../support/core/core-under-test.js';
import { granted, released, taken } from '../../support/core/scripted-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const GRACE_MS = 4_000;

let core: ReturnType<typeof coreUnderTest>;

beforeEach(() => {
  core = coreUnderTest({ shutdownGraceMs: GRACE_MS });
});

const acquire = (key = 'k') => watched(core.manager.acquire([key], core.call({ waitMs: Infinity })));

describe('shutdown', () => {
  it('rejects waiters and later callers at once', async () => {
    const [contender, behind] = [acquire(), acquire()];
    await core.store.next('acquire').reply(taken());
    await core.store.watching[0]!.becomeLive();
    await core.store.next('acquire').reply(taken());
    const stopping = watched(core.manager.shutDown());
    await settled();
    const late = acquire('other');
    await settled();
    for (const caller of [contender, behind, late]) {
      expect(caller.error).toBeInstanceOf(LockAbortedError);
      expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    }
    expect(stopping.state).toBe('fulfilled');
    expect([core.runtime.due, core.manager.usage.keys]).toEqual([[], 0]);
  });

  it('refuses who has asked already as soon as the answer is there, also when the lock is taken', async () => {
    const caller = acquire();
    await core.store.next('acquire').reply(taken());
    await core.store.watching[0]!.becomeLive();
    const stopping = watched(core.manager.shutDown());
    await core.store.next('acquire').reply(taken());
    expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(stopping.state).toBe('fulfilled');
    expect([core.runtime.due, core.manager.usage.keys]).toEqual([[], 0]);
  });

  it('a grant that is under way is given back, and shutdown waits until that was sent', async () => {
    const caller = acquire();
    const stopping = watched(core.manager.shutDown());
    await settled();
    expect(stopping.state).toBe('pending');
    await core.store.next('acquire').reply(granted());
    expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(stopping.state, 'the give-back is unanswered').toBe('pending');
    await core.store.next('release').reply(released());
    expect(stopping.state).toBe('fulfilled');
    expect(core.manager.usage).toMatchObject({ holds: 0, keys: 0, leases: 0 });
  });

  it('a grant that comes after the grace period is given back too', async () => {
    const caller = acquire();
    const stopping = watched(core.manager.shutDown());
    await core.runtime.pass(GRACE_MS);
    expect(stopping.state).toBe('fulfilled');
    await core.store.next('acquire').reply(granted());
    expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(core.manager.usage.holds).toBe(0);
    expect(core.store.next('release').claim.owner).toBe(core.store.sent[0]!.claim.owner);
  });

  it('closes the store only when a grant that comes after the grace period was given back', async () => {
    const caller = acquire();
    const closing = watched(core.manager.close());
    await core.runtime.pass(GRACE_MS);
    expect(closing.state).toBe('pending');
    await core.store.next('acquire').reply(granted());
    expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    expect(closing.state, 'the give-back is unanswered').toBe('pending');
    await core.store.next('release').reply(released());
    expect(closing.state).toBe('fulfilled');
  });

  it('refuses new callers before it begins, without taking time from running sections', async () => {
    const work = deferred();
    const section = watched(
      core.manager.withLock(['k'], core.call(), async (lease) => {
        await work.promise;
        return lease.lost;
      }),
    );
    await core.store.next('acquire').reply(granted());
    const waiter = acquire();
    core.manager.refuseNew();
    core.manager.refuseNew();
    const late = acquire('other');
    await settled();
    for (const caller of [waiter, late]) expect(caller.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    await core.runtime.pass(GRACE_MS + 1);
    const stopping = watched(core.manager.shutDown());
    await core.runtime.pass(GRACE_MS / 2);
    work.resolve();
    await settled();
    await core.store.next('release').reply(released());
    expect(section.value).toBe(false);
    expect(stopping.state).toBe('fulfilled');
  });

  it('waits for running sections, which are renewed, may nest, and are released when they end', async () => {
    const work = deferred();
    const section = watched(
      core.manager.withLock(['k'], core.call(), async (lease) => {
        await work.promise;
        return core.manager.withLock(['inner'], core.call(), () => lease.lost);
      }),
    );
    await core.store.next('acquire').reply(granted());
    const stopping = watched(core.manager.shutDown());
    await core.runtime.pass(GRACE_MS / 2);
    work.resolve();
    await settled();
    await core.store.next('acquire').reply(granted());
    await core.store.next('release').reply(released());
    await core.store.next('release').reply(released());
    expect(section.value).toBe(false);
    expect(stopping.state).toBe('fulfilled');
  });

  it('waits for a release that its caller does not wait for, for the grace period at most', async () => {
    const ending = async () => {
      const section = watched(core.manager.withLock(['k'], core.call({ awaitRelease: false }), () => 'done'));
      await core.store.next('acquire').reply(granted());
      expect(section.value).toBe('done');
      return watched(core.manager.shutDown());
    };
    const stopping = await ending();
    await core.runtime.pass(GRACE_MS - 1);
    expect(stopping.state).toBe('pending');
    await core.store.next('release').reply(released());
    expect(stopping.state).toBe('fulfilled');

    core = coreUnderTest({ shutdownGraceMs: GRACE_MS });
    const noReply = await ending();
    await core.runtime.pass(GRACE_MS);
    expect(noReply.state).toBe('fulfilled');
  });

  it('after the grace period the section is told, its hold is not renewed, and not released under it', async () => {
    const work = deferred();
    let signal: AbortSignal | undefined;
    const section = watched(
      core.manager.withLock(['k'], core.call(), (lease) => {
        ({ signal } = lease);
        return work.promise;
      }),
    );
    await core.store.next('acquire').reply(granted());
    const stopping = watched(core.manager.shutDown());
    await core.runtime.pass(GRACE_MS - 1);
    expect([signal!.aborted, stopping.state]).toEqual([false, 'pending']);
    await core.runtime.pass(1);
    expect([signal!.aborted, stopping.state]).toEqual([true, 'fulfilled']);
    expect((signal!.reason as Error).message).toContain('shutdownGraceMs');
    await core.runtime.pass(60_000);
    expect(core.store.unanswered, 'neither renewed nor released').toEqual([]);
    work.resolve();
    await settled();
    await core.store.next('release').reply(released());
    expect(section.state, 'a loss does not change the result').toBe('fulfilled');
  });

  it('called twice is one shutdown; close after it closes the store', async () => {
    const first = core.manager.shutDown();
    expect(core.manager.shutDown()).toBe(first);
    await core.manager.close();
    expect(core.store.closed).toBe(true);
    expect(core.runtime.due).toEqual([]);
  });
});

describe('shutdown of services that stop together', () => {
  const SHORT_GRACE_MS = 1_000;
  let runtime: VirtualRuntime;
  let [first, second]: LockManager[] = [];
  let work: Deferred<void>;
  const call = defaultCall(resolveSettings({}));
  const serviceOf = (group: ServiceGroup | undefined, shutdownGraceMs: number): LockManager =>
    new LockManager(new MemoryStore(), resolveSettings({ shutdownGraceMs }), new Log(), runtime, group);

  beforeEach(() => {
    runtime = new VirtualRuntime();
    work = deferred();
    const group = new ServiceGroup();
    [first, second] = [serviceOf(group, SHORT_GRACE_MS), serviceOf(group, GRACE_MS)];
  });

  /** A section of one service that takes a lock of the other each time it is told to go on. */
  const sectionOf = (outer: LockManager, inner: LockManager) =>
    watched(
      outer.withLock(['outer'], call, async (lease) => {
        await work.promise;
        return inner.withLock(['inner'], call, (nested) => [lease.lost, nested.lost]);
      }),
    );
  const stop = () => {
    first!.refuseNew();
    second!.refuseNew();
    return [watched(first!.shutDown()), watched(second!.shutDown())];
  };

  it('waits with all of them for the work of each, which may take locks of all', async () => {
    for (const inOrder of [true, false]) {
      const [outer, inner] = inOrder ? [first!, second!] : [second!, first!];
      const section = sectionOf(outer, inner);
      await settled();
      const stopping = stop();
      await runtime.pass(SHORT_GRACE_MS - 1);
      expect(stopping.map(({ state }) => state)).toEqual(['pending', 'pending']);
      work.resolve();
      await settled();
      expect(section.value).toEqual([false, false]);
      expect(stopping.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']);
      const group = new ServiceGroup();
      [first, second] = [serviceOf(group, SHORT_GRACE_MS), serviceOf(group, GRACE_MS)];
      work = deferred();
    }
  });

  it('ends when all work that still runs has had the grace of its service', async () => {
    const section = sectionOf(second!, first!);
    await settled();
    const stopping = stop();
    await runtime.pass(GRACE_MS - 1);
    expect(stopping.map(({ state }) => state)).toEqual(['pending', 'pending']);
    await runtime.pass(1);
    expect(stopping.map(({ state }) => state)).toEqual(['fulfilled', 'fulfilled']);
    work.resolve();
    await settled();
    expect(section.error).toMatchObject({ code: 'LOCK_SHUTDOWN', key: 'inner' });
  });

  it('waits for no service that does not stop, and for none of another group', async () => {
    const [sameGroup, alone] = [sectionOf(second!, first!), serviceOf(undefined, GRACE_MS)];
    await settled();
    const stopping = watched(first!.shutDown());
    await settled();
    expect([stopping.state, sameGroup.state]).toEqual(['fulfilled', 'pending']);
    work.resolve();
    await settled();
    expect(sameGroup.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
    const refused = watched(
      second!.withLock(['outer'], call, () => {
        alone.refuseNew();
        return alone.acquire(['inner'], call);
      }),
    );
    await settled();
    expect(refused.error).toMatchObject({ code: 'LOCK_SHUTDOWN' });
  });
});
