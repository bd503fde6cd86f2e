import { beforeEach, describe, expect, it } from 'vitest';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { LockService } from '../../../lib/nest/service/lock.service.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { Log, watched } from '../../support/core/core-under-test.js';
import { SessionServer, SessionStore } from '../../support/core/session-store.js';
import { VirtualRuntime } from '../../support/core/virtual-runtime.js';

const HOUR_MS = 3_600_000;
const ONCE = { oncePerMs: HOUR_MS } as const;
const settings = resolveSettings({ keyPrefix: '', holderInfo: false });

let runtime: VirtualRuntime;
let space: MemorySpace;

beforeEach(() => {
  runtime = new VirtualRuntime();
  space = new MemorySpace({ now: () => runtime.now() });
});

const sleep = (ms: number) => new Promise((wake) => runtime.setTimer(() => wake(undefined), ms));

const newProcess = (store = new MemoryStore({ shared: space })): LockService =>
  new LockService(new LockManager(store, settings, new Log(), runtime));

const runs = (locks: LockService, work: () => unknown = () => 'done') =>
  locks.tryWithLock('report', ONCE, async () => work());

describe('a section with oncePerMs', () => {
  it('runs once in a window over all processes; the window begins at the grant', async () => {
    const [one, other] = [newProcess(), newProcess()];
    const first = watched(runs(one, () => sleep(60_000)));
    await runtime.pass(60_000);
    expect(first.value).toMatchObject({ ran: true });
    expect(one.usage).toMatchObject({ leases: 0, holds: 0 });
    expect((await one.inspect('report'))!.holders[0]!.remainingMs).toBe(HOUR_MS - 60_000);
    await runtime.pass(HOUR_MS - 60_001);
    expect([await runs(one), await runs(other)]).toEqual([{ ran: false }, { ran: false }]);
    await runtime.pass(1);
    expect(await runs(other)).toMatchObject({ ran: true });
  });

  it('runs again at once after an error', async () => {
    const locks = newProcess();
    const failing = runs(locks, () => Promise.reject(new Error('no paper')));
    await expect(failing).rejects.toThrow('no paper');
    expect(await runs(newProcess())).toMatchObject({ ran: true });
  });

  it('runs again after a call that failed with its loss, though the work succeeded', async () => {
    const locks = newProcess();
    const options = { ...ONCE, maxHoldMs: 60_000, onLost: 'throw' } as const;
    const late = watched(locks.withLock('report', options, () => sleep(70_000)));
    await runtime.pass(70_000);
    expect(late.error).toMatchObject({ code: 'LOCK_LOST', reason: 'overdue' });
    expect(await runs(newProcess())).toMatchObject({ ran: true });
  });

  it('has only its lease while it runs, so that a crash does not use up the window', async () => {
    const locks = newProcess();
    watched(runs(locks, () => new Promise(() => undefined)));
    await runtime.pass(3 * settings.watchdogMs);
    expect(space.inspect('report')!.holders[0]!.remainingMs).toBeLessThanOrEqual(settings.watchdogMs);
  });

  it('runs again after a forced unlock', async () => {
    const locks = newProcess();
    await runs(locks);
    expect(await locks.forceUnlock('report')).toBe(true);
    expect(await runs(locks)).toMatchObject({ ran: true });
  });

  it('does not wait, also for another user of the key, whom its window keeps out', async () => {
    const locks = newProcess();
    const lease = await locks.acquire('report');
    await expect(locks.withLock('report', ONCE, () => 'done')).rejects.toMatchObject({ code: 'LOCK_TAKEN' });
    await lease.release();
    await runs(locks);
    expect(await locks.tryAcquire('report')).toBeNull();
  });

  it('is not handed off to a waiter of its process', async () => {
    const locks = newProcess();
    const work = watched(runs(locks, () => sleep(10)));
    await runtime.pass(0);
    const waiter = watched(locks.acquire('report', { waitMs: 2 * HOUR_MS }));
    await runtime.pass(HOUR_MS - 1);
    expect([work.state, waiter.state]).toEqual(['fulfilled', 'pending']);
    await runtime.pass(1_000);
    expect(waiter.state).toBe('fulfilled');
  });

  it('is refused inside its own lock, which would not be released', async () => {
    const locks = newProcess();
    const nested = locks.withLock('report', (inside) =>
      locks.withLock('report', { ...ONCE, inside }, () => 'done'),
    );
    await expect(nested).rejects.toMatchObject({ code: 'LOCK_NOT_REENTRANT' });
  });

  it('is refused by a store whose holds are sessions', async () => {
    const store = new SessionStore(new SessionServer(), runtime);
    const locks = new LockService(new LockManager(store, settings, new Log(), runtime));
    await expect(locks.withLock('report', ONCE, () => 'done')).rejects.toThrow(
      'oncePerMs: The session store',
    );
  });

  it('ignores the fixed lease of its module', async () => {
    const input = resolveSettings({ keyPrefix: '', leaseMs: 50 });
    const locks = new LockService(
      new LockManager(new MemoryStore({ shared: space }), input, new Log(), runtime),
    );
    const work = watched(locks.withLock('report', ONCE, () => sleep(200)));
    await runtime.pass(200);
    expect(work.state).toBe('fulfilled');
  });

  it('is refused for a key of a list that has the mode of readers', async () => {
    const refused = newProcess().withLock([{ key: 'report', mode: 'read' }], ONCE, () => 'done');
    await expect(refused).rejects.toThrow('mode must be exclusive, fair or write with oncePerMs');
  });
});
