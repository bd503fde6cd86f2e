import { beforeEach, describe, expect, it } from 'vitest';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { LockEvents } from '../../../lib/core/report/lock-events.js';
import type { LockSettingsInput } from '../../../lib/core/settings/lock-settings.js';
import { defaultCall, type LockCall } from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { coreUnderTest, Log } from '../../support/core/core-under-test.js';
import { granted, released } from '../../support/core/scripted-store.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

let runtime: VirtualRuntime;
let space: MemorySpace;
let log: Log;

beforeEach(() => {
  runtime = new VirtualRuntime();
  space = new MemorySpace({ now: () => runtime.now() });
  log = new Log();
});

const processWith = (input: LockSettingsInput = {}): { manager: LockManager; call: LockCall } => {
  const settings = resolveSettings({ keyPrefix: '', waitMs: 60_000, ...input });
  const manager = new LockManager(new MemoryStore({ shared: space }), settings, log, runtime);
  return { manager, call: defaultCall(settings) };
};

const eventsOf = <E extends keyof LockEvents>(manager: LockManager, name: E): LockEvents[E][] => {
  const events: LockEvents[E][] = [];
  manager.on(name, (event) => void events.push(event));
  return events;
};

describe('a caller that waits for long', () => {
  it('is reported once, after slowWaitMs, with the number of waiters ahead', async () => {
    const [holder, waiter] = [processWith(), processWith()];
    const events = eventsOf(waiter.manager, 'waiting');
    const lease = await holder.manager.acquire(['k'], holder.call);
    const waits = [0, 1, 2].map(() => waiter.manager.acquire(['k'], waiter.call));
    await runtime.pass(999);
    expect(events).toEqual([]);
    await runtime.pass(1);
    expect(events.every(({ key, waitedMs }) => key === 'k' && waitedMs === 1_000)).toBe(true);
    expect(events.map(({ waitersAhead }) => waitersAhead).sort()).toEqual([0, 1, 2]);
    expect(log.debugLines).toEqual([
      '3 callers wait for "k", the first (withLock) for 1000 ms (slowWaitMs). locks.inspect() and the event "waiting" show the holder.',
    ]);
    await runtime.pass(20_000);
    expect(events).toHaveLength(3);
    await holder.manager.release(lease);
    for (const wait of waits) await waiter.manager.release(await wait);
  });

  it('is reported in time, also by a timer that fires a moment early', async () => {
    const { setTimer } = runtime;
    runtime.setTimer = (action, ms) => setTimer.call(runtime, action, Math.max(0, ms - 0.5));
    const { manager, call } = processWith();
    const events = eventsOf(manager, 'waiting');
    const lease = await manager.acquire(['k'], call);
    const waiting = manager.acquire(['k'], call);
    await runtime.pass(1_001);
    expect(events).toHaveLength(1);
    await manager.release(lease);
    await manager.release(await waiting);
  });

  it('is reported in portions where many keys are waited for, one in each turn of the event loop', async () => {
    const [holder, waiter] = [processWith(), processWith()];
    const keys = Array.from({ length: 600 }, (_, i) => `k${i}`);
    const leases = await Promise.all(keys.map((key) => holder.manager.acquire([key], holder.call)));
    const waits = keys.map((key) => waiter.manager.acquire([key], waiter.call));
    const portions: number[] = [];
    let reported = 0;
    waiter.manager.on('waiting', () => void (reported += 1));
    const { setTimer } = runtime;
    runtime.setTimer = (action, ms) =>
      setTimer.call(
        runtime,
        () => {
          action();
          void settled().then(() => portions.push(reported - portions.reduce((sum, one) => sum + one, 0)));
        },
        ms,
      );
    await runtime.pass(1_000);
    expect(portions.filter((count) => count > 0)).toEqual([250, 250, 100]);
    for (const lease of leases) await holder.manager.release(lease);
    for (const wait of waits) await waiter.manager.release(await wait);
  });

  it('counts from the beginning of its call, also where another caller had the key in between', async () => {
    const { manager, call } = processWith();
    const events = eventsOf(manager, 'waiting');
    const first = await manager.acquire(['k'], { ...call, leaseMs: 5_000 });
    const second = manager.acquire(['k'], { ...call, leaseMs: 5_000 });
    await runtime.pass(600);
    const third = manager.acquire(['k'], call);
    await manager.release(first);
    await runtime.pass(999);
    expect(events).toEqual([]);
    await runtime.pass(1);
    expect(events.map(({ waitedMs }) => waitedMs)).toEqual([1_000]);
    await manager.release(await second);
    await manager.release(await third);
  });

  it('is not reported when it got the lock, gave up or was aborted before, and leaves nothing', async () => {
    const { manager, call } = processWith({ slowWaitMs: 500 });
    const events = eventsOf(manager, 'waiting');
    const lease = await manager.acquire(['k'], call);
    const aborting = new AbortController();
    const ends = [
      manager.tryAcquire(['k'], { ...call, waitMs: 500 }),
      manager.acquire(['k'], { ...call, signal: aborting.signal }).catch(() => 'aborted'),
      manager.acquire(['k'], call),
    ] as const;
    await runtime.pass(200);
    aborting.abort();
    await manager.release(lease);
    const next = await ends[0];
    await manager.release(next!);
    await manager.release(await ends[2]);
    await runtime.pass(10_000);
    expect(events).toEqual([]);
    expect(log.debugLines).toEqual([]);
    expect(manager.usage).toEqual({ leases: 0, keys: 0, holds: 0, undoing: 0 });
  });

  it('is reported for permits and for each key of a call', async () => {
    const { manager, call } = processWith();
    const events = eventsOf(manager, 'waiting');
    const permits = { ...call, kind: 'permit', permits: 1 } as const;
    const held = [await manager.acquire(['p'], permits), await manager.acquire(['b'], call)];
    const waits = [manager.acquire(['p'], permits), manager.acquire(['a', 'b'], call)];
    await runtime.pass(1_000);
    expect(events.map(({ key }) => key).sort()).toEqual(['b', 'p']);
    for (const lease of held) await manager.release(lease);
    for (const wait of waits) await manager.release(await wait);
  });
});

describe('a holder that holds for long', () => {
  it('is reported once, after slowHoldMs of its own hold', async () => {
    const { manager, call } = processWith({ slowHoldMs: 2_000 });
    const events = eventsOf(manager, 'slow-hold');
    const first = await manager.acquire(['k'], call);
    const waiting = manager.acquire(['k'], call);
    await runtime.pass(1_500);
    await manager.release(first);
    const second = await waiting;
    await runtime.pass(1_999);
    expect(events).toEqual([]);
    await runtime.pass(1);
    expect(events).toEqual([{ key: 'k', kind: 'exclusive', label: 'withLock', heldMs: 2_000 }]);
    expect(log.debugLines.at(-1)).toBe(
      '"k" (withLock) has been held for 2000 ms (slowHoldMs), and still is.',
    );
    await runtime.pass(60_000);
    expect(events).toHaveLength(1);
    expect(await manager.release(second)).toBe('released');
  });

  it('may release in the listener: nothing renews its lock any more', async () => {
    const { manager, call, store, runtime } = coreUnderTest({ slowHoldMs: 10_000, watchdogMs: 30_000 });
    const acquiring = manager.acquire(['k'], call());
    await settled();
    await store.next('acquire').reply(granted());
    const lease = await acquiring;
    manager.on('slow-hold', () => void manager.release(lease));
    await runtime.pass(10_000);
    expect(store.sent.map(({ name }) => name)).toEqual(['acquire', 'release']);
    await store.next('release').reply(released());
  });

  it('is not reported by default', async () => {
    const { manager, call } = processWith();
    const events = eventsOf(manager, 'slow-hold');
    const lease = await manager.acquire(['k'], call);
    await runtime.pass(600_000);
    expect(events).toEqual([]);
    await manager.release(lease);
  });
});

describe('the id of a service', () => {
  it('begins the owners of its holds, and is another one for each service', async () => {
    const [one, other] = [processWith(), processWith()];
    const lease = await one.manager.acquire(['k'], one.call);
    expect(lease.owner.startsWith(`${one.manager.instanceId}:`)).toBe(true);
    expect(other.manager.instanceId).not.toBe(one.manager.instanceId);
    await one.manager.release(lease);
  });
});
