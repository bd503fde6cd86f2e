import { beforeEach, describe, expect, it } from 'vitest';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { defaultCall, type LockCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { Log, watched } from '../../support/core/core-under-test.js';
import { SESSION_TIMEOUT_MS, SessionServer, SessionStore } from '../../support/core/session-store.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

const WATCHDOG_MS = 3_000;
const settings = resolveSettings({ keyPrefix: '', watchdogMs: WATCHDOG_MS });
const call = (options: Partial<LockCall> = {}): LockCall => ({ ...defaultCall(settings), ...options });

let runtime: VirtualRuntime;
let server: SessionServer;

/** A process with its own session. */
const newProcess = () => {
  const store = new SessionStore(server, runtime);
  const log = new Log();
  return { store, log, manager: new LockManager(store, settings, log, runtime) };
};

beforeEach(() => {
  runtime = new VirtualRuntime();
  server = new SessionServer();
});

describe('a hold of a session', () => {
  it('needs no renewal while the session lives', async () => {
    const { store, manager } = newProcess();
    const leases = await Promise.all(
      Array.from({ length: 40 }, (_none, i) => manager.acquire([`k${i}`], call())),
    );
    await runtime.pass(10 * SESSION_TIMEOUT_MS);
    expect(store.asked.filter((name) => name === 'extend')).toEqual([]);
    expect(leases.map(({ lost }) => lost)).not.toContain(true);
    expect(leases[0]!.remainingMs()).toBeGreaterThan(SESSION_TIMEOUT_MS / 2);
  });

  it('with a fixed lease ends on time in the store, also while its section hangs', async () => {
    const { manager } = newProcess();
    const other = newProcess();
    const hung = watched(manager.withLock(['k'], call({ leaseMs: 300 }), () => new Promise(() => undefined)));
    await runtime.pass(0);
    const next = watched(other.manager.acquire(['k'], call({ waitMs: 10_000 })));
    await runtime.pass(299);
    expect([hung.state, next.state]).toEqual(['pending', 'pending']);
    await runtime.pass(1);
    expect(next.state).toBe('fulfilled');
  });

  it.each([300, 3 * SESSION_TIMEOUT_MS])(
    'of several keys with a fixed lease of %i ms ends on time',
    async (leaseMs) => {
      const { manager } = newProcess();
      const lease = await manager.acquire(['a', 'b'], call({ leaseMs }));
      await runtime.pass(leaseMs - 1);
      expect([lease.lost, server.owners.length]).toEqual([false, 2]);
      await runtime.pass(1);
      expect([lease.lost, server.owners]).toEqual([true, []]);
    },
  );

  it('with a fixed lease lasts longer when its holder extends it', async () => {
    const { manager } = newProcess();
    const lease = await manager.acquire(['k'], call({ leaseMs: 300 }));
    await runtime.pass(200);
    await lease.extend(1_000);
    await runtime.pass(999);
    expect(lease.lost).toBe(false);
    await runtime.pass(1);
    expect([lease.lost, server.owners]).toEqual([true, []]);
  });

  it('is lost when the session cannot be certain any more, and is released once the server is back', async () => {
    const { store, manager } = newProcess();
    const lease = await manager.acquire(['k'], call());
    store.isConnected = false;
    await runtime.pass(SESSION_TIMEOUT_MS);
    expect(lease.lost).toBe(true);
    expect(server.owners).toHaveLength(1);
    store.isConnected = true;
    await runtime.pass(SESSION_TIMEOUT_MS);
    expect(server.owners).toEqual([]);
  });

  it('is lost with all others of the session when that is over', async () => {
    const { store, manager } = newProcess();
    const leases = [await manager.acquire(['a'], call()), await manager.acquire(['b'], call())];
    store.expire();
    expect(leases.map(({ lost }) => lost)).toEqual([true, true]);
    expect((await manager.acquire(['a'], call())).lost).toBe(false);
  });

  it('is verified by one request', async () => {
    const { store, manager } = newProcess();
    const lease = await manager.acquire(['k'], call());
    expect(await lease.verify()).toBe(true);
    await store.forceUnlock('k');
    expect([await lease.verify(), lease.lost]).toEqual([false, true]);
  });

  it('has the token that its store gave, also after a long wait', async () => {
    const { manager } = newProcess();
    const other = newProcess();
    const first = await manager.acquire(['k'], call());
    const next = watched(other.manager.acquire(['k'], call({ waitMs: 60_000 })));
    await runtime.pass(30_000);
    await first.release();
    await runtime.pass(0);
    expect(next.value!.fencingToken).toBe(first.fencingToken + 1);
    // A grant by message is as good as a reply: it says since when it holds.
    expect(other.store.asked).toEqual(['acquire']);
  });
});

describe('after an acquire over a session whose outcome is unknown', () => {
  it('nothing is left, however long the store cannot be reached', async () => {
    const { store, manager } = newProcess();
    store.losesReplies = true;
    const taking = watched(manager.acquire(['k'], call({ leaseMs: 300, waitMs: 0 })));
    // It has been executed already: the reply is lost with the connection.
    store.isConnected = false;
    await runtime.pass(0);
    expect(taking.error).toMatchObject({ code: 'LOCK_STORE_FAILED', outcome: 'unknown' });
    expect(server.owners).toHaveLength(1);
    store.losesReplies = false;
    // Longer than any lease: only the end of the session, or a reply, is certain.
    await runtime.pass(60_000);
    store.isConnected = true;
    await runtime.pass(2_000);
    expect([server.owners, manager.usage.undoing]).toEqual([[], 0]);
  });

  it('a waiter that gives up leaves no node that would get the key later', async () => {
    const { manager } = newProcess();
    const other = newProcess();
    const lease = await manager.acquire(['k'], call());
    const waiting = watched(other.manager.acquire(['k'], call({ waitMs: 100 })));
    await runtime.pass(101);
    expect(waiting.error).toMatchObject({ code: 'LOCK_TAKEN' });
    await lease.release();
    await runtime.pass(0);
    expect(server.owners).toEqual([]);
  });
});

describe('what a session cannot do is refused by name', () => {
  it('a minimum time, which would have to outlive the release', async () => {
    const { manager } = newProcess();
    const acquiring = manager.acquire(['k'], call({ holdAtLeastMs: 100 }));
    await expect(acquiring).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      message: expect.stringMatching(
        /holdAtLeastMs: The session store ends a lock with the session/,
      ) as string,
    });
  });

  it('an extension past the time-out of the session', async () => {
    const { manager } = newProcess();
    const lease = await manager.acquire(['k'], call());
    await lease.extend(SESSION_TIMEOUT_MS);
    await expect(lease.extend(SESSION_TIMEOUT_MS + 1)).rejects.toMatchObject({
      code: 'LOCK_CONFIGURATION',
      message: expect.stringContaining(`${SESSION_TIMEOUT_MS} ms`) as string,
    });
  });

  it('kinds, semaphores and latches that it lacks', async () => {
    const { manager } = newProcess();
    await expect(manager.acquire(['k'], call({ kind: 'fair' }))).rejects.toThrow(
      'The session store cannot keep locks of the kind "fair".',
    );
    expect(() => manager.semaphore('k')).toThrow('The session store cannot keep semaphores.');
    expect(() => manager.countDownLatch('k')).toThrow('The session store cannot keep countdown latches.');
  });
});
