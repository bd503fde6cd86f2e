import { beforeEach, describe, expect, it } from 'vitest';
import { LockManager } from '../../../lib/core/service/lock-manager.js';
import type { LockNotAcquiredError } from '../../../lib/core/errors/lock.errors.js';
import {
  defaultCall,
  handlingTaken,
  resolveCall,
  type LockCall,
} from '../../../lib/core/settings/lock-call.js';
import { resolveSettings } from '../../../lib/core/settings/lock-settings.js';
import { MemorySpace } from '../../../lib/stores/memory/memory-space.js';
import { MemoryStore } from '../../../lib/stores/memory/memory.store.js';
import { Log } from '../../support/core/core-under-test.js';
import { settled, VirtualRuntime } from '../../support/core/virtual-runtime.js';

let runtime: VirtualRuntime;
let manager: LockManager;
let call: LockCall;

const settings = resolveSettings({ keyPrefix: '', waitMs: 1_000, maxWaiters: 3 });

beforeEach(() => {
  runtime = new VirtualRuntime();
  const space = new MemorySpace({ now: () => runtime.now() });
  manager = new LockManager(new MemoryStore({ shared: space }), settings, new Log(), runtime);
  call = { ...defaultCall(settings), label: 'order:<<id>>' };
});

/** Holds a key for a time. */
const hold = async (key: string, heldMs: number, how: Partial<LockCall> = {}): Promise<void> => {
  const lease = await manager.acquire([key], { ...call, ...how });
  await runtime.pass(heldMs);
  await manager.release(lease);
};

/** Gives the errors of callers that come at the same time and wait in vain. */
const refusedOf = async (count: number, how: Partial<LockCall> = {}): Promise<LockNotAcquiredError[]> => {
  const errors: LockNotAcquiredError[] = [];
  for (let i = 0; i < count; i++) {
    manager.acquire(['k'], { ...call, ...how }).catch((error: LockNotAcquiredError) => errors.push(error));
  }
  await settled();
  await runtime.pass(1_000);
  await settled();
  return errors;
};

describe('retryAfterMs of a caller that is rejected', () => {
  it('is undefined in a process in which no hold with the label has ended', async () => {
    await hold('other', 400, { label: 'other' });
    await manager.acquire(['k'], call);
    expect((await refusedOf(1)).map(({ retryAfterMs }) => retryAfterMs)).toEqual([undefined]);
  });

  it('is the median hold of the label on all its keys, for each caller before', async () => {
    for (const [i, heldMs] of [300, 20_000, 400].entries()) await hold(`k${i}`, heldMs);
    await manager.acquire(['k'], call);
    const [first, second] = await Promise.all([refusedOf(1), refusedOf(1, { waitMs: 500 })]);
    const seen = [...first, ...second].map(({ waitersAhead, retryAfterMs }) => [waitersAhead, retryAfterMs]);
    expect(seen).toEqual([
      [0, 400],
      [1, 800],
    ]);
  });

  it('counts holdAtLeastMs, for which a lock stays after its work', async () => {
    await hold('k0', 10, { holdAtLeastMs: 5_000 });
    await manager.acquire(['k'], call);
    expect((await refusedOf(1, { waitMs: 0 }))[0]?.retryAfterMs).toBe(5_000);
  });

  it('counts maxWaiters callers when the queue is full', async () => {
    await hold('k0', 400);
    await manager.acquire(['k'], call);
    const errors = await refusedOf(5);
    const full = errors.filter(({ code }) => code === 'LOCK_QUEUE_FULL');
    expect(full.length).toBeGreaterThan(0);
    for (const { retryAfterMs } of full) expect(retryAfterMs).toBe(1_600);
  });

  it('is not looked for when the caller handles a taken key by itself', async () => {
    await hold('k0', 400);
    await manager.acquire(['k'], call);
    const asked = resolveCall(handlingTaken({ waitMs: 0 }), call, 'withLock', settings);
    const errors = await refusedOf(1, asked);
    expect(errors.map(({ code, retryAfterMs }) => [code, retryAfterMs])).toEqual([['LOCK_TAKEN', undefined]]);
  });
});
