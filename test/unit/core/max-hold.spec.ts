import { beforeEach, describe, expect, it } from 'vitest';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { LockStore } from '../../../lib/core/seam/lock-store.js';
import { defaultCall, type LockCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { Log, watched } from '../../support/core/core-under-test.js';
import { SessionServer, SessionStore } from '../../support/core/session-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

const WATCHDOG_MS = 3_000;
const LIMIT_MS = 10_000;
const settings = resolveSettings({ keyPrefix: '', watchdogMs: WATCHDOG_MS, holderInfo: false });
const call = (options: Partial<LockCall> = {}): LockCall => ({ ...defaultCall(settings), ...options });
const limited = (options: Partial<LockCall> = {}): LockCall => call({ maxHoldMs: LIMIT_MS, ...options });
const endless = () => new Promise<never>(() => undefined);

let runtime: VirtualRuntime;
let space: MemorySpace;

beforeEach(() => {
  runtime = new VirtualRuntime();
  space = new MemorySpace({ now: () => runtime.now() });
});

const newProcess = (store: LockStore = new MemoryStore({ shared: space })) => {
  const manager = new LockManager(store, settings, new Log(), runtime);
  const lost: unknown[] = [];
  manager.on('lost', ({ key, reason, heldMs }) => void lost.push([key, reason, heldMs]));
  return { manager, lost };
};

describe('a hold with maxHoldMs', () => {
  it('is lost at its limit, and stays in the store until the lease ends', async () => {
    const { manager, lost } = newProcess();
    let signal: AbortSignal | undefined;
    watched(
      manager.withLock(['k'], limited(), (lease) => {
        signal = lease.signal;
        return endless();
      }),
    );
    await runtime.pass(LIMIT_MS - 1);
    expect([signal!.aborted, lost]).toEqual([false, []]);
    await runtime.pass(1);
    expect(signal!.reason).toMatchObject({ code: 'LOCK_LOST', reason: 'overdue' });
    expect(lost).toEqual([['k', 'overdue', LIMIT_MS]]);
    const [holder] = space.inspect('k')!.holders;
    expect(holder!.remainingMs).toBeGreaterThan(WATCHDOG_MS / 2);
    const other = watched(newProcess().manager.acquire(['k'], call({ waitMs: 60_000 })));
    await runtime.pass(holder!.remainingMs - 1);
    expect(other.state).toBe('pending');
    await runtime.pass(1);
    expect(other.state).toBe('fulfilled');
  });

  it('is released as soon as the overdue work ends', async () => {
    const { manager } = newProcess();
    const stopped = watched(
      manager.withLock(['k'], limited(), ({ signal }) => new Promise((stop) => (signal.onabort = stop))),
    );
    await runtime.pass(LIMIT_MS);
    expect([stopped.state, space.inspect('k')]).toEqual(['fulfilled', null]);
  });

  it('shows what is left until the limit, which extend does not move', async () => {
    const { manager } = newProcess();
    const lease = await manager.acquire(['k'], limited());
    await runtime.pass(LIMIT_MS - 1_000);
    await lease.extend(LIMIT_MS);
    expect(lease.remainingMs()).toBe(1_000);
    await runtime.pass(1_000);
    expect(lease.loss).toMatchObject({ reason: 'overdue' });
  });

  it('that was handed off has a limit from its own grant', async () => {
    const { manager, lost } = newProcess();
    const blocker = await newProcess().manager.acquire(['k'], call());
    const [first, second] = [0, 1].map(() => watched(manager.acquire(['k'], limited({ waitMs: 60_000 }))));
    await runtime.pass(0);
    await blocker.release();
    await runtime.pass(20);
    await first!.value!.release();
    await settled();
    const lease = second!.value!;
    expect(lease.owner).toBe(first!.value!.owner);
    await runtime.pass(LIMIT_MS - 1);
    expect(lease.lost).toBe(false);
    await runtime.pass(1);
    expect([lease.lost, lost]).toEqual([true, [['k', 'overdue', LIMIT_MS]]]);
  });

  it('covers nested calls, and a limit of a nested call has no effect', async () => {
    const { manager } = newProcess();
    const inner: unknown[] = [];
    const nested = (outer: LockCall, own: LockCall) =>
      manager.withLock(['k'], outer, (around) =>
        manager.withLock(['k'], { ...own, inside: [around] }, async (lease) => {
          lease.signal.onabort = () => void inner.push(lease.loss?.reason);
          return endless();
        }),
      );
    const unlimited = watched(nested(call(), limited()));
    await runtime.pass(10 * LIMIT_MS);
    expect([unlimited.state, inner]).toEqual(['pending', []]);
    await manager.forceUnlock('k');
    watched(nested(limited(), call()));
    await runtime.pass(LIMIT_MS);
    expect(inner).toEqual(['force-unlocked', 'overdue']);
  });

  it('of a reader ends no other reader of its process', async () => {
    const { manager } = newProcess();
    const short = await manager.acquire(['k'], limited({ kind: 'read' }));
    const long = await manager.acquire(['k'], call({ kind: 'read' }));
    await runtime.pass(2 * LIMIT_MS);
    expect([short.loss?.reason, long.lost]).toEqual(['overdue', false]);
    expect(space.inspect('k')!.holders.map(({ owner }) => owner)).toEqual([long.owner]);
  });

  it('of a session is released one lease length after the limit while its work hangs', async () => {
    const server = new SessionServer();
    const { manager, lost } = newProcess(new SessionStore(server, runtime));
    watched(manager.withLock(['k'], limited(), endless));
    await runtime.pass(LIMIT_MS + WATCHDOG_MS - 1);
    expect([lost, server.owners]).toEqual([[['k', 'overdue', LIMIT_MS]], [expect.any(String)]]);
    await runtime.pass(1);
    expect(server.owners).toEqual([]);
  });

  it('of a session is released when its overdue work ends', async () => {
    const server = new SessionServer();
    const { manager } = newProcess(new SessionStore(server, runtime));
    const stopped = watched(
      manager.withLock(['k'], limited(), ({ signal }) => new Promise((stop) => (signal.onabort = stop))),
    );
    await runtime.pass(LIMIT_MS);
    expect([stopped.state, server.owners]).toEqual(['fulfilled', []]);
  });

  it('of several keys has its limit from when all of them are held', async () => {
    const { manager, lost } = newProcess();
    const blocker = await newProcess().manager.acquire(['b'], call());
    const waiting = watched(manager.acquire(['a', 'b'], limited({ waitMs: 60_000 })));
    await runtime.pass(LIMIT_MS + 5_000);
    expect([waiting.state, lost]).toEqual(['pending', []]);
    await blocker.release();
    await runtime.pass(0);
    await runtime.pass(LIMIT_MS - 1);
    expect([waiting.value!.lost, lost]).toEqual([false, []]);
    await runtime.pass(1);
    expect(lost).toEqual([
      ['a', 'overdue', expect.any(Number)],
      ['b', 'overdue', LIMIT_MS],
    ]);
  });

  it('that is downgraded too late is overdue, not expired', async () => {
    const store = new MemoryStore({ shared: space });
    const { manager } = newProcess(store);
    const lease = await manager.acquire(['k'], limited({ kind: 'write' }));
    await runtime.pass(LIMIT_MS - 10);
    for (const kind of [store.kinds.read, store.kinds.write]) {
      const downgrade = kind.downgrade?.bind(kind);
      if (!downgrade) continue;
      kind.downgrade = async (claim: never) => {
        const reply = await downgrade(claim);
        runtime.jump(20);
        return reply;
      };
    }
    await lease.downgrade().catch(() => undefined);
    expect(lease.loss).toMatchObject({ reason: 'overdue' });
  });

  it('of a session that was overdue does not delay the end of its service', async () => {
    const server = new SessionServer();
    const { manager } = newProcess(new SessionStore(server, runtime));
    watched(
      manager.withLock(['k'], limited(), ({ signal }) => new Promise((stop) => (signal.onabort = stop))),
    );
    await runtime.pass(LIMIT_MS);
    const closed = watched(manager.close());
    await runtime.pass(100);
    expect([closed.state, manager.usage.undoing]).toEqual(['fulfilled', 0]);
  });
});
